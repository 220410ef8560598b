"""torch.mps itself, probed in worker processes as an audit does it: a crash and a hang cost a row each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.isolated import scratch_folder, worker_pool
from mpsmith.audit.running.module_probes import probe_module
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.records import ModuleRow, ModuleStatus, Run
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind

HERE = Path(__file__).parent
SETTINGS = Settings(device=DeviceKind.SIMULATED, workers=1, imports=("probing_package",))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleRow]:
    path = tmp_path_factory.mktemp("module") / "store.sqlite"
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(HERE))
    patch.setattr(sys, "path", [*sys.path, str(HERE)])
    with patch.context(), Store.create(path) as store, scratch_folder() as scratch:
        run: Run = store.begin_run({}, {"simulated": True})
        with worker_pool(SETTINGS, "fallback", path, scratch) as pool:
            # Seconds of processor time; a hang asleep costs five times as many.
            probe_module(pool, store, run, SETTINGS.imports, scratch, SETTINGS.workers, timeout=4.0)
        module_rows = store.module_rows(run.id)
    patch.undo()
    assert len({row.name for row in module_rows}) == len(module_rows)
    return {row.name: row for row in module_rows}


def test_a_crash_and_a_hang_cost_a_row_each(rows: dict[str, ModuleRow]) -> None:
    assert rows["torch.mps.aborting"].status is ModuleStatus.FAILS
    assert rows["torch.mps.aborting"].detail == "ends the process: SIGABRT: the end is near"
    assert rows["torch.mps.aborting_in_silence"].detail == "ends the process: SIGABRT"
    assert rows["torch.mps.hanging"] == ModuleRow("torch.mps.hanging", ModuleStatus.FAILS, "does not come back in time")
    assert rows["torch.mps.after_both"].status is ModuleStatus.WORKS


@pytest.mark.parametrize(
    "name",
    [
        "torch.mps.synchronize",
        "torch.mps.current_allocated_memory",
        "torch.mps.manual_seed",
        "torch.mps.set_rng_state",
        "torch.mps.Event.elapsed_time",
        "torch.mps.compile_shader",
        "torch.backends.mps.is_available",
        "torch.accelerator.current_accelerator",
        'torch.Generator(device="mps")',
        'torch.autocast("mps")',
        'torch.amp.GradScaler("mps")',
        'torch.set_default_device("mps")',
    ],
)
def test_functions_of_the_simulated_device_work(rows: dict[str, ModuleRow], name: str) -> None:
    assert rows[name] == ModuleRow(name, ModuleStatus.WORKS)


def test_gaps_of_the_device_and_of_torch_are_distinguished(rows: dict[str, ModuleRow]) -> None:
    assert rows["torch.mps.Stream"].status is ModuleStatus.MISSING
    assert rows["torch.mps.profiler.metal_capture"].status is ModuleStatus.FAILS
    assert ModuleStatus.NOT_PROBED not in {row.status for row in rows.values()}


def test_an_audit_probes_the_module_unless_it_is_about_a_few_operators(tmp_path: Path) -> None:
    asked: list[str] = []
    settings = Settings(device=DeviceKind.SIMULATED, workers=1, ops=("where",), sources=("known wrong",))
    patch = pytest.MonkeyPatch()
    patch.setattr("mpsmith.audit.running.isolated.probe_module", lambda *arguments: asked.append("probed"))
    with patch.context():
        run_audit(settings, tmp_path / "narrow.sqlite", resume=False, say=lambda text: None)
        assert asked == []
        whole = Settings(device=DeviceKind.SIMULATED, workers=1, sources=("known wrong",))
        run_audit(whole, tmp_path / "whole.sqlite", resume=False, say=lambda text: None)
        assert asked == ["probed"]
    patch.undo()
