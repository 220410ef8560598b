from __future__ import annotations

from pathlib import Path

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
        (["--codegen", "newest"], "newest is no version of torch"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(arguments: list[str], message: str) -> None:
    refused = run(app, ["compiled", "defects", *arguments])
    assert isinstance(refused.exception, MpsmithError)
    assert str(refused.exception).startswith(message)
    assert "\n" not in str(refused.exception)


def test_a_script_is_printed_whole_and_alone() -> None:
    printed = run(app, ["compiled", "defects", "U2", "--script"])
    assert printed.exit_code == 0
    assert printed.stdout.startswith('"""U2: ')
    compile(printed.stdout, "U2.py", "exec")


@pytest.mark.parametrize("others", [[], ["--compile", "--codegen", "2.14.1"]])
def test_a_release_itself_is_for_audits_under_torch_compile_without_an_overlay(others: list[str]) -> None:
    refused = run(app, ["audit", "--release", "2.15.0", *others])
    assert refused.exit_code == 2
    assert "goes with --compile, and not with --codegen" in refused.output.replace("\n", " ")


def test_a_folder_that_is_no_clone_is_refused_before_anything_runs(tmp_path: Path) -> None:
    refused = run(app, ["audit", "--compile", "--codegen", str(tmp_path)])
    assert isinstance(refused.exception, MpsmithError)
    assert "is no clone of pytorch's repository" in str(refused.exception)


def test_a_code_generator_is_laid_over_for_audits_under_torch_compile_alone() -> None:
    refused = run(app, ["audit", "--codegen", "2.15.0"])
    assert refused.exit_code == 2
    assert "goes with --compile alone" in refused.output.replace("\n", " ")
