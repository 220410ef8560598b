"""torch.mps itself: the table of probes covers every public name, and each way a probe can end has its status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from mpsmith.audit.running.mps_module.probe import ProbeError, expect, refuses, row
from mpsmith.audit.running.mps_module.probes import TABLE
from mpsmith.audit.running.mps_module.probing import listed, probed
from mpsmith.audit.running.mps_module.surface import public_names, resolve
from mpsmith.audit.store.records import ModuleRow, ModuleStatus
from mpsmith.audit.store.store import Store


def fail() -> None:
    raise ProbeError("does the wrong thing")


def crash() -> None:
    raise TypeError("two\nlines")


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[str, ...]]:
    module = ModuleType("probing_package")
    module.mpsmith_module_probes = [  # type: ignore[attr-defined]
        row("torch.mps.good", lambda: None, "torch.ones"),
        row("torch.mps.fails", fail, "torch.ones"),
        row("torch.mps.raises", crash, "torch.ones"),
        row("torch.mps.of_a_later_torch", lambda: None),
    ]
    monkeypatch.setitem(sys.modules, "probing_package", module)
    return lambda: ("probing_package",)


def test_every_public_name_of_this_torch_has_a_probe() -> None:
    assert set(public_names()) <= {probe.name for probe in TABLE}


def test_a_name_is_in_the_table_once() -> None:
    names = [probe.name for probe in TABLE]
    assert len(names) == len(set(names)) >= 60


def test_the_names_are_those_that_users_see() -> None:
    names = public_names()
    assert {"torch.mps.synchronize", "torch.mps.Event.elapsed_time", "torch.mps.profiler.metal_capture"} <= set(names)
    assert {"torch.backends.mps.is_available", "torch.accelerator.current_accelerator"} <= set(names)
    assert not [name for name in names if "._" in name or name.endswith((".torch", ".Tensor", ".Any", ".Optional"))]


def test_a_new_name_of_torch_is_listed_as_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    def brand_new() -> None: ...

    brand_new.__module__ = "torch.mps"
    monkeypatch.setattr(torch.mps, "brand_new", brand_new, raising=False)
    assert listed(())[-1] == "torch.mps.brand_new"
    assert probed("torch.mps.brand_new", ()).status is ModuleStatus.NOT_PROBED


@pytest.mark.parametrize(
    ("name", "status", "detail"),
    [
        ("torch.mps.good", ModuleStatus.WORKS, ""),
        ("torch.mps.fails", ModuleStatus.FAILS, "does the wrong thing"),
        ("torch.mps.raises", ModuleStatus.FAILS, "TypeError: two lines"),
        ("torch.mps.of_a_later_torch", ModuleStatus.MISSING, "this torch has no torch.mps.of_a_later_torch"),
    ],
)
def test_each_end_of_a_probe_has_its_status(
    package: Callable[[], tuple[str, ...]], name: str, status: ModuleStatus, detail: str
) -> None:
    assert name in listed(package())
    assert probed(name, package()) == ModuleRow(name, status, detail)


def test_probe_fails_if_the_call_is_not_refused() -> None:
    refuses(lambda: 1 / 0, ZeroDivisionError)
    with pytest.raises(ProbeError, match="does not raise ValueError"):
        refuses(lambda: None, ValueError)
    with pytest.raises(ProbeError, match="no"):
        expect(False, "no")


def test_every_name_that_a_probe_needs_is_dotted_below_torch() -> None:
    assert all(needed.startswith("torch.") for probe in TABLE for needed in probe.needs)
    assert resolve("torch.mps.synchronize") is torch.mps.synchronize
    assert resolve("torch.mps.nothing.at.all") is None


# ---- the store


def test_rows_come_back_in_the_order_of_names_and_are_never_overwritten(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store.sqlite") as store:
        run = store.begin_run({}, {"simulated": True}).id
        rows = [ModuleRow(name, ModuleStatus.WORKS) for name in ("torch.mps.b", "torch.mps.a")]
        for row in rows:
            store.add_module_row(run, row)
        store.add_module_row(run, ModuleRow("torch.mps.b", ModuleStatus.FAILS, "again"))
        assert store.module_rows(run) == rows[::-1]
        assert store.module_rows(run + 1) == []
