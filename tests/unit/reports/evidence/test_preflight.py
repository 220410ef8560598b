"""Preflight reads from its process which step failed, however that ends, and nothing is run after a failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer

from mpsmith.cli.preflight import preflight as command
from mpsmith.reports.evidence import machine
from mpsmith.reports.evidence.preflight import Preflight, PreflightError, preflight, require_working_device, what_to_do
from mpsmith.reports.evidence.preflight_steps import STEPS
from mpsmith.reports.evidence.privacy import PrivateNames
from mpsmith.reports.evidence.schema import PREFLIGHT_STEPS
from mpsmith.simulator.opening import DeviceKind


def process(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def lines(*rows: dict[str, str]) -> str:
    return "\n".join(f"print({json.dumps(json.dumps(row))}, flush=True)" for row in rows)


DEVICE = ({"begins": "device"}, {"passed": "device", "note": "torch has one"}, {"begins": "memory"})


def test_the_steps_that_passed_are_noted() -> None:
    result = preflight(process(lines(*DEVICE[:2])))
    assert (result.steps, result.problem) == ({"device": "torch has one"}, "")


def test_output_of_libraries_is_not_taken_for_steps() -> None:
    program = lines(*DEVICE[:2]) + "\nprint('Metal API Validation Enabled')\nprint('{')"
    assert preflight(process(program)).steps == {"device": "torch has one"}


ENDS_BY_SIGNAL = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGABRT)"
HANGS = "\nimport signal\nsignal.pause()"
FAILED = {"failed": "memory", "why": "out of memory"}


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (lines(*DEVICE, FAILED) + "\nraise SystemExit(1)", "memory: out of memory"),
        (lines(*DEVICE) + ENDS_BY_SIGNAL, "memory: its process ends with SIGABRT"),
        (lines(*DEVICE) + "\nraise SystemExit('no room')", "memory: its process ends with exit code 1: no room"),
        (lines(*DEVICE) + HANGS, "memory: its process does not end within 3 s"),
        ("raise SystemExit(3)", "start: its process ends with exit code 3"),
    ],
)
def test_a_failure_names_its_step(program: str, problem: str) -> None:
    result = preflight(process(program), seconds=3.0)
    assert result.problem == problem


def test_a_process_that_does_not_start_is_a_problem(tmp_path: Path) -> None:
    assert preflight([str(tmp_path / "absent")]).problem.startswith("start: its process does not start: ")


@pytest.mark.parametrize(("kind", "tried"), [(DeviceKind.AUTO, 1), (DeviceKind.MPS, 1), (DeviceKind.SIMULATED, 0)])
def test_a_real_device_is_tried(kind: DeviceKind, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    calls: list[int] = []

    def run() -> Preflight:
        calls.append(1)
        return Preflight({"device": "torch has one"}, "", 1.0)

    result = require_working_device(kind, print, run)
    assert len(calls) == tried
    assert (result is None) == (tried == 0)


def test_another_system_has_no_device_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    assert require_working_device(DeviceKind.AUTO, print, lambda: pytest.fail("it was tried")) is None


def test_a_device_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    with pytest.raises(PreflightError) as raised:
        require_working_device(DeviceKind.AUTO, print, lambda: Preflight({}, "memory: out of memory", 1.0))
    assert "Preflight failed at memory: out of memory" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "macOS 14 or newer" in what_to_do("device: none")


def test_a_failed_command_has_a_next_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(machine, "is_virtual", lambda: True)
    result = Preflight({"device": "torch has one"}, "memory: none", 1.0)
    monkeypatch.setattr("mpsmith.reports.evidence.preflight.preflight", lambda: result)
    with pytest.raises(typer.Exit):
        command()
    said = capsys.readouterr()
    assert "virtual machine: audits run here" in said.out
    begins, error = said.err.splitlines()
    assert "under 2 minutes" in begins
    assert error == "error: preflight failed at memory: none (restart the Mac or free memory)"


def test_evidence_needs_the_steps_that_run() -> None:
    assert tuple(STEPS) == PREFLIGHT_STEPS


def test_notes_in_evidence_hold_no_names() -> None:
    private = PrivateNames(users=("ada",))
    part = Preflight({"device": "of ada"}, "", 31.54).part(private)
    assert part.steps == {"device": "of <user>"}
    assert part.seconds == 31.5
