"""The auditor on a real mps device: the same command as everywhere, without the simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

from mpsmith.audit.releases.surface import installed_surface
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.store.store import Store
from mpsmith.simulator.fallback_recorders import WarningRecorder
from mpsmith.simulator.opening import DeviceKind, open_device
from support.dispatch_tables import check_against_dispatcher


def test_the_real_device_is_chosen_by_itself() -> None:
    device = open_device(DeviceKind.AUTO, coverage_profile)
    assert not device.simulated
    assert isinstance(device.recorder, WarningRecorder)


def test_a_fallback_is_attributed_to_its_operator() -> None:
    recorder = open_device(DeviceKind.MPS, coverage_profile).recorder
    missing = next(
        overload for overload in installed_surface().overloads if overload.name == "aten::special_airy_ai.out"
    )
    x = torch.ones(3, device="mps")
    with recorder.recording() as fallbacks:
        torch.special.airy_ai(x)
        torch.special.airy_ai(x)
    expected = [missing.name] if missing.dispatch.value == "missing" else []
    assert fallbacks == expected


def test_an_audit_stores_results_of_the_real_device(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    command = [sys.executable, "-m", "mpsmith", "audit", "--samples", "quick", "--ops", "add,nn.functional.softshrink"]
    subprocess.run([*command, "--store", str(store)], check=True)
    with Store.open(store) as opened:
        run = opened.latest_run()
        cases = list(opened.cases(run.id))
    assert not run.simulated
    assert any(case.outcome.verdict.executed for case in cases)


def test_the_surface_agrees_with_the_dispatcher() -> None:
    assert check_against_dispatcher(installed_surface()) == []
