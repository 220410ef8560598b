"""Operators by devices and releases: the wheel, the simulated device and each real one in columns of their own."""

from __future__ import annotations

from mpsmith.audit.model.verdicts import CaseVerdict, OverloadVerdict
from mpsmith.audit.releases.coverage.table import Standing
from mpsmith.reports.evidence.device_reports import LISTED, shown_devices
from mpsmith.reports.evidence.devices import DeviceFamily, findings_by_device
from mpsmith.reports.evidence.matrix import ColumnKind, Matrix, MatrixColumn, Wheels
from support.evidence_files import evidence

WRONG, PASSES = ({"aten::mode": {"float32": {verdict: 1}}} for verdict in ("wrong", "passed"))
WHEELS = Wheels(("2.9.1", "2.13.0"), {"mode": (Standing.MISSING, Standing.NATIVE), "sort": (None, Standing.NATIVE)})
M1, M3 = (MatrixColumn(ColumnKind.REAL_DEVICE, f"Apple M{number}", "15") for number in (1, 3))


def test_what_is_evidence_of_other_things_has_a_column_of_its_own() -> None:
    given = [
        evidence(WRONG, simulated=True),
        evidence(PASSES),
        evidence(WRONG, chip="Apple M1"),
        evidence(chip="Apple M1 Max"),
    ]
    found = Matrix(findings_by_device(given), WHEELS)
    assert [str(column) for column in found.columns] == [
        "from the wheel",
        "SIMULATED",
        "Apple M1, macOS 15",
        "Apple M3, macOS 15",
    ]
    newest, oldest = found.of("aten::mode")
    assert (newest.release, newest.declared) == ("2.13.0", Standing.NATIVE)
    assert {str(column): each.verdict.value for column, each in newest.found.items()} == {
        "SIMULATED": "wrong",
        "Apple M1, macOS 15": "native",
        "Apple M3, macOS 15": "native",
    }
    assert (oldest.release, oldest.declared, oldest.found) == ("2.9.1", Standing.MISSING, {})


def test_real_devices_are_in_conflict_and_simulated_ones_are_not() -> None:
    def conflict(*given: object) -> bool:
        (newest, *_) = Matrix(findings_by_device(given), WHEELS).of("aten::mode")  # type: ignore[arg-type]
        return newest.in_conflict

    assert conflict(evidence(PASSES), evidence(WRONG, chip="Apple M1"))
    assert not conflict(evidence(PASSES), evidence(WRONG, simulated=True))
    assert not conflict(evidence(PASSES), evidence(PASSES, chip="Apple M1"))


def test_releases_that_only_a_device_had_are_in_the_matrix() -> None:
    found = Matrix(findings_by_device([evidence(PASSES, torch="2.10.0")]), WHEELS)
    assert found.releases == ("2.13.0", "2.10.0", "2.9.1")
    assert [(row.release, row.declared) for row in found.of("aten::mode")] == [
        ("2.13.0", Standing.NATIVE),
        ("2.10.0", None),
        ("2.9.1", Standing.MISSING),
    ]


def test_an_in_place_twin_is_declared_with_its_operator() -> None:
    found = Matrix({}, WHEELS, ["aten::sort_"])
    assert found.operators == ("aten::sort_",)
    assert [row.release for row in found.of("aten::sort_")] == ["2.13.0"]
    assert list(found.of("aten::unheard_of")) == []


def test_a_device_speaks_with_the_newest_torch_that_it_ran() -> None:
    given = [evidence(WRONG, torch="2.9.1"), evidence(PASSES), evidence(WRONG, chip="Apple M1", torch="2.9.1")]
    said = Matrix(findings_by_device(given), WHEELS).newest("aten::mode")
    assert said == {M3: ("2.13.0", OverloadVerdict.NATIVE), M1: ("2.9.1", OverloadVerdict.WRONG)}


def test_the_device_of_an_audit_is_of_the_kind_that_its_evidence_would_be() -> None:
    simulated = {"simulated": True, "torch": "2.13.0+cpu", "profile": "2.15.0"}
    assert DeviceFamily.of_audit(simulated) == DeviceFamily.of(evidence(simulated=True, profile="2.15.0"))
    real = {"simulated": False, "torch": "2.13.0", "chip": "Apple M3 Max", "os": "macOS-15.5-arm64-arm-64bit"}
    assert DeviceFamily.of_audit(real) == DeviceFamily.of(evidence())


def test_a_report_is_of_the_newest_file_and_lists_the_worst_cases() -> None:
    found = {"aten::mode": {"float32": {"wrong": LISTED}, "int64": {"crash": 2}, "bool": {"fallback": 3}}}
    old = evidence(PASSES, collected="2025-01-01T00:00:00+00:00", chip="Apple M3")
    for given in ([old, evidence(found)], [evidence(found), old]):
        (report,) = shown_devices(given).reports
        assert report.machine.chip == "Apple M3 Pro"
        assert [case.verdict for case in report.failing[:3]] == [CaseVerdict.CRASH] * 2 + [CaseVerdict.WRONG]
        assert (len(report.failing), report.more) == (LISTED, 2)
