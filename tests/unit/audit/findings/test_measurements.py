"""What the registry gets to know of a run: one measurement an operator, and none of what was not executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mpsmith.audit.findings.audited_surface import audited_surface, with_coverage
from mpsmith.audit.findings.measurements import measurements, measurements_of
from mpsmith.audit.findings.summary import summarize, verdicts
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface import installed_surface
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.releases.surface.reachability import Unreachable
from mpsmith.audit.store.connection import StoreError
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store
from mpsmith.registry.sync import Measurement, sync
from mpsmith.simulator.device.coverage_profile import CoverageProfile
from support.stores import begun, opinfo
from support.surfaces import overload, surface

PASSED = Outcome(CaseVerdict.PASSED)
FELL_BACK = Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::_linalg_svd.U",))


SURFACE = surface(
    overload("relu", Dispatch.NATIVE),
    overload("relu.out", Dispatch.COMPOSITE_EXPLICIT, generated_from="aten::relu"),
    overload("linalg_svd", Dispatch.COMPOSITE_IMPLICIT),
    overload("_linalg_svd.U", Dispatch.MISSING),
    overload("mode", Dispatch.MISSING),
    overload("mkldnn_linear", Dispatch.MISSING, reach=Unreachable("mkldnn", "for x86 only")),
)


def record(
    path: Path,
    cases: Mapping[tuple[str, str], Sequence[Outcome]],
    calls: Mapping[str, bool],
    environment: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> None:
    with Store.open_or_create(path) as store:
        recording = begun(store, settings, {"torch": "2.13.0+cpu", **(environment or {})})
        for (operator, dtype), outcomes in cases.items():
            recording.add(opinfo(operator, dtype), *outcomes, calls=calls)
        recording.finish()


def measured(path: Path) -> dict[str, Measurement]:
    with Store.open(path) as store:
        run = store.latest_run()
        measured = measurements_of(summarize(store, run, SURFACE))
        assert measurements_of(verdicts(store, run, SURFACE)) == measured  # the verdicts alone give the same
        return {m.operator: m for m in measured}


def test_an_executed_operator_is_measured_with_its_dtypes_and_overloads(tmp_path: Path) -> None:
    refused = Outcome(CaseVerdict.DTYPE_GAP, message="not implemented for 'Bool'")
    cases = {("relu", "float32"): [PASSED], ("relu", "int8"): [PASSED], ("relu", "bool"): [refused]}
    record(tmp_path / "store", cases, {"aten::relu": True})
    assert measured(tmp_path / "store")["aten::relu"] == Measurement(
        operator="aten::relu",
        torch="2.13.0+cpu",
        device="simulated",
        profile="2.13.0",
        overloads={"aten::relu": "native"},
        verdict="dtype gap",
        dtypes={"passed": ["float32", "int8"], "dtype gap": ["bool"]},
    )


def test_a_real_device_is_called_so(tmp_path: Path) -> None:
    real = {"simulated": False, "profile": None}
    record(tmp_path / "store", {("relu", "float32"): [PASSED]}, {"aten::relu": True}, real)
    relu = measured(tmp_path / "store")["aten::relu"]
    assert (relu.device, relu.profile) == ("mps", None)


def test_a_composite_operator_names_its_fallbacks(tmp_path: Path) -> None:
    calls = {"aten::linalg_svd": True, "aten::_linalg_svd.U": False}
    record(tmp_path / "store", {("linalg.svd", "float32"): [FELL_BACK]}, calls)
    by_name = measured(tmp_path / "store")
    assert (by_name["aten::linalg_svd"].verdict, by_name["aten::linalg_svd"].reason) == (
        "fallback",
        "through aten::_linalg_svd.U",
    )
    assert (by_name["aten::_linalg_svd"].verdict, by_name["aten::_linalg_svd"].reason) == ("fallback", None)


def test_unexecuted_overloads_are_measured_only_if_a_rule_excludes_them(tmp_path: Path) -> None:
    record(tmp_path / "store", {("relu", "float32"): [PASSED]}, {"aten::relu": True})
    by_name = measured(tmp_path / "store")
    assert sorted(by_name) == ["aten::mkldnn_linear", "aten::relu"]
    assert (by_name["aten::mkldnn_linear"].verdict, by_name["aten::mkldnn_linear"].reason) == (
        "unreachable",
        "mkldnn: for x86 only",
    )


@pytest.mark.parametrize("settings", [{"samples": "quick"}, {"ops": ["relu"]}, {"dtypes": ["float32"]}])
def test_only_a_whole_audit_reports_unreached_operators(tmp_path: Path, settings: dict[str, object]) -> None:
    record(tmp_path / "store", {("relu", "float32"): [PASSED]}, {"aten::relu": True}, settings=settings)
    assert sorted(measured(tmp_path / "store")) == ["aten::relu"]


@pytest.mark.parametrize("settings", [{"ops": ["linalg.svd"]}, {"dtypes": ["float32"]}, {"sources": ["opinfo"]}])
def test_a_narrowed_audit_measures_only_the_selection(tmp_path: Path, settings: dict[str, object]) -> None:
    calls = {"aten::linalg_svd": True, "aten::_linalg_svd.U": False, "aten::relu": True}
    record(tmp_path / "store", {("linalg.svd", "float32"): [FELL_BACK, PASSED]}, calls, settings=settings)
    assert sorted(measured(tmp_path / "store")) == ["aten::_linalg_svd", "aten::linalg_svd"]
    record(tmp_path / "store", {("linalg.svd", "float32"): [FELL_BACK, PASSED]}, calls)
    assert "aten::relu" in measured(tmp_path / "store")


def test_operators_outside_the_surface_are_measured_when_users_call_them(tmp_path: Path) -> None:
    calls = {"torchvision::nms": True, "prims::add": False}
    record(tmp_path / "store", {("nms", "float32"): [PASSED]}, calls)
    by_name = measured(tmp_path / "store")
    assert by_name["torchvision::nms"].verdict == "native"
    assert by_name["torchvision::nms"].overloads == {}
    assert "prims::add" not in by_name


def test_measurements_of_a_store_can_be_synced_and_synced_again(tmp_path: Path) -> None:
    record(tmp_path / "store", {("relu", "float32"): [PASSED]}, {"aten::relu": True})
    rows = measurements(tmp_path / "store")
    first = sync(tmp_path / "registry", rows)
    again = sync(tmp_path / "registry", rows)
    assert set(first.added) == {m.operator for m in rows} == set(again.unchanged)


def test_the_newest_run_counts_unless_another_is_asked_for(tmp_path: Path) -> None:
    record(tmp_path / "store", {("relu", "float32"): [PASSED]}, {"aten::relu": True})
    record(tmp_path / "store", {("mode", "float32"): [PASSED]}, {"aten::mode": True})
    newest = {m.operator for m in measurements(tmp_path / "store")}
    first = {m.operator for m in measurements(tmp_path / "store", run=1)}
    assert newest - first == {"aten::mode"}
    assert first - newest == {"aten::relu"}
    with pytest.raises(StoreError, match="no run 9"):
        measurements(tmp_path / "store", run=9)


def test_the_surface_of_a_run_has_the_coverage_of_its_profile() -> None:
    run = Run(1, "", None, {"profile": "2.0.1"}, {"simulated": True})
    surface = audited_surface(run)
    assert surface.release == "2.0.1"
    assert surface.by_name["aten::softshrink.out"].dispatch is Dispatch.MISSING
    assert surface.by_name["aten::relu"].dispatch is Dispatch.NATIVE
    assert audited_surface(Run(1, "", None, {"profile": None}, {})) == installed_surface()


def test_a_profile_changes_kernels_and_nothing_else() -> None:
    coverage = CoverageProfile("9.9", frozenset({"mode"}), frozenset(), frozenset({"_linalg_svd.U"}))
    dispatch = {o.name.removeprefix("aten::"): o.dispatch for o in with_coverage(SURFACE, coverage).overloads}
    assert dispatch == {
        "relu": Dispatch.MISSING,
        "relu.out": Dispatch.COMPOSITE_EXPLICIT,
        "linalg_svd": Dispatch.COMPOSITE_IMPLICIT,
        "_linalg_svd.U": Dispatch.ALWAYS_FALLS_BACK,
        "mode": Dispatch.NATIVE,
        "mkldnn_linear": Dispatch.MISSING,
    }
