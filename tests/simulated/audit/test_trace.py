"""`mpsmith trace` counts the fallbacks of a program: the talks' model under the coverage of torch 2.0.1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TALK = """
import sys
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.Softshrink(), nn.Linear(16, 4), nn.Softshrink()).to("mps")
for _ in range(int(sys.argv[1])):
    model(torch.randn(5, 8, device="mps")).sum().backward()
"""


def run_trace(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpsmith", "trace", "--device", "simulated", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_softshrink_falls_back_forward_and_backward_under_the_coverage_of_2_0_1(tmp_path: Path) -> None:
    script = tmp_path / "talk.py"
    script.write_text(TALK)
    result = run_trace("--profile", "2.0.1", "--json", str(script), "--", "3")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["simulated"] is True
    softshrink = {name: calls for name, calls in found["fallbacks"].items() if "softshrink" in name}
    assert softshrink == {"aten::softshrink.out": 6, "aten::softshrink_backward.grad_input": 6}


def test_nothing_falls_back_where_softshrink_is_native(tmp_path: Path) -> None:
    script = tmp_path / "talk.py"
    script.write_text(TALK)
    result = run_trace(str(script), "--", "1")
    assert result.stdout == "no operator fell back to the CPU (SIMULATED mps device)\n"


def test_a_failing_program_shows_its_own_traceback_after_what_fell_back_until_then(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import torch\ntorch.ones(3, device='mps').mode()\nraise ValueError('no more')\n")
    result = run_trace(str(script))
    assert result.returncode == 1
    assert "aten::mode" in result.stdout
    assert result.stderr.endswith(
        f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n'
        "    raise ValueError('no more')\nValueError: no more\n"
    )


def test_the_status_and_arguments_are_the_programs_own(tmp_path: Path) -> None:
    script = tmp_path / "exits.py"
    script.write_text("import sys, torch\nprint(sys.argv[1:])\nsys.exit(3)\n")
    result = run_trace("--profile", "2.0.1", str(script), "--lr", "0.1", "--json")
    assert result.stdout.startswith("['--lr', '0.1', '--json']\n")
    assert (result.returncode, result.stderr) == (3, "")


def test_a_module_is_run_as_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("import sys, torch\nprint(__package__, sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    result = run_trace("-m", "package.train", "-v")
    assert result.stdout.startswith("package ['-v']\n"), result.stderr
    result = run_trace("-m", "package.tarin")
    assert (result.returncode, result.stderr) == (2, "error: there is no module package.tarin\n")


def test_a_missing_program_is_one_line(tmp_path: Path) -> None:
    result = run_trace(str(tmp_path / "absent.py"))
    assert result.returncode == 2
    assert result.stderr == f"error: {tmp_path / 'absent.py'}: no such file\n"
