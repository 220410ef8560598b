"""`mpsmith trace` around programs: the talks' model under the coverage of torch 2.0.1, and programs that end badly."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from support.json_document import documented

TALK = """
import sys
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.Softshrink(), nn.Linear(16, 4), nn.Softshrink()).to("mps")
for _ in range(int(sys.argv[1])):
    loss = model(torch.randn(5, 8, device="mps")).sum()
    loss.backward()
    print(loss.item())
torch.special.zeta(torch.full((3,), 2.0, device="mps"), torch.ones(3, device="mps"))
"""
# One process for all that a program may start: a forked child, a DataLoader's worker, a spawned one, a thread; then it
# is killed.
FAMILY = """
import multiprocessing, os, signal, subprocess, sys, threading, time
import torch

def call(times):
    for _ in range(times):
        torch.ones(3, device="mps").mode()

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, number):
        call(1)  # in a worker
        return number

if __name__ == "__main__":
    call(1)
    for batch in torch.utils.data.DataLoader(Numbers(), num_workers=1):
        pass
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(call, (2,))
    child = "import torch; torch.ones(3, device='mps').mode()"
    subprocess.run([sys.executable, "-c", child], check=True)
    thread = threading.Thread(target=call, args=(4,))
    thread.start()
    thread.join()
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"  # too late
    sys.stdout.write("last words\\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_trace(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpsmith", "trace", "--device", "simulated", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def line_of(text: str, program: str) -> int:
    return next(number for number, line in enumerate(program.splitlines(), 1) if text in line)


def call_sites(trace: dict[str, Any]) -> set[tuple[str, int, str, int]]:
    return {(row["overload"], row["line"], row["module"], row["calls"]) for row in trace["fallbacks"]}


def test_a_program_without_and_with_kernels(tmp_path: Path) -> None:
    script = tmp_path / "talk.py"
    script.write_text(TALK)
    result = run_trace("--profile", "2.0.1", "--json", "--with-kernels", script, "3")
    assert result.returncode == 0, result.stderr
    trace = documented("trace", result.stdout)  # the program's own lines are on standard error
    assert (trace["simulated"], trace["profile"], trace["without_a_line"]) == (True, "2.0.1", {})
    forward = line_of("loss = model", TALK)
    backward = "aten::softshrink_backward.grad_input"
    assert call_sites(trace) == {
        ("aten::softshrink.out", forward, "model.1", 3),
        ("aten::softshrink.out", forward, "model.3", 3),
        (backward, forward, "model.1", 3),
        (backward, forward, "model.3", 3),
        ("aten::special_zeta.out", line_of("zeta", TALK), "", 1),
    }
    assert [(row["overload"], row["line"]) for row in trace["waits"]] == [
        ("aten::_local_scalar_dense", line_of("item()", TALK))
    ]
    assert {row["overload"] for row in trace["with_kernels"]["fallbacks"]} == {"aten::special_zeta.out"}
    assert trace["advice"] == (
        "2 of 3 operators that fall back are replaced by `import mpsmith.kernels`; aten::special_zeta is not; "
        "torch 2.2.2 runs aten::softshrink, aten::softshrink_backward on mps: `pip install --upgrade 'torch>=2.2.2'`; "
        "torch 2.7.1 runs aten::special_zeta on mps: `pip install --upgrade 'torch>=2.7.1'`"
    )


def test_a_killed_program_and_its_children_are_reported(tmp_path: Path) -> None:
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    result = run_trace(script)
    assert result.returncode == 128 + signal.SIGKILL
    assert result.stdout.startswith("last words\nSIMULATED mps device")
    assert "11 of " in result.stdout
    assert f"family.py:{line_of('# too late', FAMILY)} sets PYTORCH_ENABLE_MPS_FALLBACK after" in result.stdout
    assert "the program was ended by SIGKILL; this is what was seen until then" in result.stderr


def test_a_failing_module_has_its_own_traceback_and_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (tmp_path / "package").mkdir()
    source = """
    import sys, torch
    torch.ones(3, device='mps').mode()
    print(__package__, sys.argv[1:])
    raise ValueError('no more')
    """
    (tmp_path / "package" / "train.py").write_text(textwrap.dedent(source).lstrip())
    result = run_trace("--fail-on-fallback", "-m", "package.train", "-v", "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout.startswith("package ['-v', '--json']\n")
    assert "aten::mode " in result.stdout
    assert "::error file=package/train.py,line=2,title=mps fallback::aten::mode ran on the CPU once\n" in result.stdout
    assert result.stderr.endswith(
        f'  File "{tmp_path}/package/train.py", line 4, in <module>\n'
        "    raise ValueError('no more')\nValueError: no more\n"
    )


@pytest.mark.parametrize(
    ("source", "options", "status", "text"),
    [
        ("import torch; torch.ones(3).add(1)", (), 0, "the program called nothing on mps"),
        ("import os, torch; torch.ones(3, device='mps').mode(); os._exit(5)", (), 5, "1 of "),
        ("import torch; torch.ones(3, device='mps').mode()", ("--fail-on-fallback",), 1, "aten::mode"),
        ("import torch; torch.ones(3, device='mps').mode()", ("--fail-on-fallback", "--allow", "mode"), 0, "1 of "),
    ],
    ids=["nothing on mps", "os._exit", "forbidden", "allowed"],
)
def test_how_a_program_ends(tmp_path: Path, source: str, options: tuple[str, ...], status: int, text: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(source)
    result = run_trace(*options, script)
    assert (result.returncode, text in result.stdout) == (status, True), result.stdout + result.stderr
