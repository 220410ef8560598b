"""All commands of `mpsmith` together: they explain themselves without torch, print JSON, and are in the README."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mpsmith.audit.answers.names import KERNELS_OF_OTHER_LIBRARIES
from mpsmith.cli import app
from mpsmith.cli.ending import written
from mpsmith.cli.why import why
from mpsmith.errors import MpsmithError
from mpsmith.kernels.runtime.catalog import of_other_libraries
from support.json_document import documented

README = Path(__file__).parents[3] / "README.md"

# It prints two results for people to look at, or a program.
WITHOUT_JSON = {"replay"}


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, by its words."""

    def below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        inner = getattr(command, "commands", {})
        if not inner or getattr(command, "invoke_without_command", False):
            yield words, command
        for name, subcommand in inner.items():
            yield from below((*words, name), subcommand)

    return below((), typer.main.get_command(app))


def test_every_command_explains_itself_without_torch() -> None:
    lines = [" ".join(words) for words, _ in commands()]
    assert {"audit", "replay", "self-test", "registry show", "coverage", "why"} <= set(lines)
    script = (
        "import contextlib, io, json, sys\n"
        "from mpsmith.cli import app\n"
        "shown = {}\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "        try:\n"
        "            app([*line.split(), '--help'])\n"
        "        except SystemExit as end:\n"
        "            shown[line] = (end.code, 'Usage:' in text.getvalue())\n"
        "print(json.dumps([shown, sorted(name for name in ('torch', 'numpy') if name in sys.modules)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, json.dumps(lines)], capture_output=True, text=True, check=True)
    shown, imported = json.loads(done.stdout)
    assert shown == {line: [0, True] for line in lines}
    assert imported == []


def test_every_command_with_a_result_has_json() -> None:
    without = {
        " ".join(words)
        for words, command in commands()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == WITHOUT_JSON


def test_the_readme_names_every_command_and_no_other() -> None:
    table = README.read_text(encoding="utf-8").partition("\n## Commands\n")[2].partition("\n## ")[0]
    first_cells = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    named = {name for cell in first_cells for name in re.findall(r"`mpsmith ([a-z-]+)", cell)}
    assert named == {words[0] for words, _ in commands()}
    groups = {words[0] for words, _ in commands() if len(words) > 1}
    assert not [group for group in groups if f"`mpsmith {group}`" in table], "without a command it prints its help"


def mpsmith(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpsmith", *arguments]
    return subprocess.run(
        command, text=True, check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords}
    )


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("audit",), "--ops"),
        (("audit",), "--dtypes"),
        (("audit",), "--sources"),
        (("audit",), "--import"),
        (("report",), "--ops"),
        (("report",), "--dtype"),
        (("report",), "--verdict"),
        (("coverage",), "--ops"),
        (("registry", "show"), "--status"),
    ],
)
@pytest.mark.parametrize("value", ["", "add,"])
def test_a_filter_without_a_value_is_an_error_and_not_everything(
    command: tuple[str, ...], option: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MpsmithError, match=f"^{option} has an empty value"):
        app([*command, option, value])
    assert list(tmp_path.iterdir()) == []


def test_rejects_a_seed_that_is_too_large(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        app(["audit", "--seed", "9" * 30])
    assert end.value.code == 2
    assert "--seed" in capsys.readouterr().err


def test_rejects_a_memory_limit_that_is_too_small() -> None:
    with pytest.raises(MpsmithError, match=r"^--memory-limit 0\.0001: no worker starts with so little"):
        app(["audit", "--memory-limit", "0.0001"])


full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")


@full_disk
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = mpsmith("registry", "show", stdout=full)
    assert (done.returncode, done.stderr) == (2, "error: cannot write the output: No space left on device\n")


def test_a_closed_pipe_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = mpsmith("registry", "show", stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


def test_raises_other_broken_pipes() -> None:
    with pytest.raises(BrokenPipeError), written():
        raise BrokenPipeError


def test_a_file_that_cannot_be_written_is_named() -> None:
    with pytest.raises(MpsmithError, match=r"^/no/such/folder/x: No such file or directory$"), written():
        Path("/no/such/folder/x").write_text("")


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from mpsmith.cli import main
sys.argv[0] = "mpsmith"
main()
"""


def test_doctor_works_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "doctor", "--json"], capture_output=True, text=True, check=False
    )
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)["rows"]}
    assert findings["simulated mps device"]["advice"] == "pip install torch"
    assert findings["simulated mps device"]["found"].startswith("torch cannot be imported: ")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


AS_DARWIN = (
    """
import platform
platform.system = lambda: "Darwin"
"""
    + WITHOUT_TORCH
)


def test_doctor_promises_no_metal_on_the_host_of_a_mac() -> None:
    pytest.importorskip("ziglang")
    done = subprocess.run(
        [sys.executable, "-c", AS_DARWIN, "doctor", "--json"], capture_output=True, text=True, check=False
    )
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)["rows"]}
    assert not findings["Metal on the host"]["ok"]
    assert findings["Metal on the host"]["found"].startswith("Metal source runs on the host on Linux")
    assert findings["Metal on the host"]["advice"] == ""


def test_other_commands_say_that_torch_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "kernels", "list"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: torch ")
    assert "pip install torch" in done.stderr


def test_scaffold_refuses_without_waiting_for_torch() -> None:
    torchless = WITHOUT_TORCH.replace('sys.modules["torch"] = None', "")
    printing = torchless.replace("main()", "try: main()\nfinally: print('torch' in sys.modules)")
    done = subprocess.run(
        [sys.executable, "-c", printing, "scaffold", "heaviside"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "False\n"), done.stderr
    assert "implemented already" in done.stderr


@pytest.mark.parametrize("name", ["deform_conv2d", "torchvision.ops.deform_conv2d(x)", "torchvision::deform_conv2d"])
def test_why_knows_operators_of_other_libraries(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    why(name)
    assert "kernel    deform_conv2d for torchvision::deform_conv2d" in capsys.readouterr().out
    why(name, as_json=True)
    answer = documented("why", capsys.readouterr().out)
    assert answer["library"] == "torchvision"
    assert answer["next"][0]["command"] == "import mpsmith.kernels"
    with pytest.raises(MpsmithError, match="no operator, function or module 'deform_conv9d'"):
        why("deform_conv9d")
    catalog = {kernel.overload: kernel.family for kernel in of_other_libraries()}
    assert catalog == {name: family for family, names in KERNELS_OF_OTHER_LIBRARIES.items() for name in names}


def test_why_needs_no_torch_for_an_unknown_name() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, "why", "nosuch"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: mpsmith knows no operator")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_allowed(closed: str) -> None:
    done = subprocess.run(f"{sys.executable} -m mpsmith why x.T {closed}", shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_of_a_library_keeps_its_traceback() -> None:
    with pytest.raises(ConnectionRefusedError), written():
        raise ConnectionRefusedError(111, "Connection refused")
