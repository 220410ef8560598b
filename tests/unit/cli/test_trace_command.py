"""`mpsmith trace` around programs that never come to use torch: whatever they do is theirs, and is said plainly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.cli import app
from support.commands import refusal

NOTHING = "the program did not import torch (or its processes were not Python's): nothing was recorded\n"
TRACE = [sys.executable, "-m", "mpsmith", "trace"]


def traced(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(source)
    command = [*TRACE, *options, "program.py", "--lr", "0.1"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_a_script_that_does_not_exist_is_named() -> None:
    assert "no_such_script.py: no such file" in refusal(app, "trace", "no_such_script.py")


def test_python_reports_a_missing_module(tmp_path: Path) -> None:
    done = subprocess.run([*TRACE, "-m", "no_such_module"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, NOTHING)
    assert done.stderr == f"{sys.executable}: No module named no_such_module\n"


@pytest.mark.parametrize(
    ("source", "status", "last"),
    [
        ("import sys; print(*sys.argv[1:], end=' ')", 0, ""),
        ("import no_such_module", 1, "ModuleNotFoundError: No module named 'no_such_module'\n"),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no data')", 1, "no data\n"),
        ("import os; os.abort()", 134, "the program was ended by SIGABRT; this is what was seen until then\n"),
    ],
    ids=["no torch", "failed import", "exit code", "exit with words", "abort"],
)
def test_keeps_the_exit_code_of_the_program(tmp_path: Path, source: str, status: int, last: str) -> None:
    done = traced(tmp_path, source)
    assert done.returncode == status
    assert done.stdout.removeprefix("--lr 0.1 ") == NOTHING
    assert done.stderr.endswith(last)
    assert bool(done.stderr) == bool(last)


def test_an_option_after_the_program_goes_to_the_program_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(*sys.argv[1:])")
    command = [*TRACE, "program.py", "--json", "--device", "mps"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"--json --device mps\n{NOTHING}"
    assert done.stderr == "--json goes to the program; an option of `mpsmith trace` comes before program.py\n"


@pytest.mark.parametrize(
    ("number", "source", "status"),
    [
        (signal.SIGTERM, "", 143),
        # A shell that starts tests in the background has its children ignore SIGINT.
        (signal.SIGINT, "signal.signal(signal.SIGINT, signal.default_int_handler)", 130),
        (signal.SIGINT, "signal.signal(signal.SIGINT, lambda *_: os._exit(7))", 7),
    ],
    ids=["SIGTERM", "Ctrl-C", "Ctrl-C that the program takes"],
)
def test_forwards_signals_to_the_program(tmp_path: Path, number: int, source: str, status: int) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"import os, signal\n{source}\nprint('ready', flush=True)\nsignal.pause()\n")
    with subprocess.Popen([*TRACE, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, output) == (status, NOTHING)


def test_the_third_ctrl_c_ends_a_program_that_hangs(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, signal\nsignal.signal(signal.SIGINT, lambda *_: print('taken', flush=True))\n"
        "print('ready', flush=True)\nwhile True:\n    signal.pause()\n"
    )
    with subprocess.Popen([*TRACE, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for said in ("ready\n", "taken\n", "taken\n"):
                assert process.stdout.readline() == said
                process.send_signal(signal.SIGINT)
            output, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, output) == (137, NOTHING)
    assert error == "the program was ended by SIGKILL; this is what was seen until then\n"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["tables", "JSON"])
def test_a_closed_pipe_keeps_the_exit_code(tmp_path: Path, options: list[str]) -> None:
    script = tmp_path / "program.py"
    script.write_text("raise SystemExit(3)")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run([*TRACE, *options, script], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
