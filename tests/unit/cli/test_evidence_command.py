"""`mpsmith evidence` as it is typed, with files that no machine collected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpsmith.cli.evidence import app
from mpsmith.reports.evidence import collecting
from mpsmith.reports.evidence.collecting import Collection
from support.commands import output, printed_json, refusal, typed
from support.evidence_files import evidence, kernel_row, written

FOUND = {"aten::mode": {"float32": {"wrong": 2}, "int64": {"passed": 1}}}


def test_a_file_is_shown_with_its_machine_and_its_failing_cases(tmp_path: Path) -> None:
    file = written(tmp_path, evidence(FOUND, kernels=[kernel_row("mode", "aten::mode", ended="signal 6")]))
    text = output(app, "show", str(file))
    assert text.startswith(
        "real device: Apple M3 Pro, 18 GPU cores, 36 GiB, macOS 15.5 (24F74), torch 2.13.0, 2026-01-02"
    )
    assert "opinfo:mode:float32:1: wrong, says wrong" in text
    assert "signal 6" in text
    assert printed_json(app, "show", str(file))["machine"]["chip"] == "Apple M3 Pro"


def test_a_stopped_collection_says_how_to_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(collection: Collection, say: Callable[[str], None], advanced: Callable[[str], None]) -> None:
        advanced(collection.families[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(collecting, "collect", stopped)
    monkeypatch.setenv("MPSMITH_KERNELS", "off")  # as the command does
    work = tmp_path / "work"
    ended = typed(app, "collect", "--ops", "mode,heaviside", "--work", str(work), "--out", str(tmp_path / "file"))
    assert ended.exit_code == 130
    assert "kernels: heaviside (1 of 2)" in ended.output
    assert f"what had finished is in {work}: run the same command to go on" in ended.output
    assert not (tmp_path / "file").exists()
    monkeypatch.setattr(collecting, "collect", lambda *_: evidence(FOUND, simulated=True))
    done = printed_json(app, "collect", "--ops", "mode", "--work", str(work), "--out", str(tmp_path / "file"))
    assert (done["simulated"], done["kernels"]) == (True, {})


@pytest.mark.parametrize("command", ["show", "add"])
def test_marks_simulated_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path / "registry"))
    file = written(tmp_path, evidence(FOUND, simulated=True))
    assert "SIMULATED" in output(app, command, str(file))
    plain = printed_json(app, command, str(file))
    (file_shown,) = plain.get("files", [plain])
    assert file_shown["simulated"] is True


@pytest.mark.parametrize("command", ["show", "add"])
def test_rejects_an_intel_chip(tmp_path: Path, command: str) -> None:
    file = written(tmp_path, evidence(FOUND, chip="x86_64"))
    assert "not one of Apple's" in refusal(app, command, str(file))


def test_all_added_evidence_is_shown_by_device_with_conflicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path / "registry"))
    assert "no evidence has been added" in output(app, "show")
    passes = {"aten::mode": {"float32": {"passed": 2}}}
    for collected in (evidence(FOUND), evidence(passes, chip="Apple M1"), evidence(passes, simulated=True)):
        output(app, "add", str(written(tmp_path, collected)))
    text = output(app, "show")
    assert "1 operator on which devices disagree" in text
    assert "aten::mode with torch 2.13.0: Apple M1, macOS 15: native; Apple M3, macOS 15: wrong" in text
    assert "SIMULATED, torch 2.13.0" in text
    plain = printed_json(app, "show")
    assert [device["simulated"] for device in plain["devices"]] == [False, False, True]
    assert [conflict["operator"] for conflict in plain["conflicts"]] == ["aten::mode"]
