from __future__ import annotations

import pytest
from typer.testing import CliRunner

from mpsmith.cli import app
from mpsmith.errors import MpsmithError

run = CliRunner().invoke


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["U99"], "there is no defect U99; there are U1, U2, "),
        (["--script"], "--script prints the program of one defect: name one of U1, "),
        (["--record"], "--record keeps what defects show over releases: name some with --codegen"),
        (["--codegen", "newest"], "newest is not a version of torch"),
    ],
)
def test_rejects_bad_arguments_in_one_line(arguments: list[str], message: str) -> None:
    refused = run(app, ["compiled", "defects", *arguments])
    assert isinstance(refused.exception, MpsmithError)
    assert str(refused.exception).startswith(message)
    assert "\n" not in str(refused.exception)


def test_prints_only_the_script() -> None:
    printed = run(app, ["compiled", "defects", "U2", "--script"])
    assert printed.exit_code == 0
    assert printed.stdout.startswith('"""U2: ')
    compile(printed.stdout, "U2.py", "exec")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compile", "--with-kernels"], "cannot be combined with --with-kernels"),
        (["--compile", "--shipped", "auto", "--host-code", "x"], "cannot be combined with --shipped, --host-code"),
        (["--host-code", "x", "--cluster", "tcp://h:1"], "cannot be combined with --cluster"),
        (["--host-code", "x,y", "--sync"], "cannot be combined with --sync"),
        (["--macos", "14.0"], "no effect without --host-code"),
        (["--macos", "14.0,26"], "no effect without --host-code"),
        (["--host-code", "x", "--macos", "14.0,12.0"], "'12.0' is none of 13.3, 14.0, 15.1, 26"),
        (["--host-code", "x", "--macos", "14.0,"], "'' is none of 13.3, 14.0, 15.1, 26"),
        (["--host-code", "x", "--macos", "26, 14.0,26"], "names 26 twice"),
        (["--host-code", "x,y", "--macos", "14.0,26"], "cannot be combined with --host-code A,B"),
        (["--resume", "--macos", "14.0,26"], "cannot be combined with --resume"),
        (["--host-code", "x", "--macos", "14.0,26", "--sync", "--report"], "combined with --sync, --report"),
        (["--with-kernels", "--resume"], "cannot be combined with --resume"),
        (["--shipped", "2.13.0,2.15.0", "--sync"], "cannot be combined with --sync"),
        (["--cluster", "tcp://h:1", "--workers", "2"], "cannot be combined with --workers"),
    ],
)
def test_rejects_options_that_cannot_be_combined(options: list[str], message: str) -> None:
    refused = run(app, ["audit", *options])
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.replace("│", " ").split())


def test_rejects_an_unknown_value_of_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_SHAPES", "odd")
    refused = run(app, ["audit", "--compile"])
    assert str(refused.exception) == "MPSMITH_SHAPES=odd: give one of static, dynamic, both"
