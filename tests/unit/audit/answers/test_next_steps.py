"""Every command that an answer, a refusal or a trace suggests can be typed, and does what it says."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpsmith.audit.answers.answer import answer, known_names
from mpsmith.audit.answers.sentences import steps
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.releases import data as release_data
from mpsmith.audit.releases.data import release_order
from mpsmith.cli import app


def suggested() -> set[str]:
    """The commands of the steps of every operator, function and module."""
    names = known_names()
    every = [f"aten::{operator}" for operator in names.overloads] + names.functions
    return {step.command for name in every for step in steps(answer(name)) if step.command}


def test_every_suggested_command_exits_with_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    newest = release_order(release_data.load().releases[-1].release)
    commands = suggested()
    assert {command.split()[0] for command in commands} == {"mpsmith", "pip", "import"}
    for command in sorted(commands):
        words = shlex.split(command)
        if words[0] == "pip":
            assert (2, 7, 0) < release_order(words[-1].removeprefix("torch>=")) <= newest
        elif words[:2] == ["mpsmith", "scaffold"]:
            done = CliRunner().invoke(app, [*words[1:], "--dry-run"])
            assert done.exit_code == 0, (command, done.output, done.exception)
        elif words[:2] == ["mpsmith", "audit"]:
            assert answer(words[-1])
        else:
            assert command in ("mpsmith trace train.py", "import mpsmith.kernels")


def test_a_scaffold_refusal_suggests_our_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["scaffold", "svd"])
    assert "import mpsmith.kernels" in str(done.exception)


def test_only_overloads_without_a_kernel_are_scaffolded() -> None:
    """Every operator that lacks one has a finished kernel today, so the kernels are left out here."""
    lacking = replace(answer("mode", "2.13.0"), kernels=(), lacking={"mode.values": 0.5, "add.Tensor": 0.5})
    commands = [step.command for step in steps(lacking)]
    assert "mpsmith scaffold aten::mode" in commands
    assert "mpsmith scaffold aten::add" not in commands


def test_a_complex_tensor_is_not_to_be_made_real() -> None:
    refusing = answer("linalg.solve", "2.13.0")
    assert refusing.dtypes[CaseVerdict.DTYPE_GAP] == ("complex64",)
    assert not [step for step in steps(refusing) if step.text.startswith("Convert first")]
    real = replace(refusing, dtypes={**refusing.dtypes, CaseVerdict.DTYPE_GAP: ("int64",)})
    assert [step for step in steps(real) if step.text.startswith("Convert first")]
