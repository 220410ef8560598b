"""Operators by devices and releases: the wheel, the simulated device and each real one in separate columns."""

from __future__ import annotations

from mpsmith.audit.releases.coverage.table import OperatorSupport
from mpsmith.reports.evidence.devices import DeviceFamily, findings_by_device
from mpsmith.reports.evidence.matrix import ColumnKind, Matrix, MatrixColumn, Wheels
from support.evidence_files import evidence

WRONG, PASSES = ({"aten::mode": {"float32": {verdict: 1}}} for verdict in ("wrong", "passed"))
WHEELS = Wheels(
    ("2.9.1", "2.13.0"),
    {"mode": (OperatorSupport.MISSING, OperatorSupport.NATIVE), "sort": (None, OperatorSupport.NATIVE)},
)
M1, M3 = (MatrixColumn(ColumnKind.REAL_DEVICE, f"Apple M{number}", "15") for number in (1, 3))


def test_each_kind_of_evidence_has_its_own_column() -> None:
    given = [
        evidence(WRONG, simulated=True),
        evidence(PASSES),
        evidence(WRONG, chip="Apple M1"),
        evidence(chip="Apple M1 Max"),
    ]
    matrix = Matrix(findings_by_device(given), WHEELS)
    assert [str(column) for column in matrix.columns] == [
        "from the wheel",
        "SIMULATED",
        "Apple M1, macOS 15",
        "Apple M3, macOS 15",
    ]
    newest, oldest = matrix.of("aten::mode")
    assert (newest.release, newest.declared) == ("2.13.0", OperatorSupport.NATIVE)
    assert {str(column): finding.verdict.value for column, finding in newest.findings.items()} == {
        "SIMULATED": "wrong",
        "Apple M1, macOS 15": "native",
        "Apple M3, macOS 15": "native",
    }
    assert (oldest.release, oldest.declared, oldest.findings) == ("2.9.1", OperatorSupport.MISSING, {})


def test_real_devices_are_in_conflict_and_simulated_ones_are_not() -> None:
    def conflict(*given: object) -> bool:
        (newest, *_) = Matrix(findings_by_device(given), WHEELS).of("aten::mode")  # type: ignore[arg-type]
        return newest.in_conflict

    assert conflict(evidence(PASSES), evidence(WRONG, chip="Apple M1"))
    assert not conflict(evidence(PASSES), evidence(WRONG, simulated=True))
    assert not conflict(evidence(PASSES), evidence(PASSES, chip="Apple M1"))


def test_releases_that_only_a_device_had_are_in_the_matrix() -> None:
    matrix = Matrix(findings_by_device([evidence(PASSES, torch="2.10.0")]), WHEELS)
    assert matrix.releases == ("2.13.0", "2.10.0", "2.9.1")
    assert [(row.release, row.declared) for row in matrix.of("aten::mode")] == [
        ("2.13.0", OperatorSupport.NATIVE),
        ("2.10.0", None),
        ("2.9.1", OperatorSupport.MISSING),
    ]


def test_an_in_place_form_is_declared_with_its_operator() -> None:
    matrix = Matrix({}, WHEELS, ["aten::sort_"])
    assert matrix.operators == ("aten::sort_",)
    assert [row.release for row in matrix.of("aten::sort_")] == ["2.13.0"]
    assert list(matrix.of("aten::unheard_of")) == []


def test_the_device_of_an_audit_is_of_the_same_kind_as_its_evidence() -> None:
    simulated = {"simulated": True, "torch": "2.13.0+cpu", "profile": "2.15.0"}
    assert DeviceFamily.of_audit(simulated) == DeviceFamily.of(evidence(simulated=True, profile="2.15.0"))
    real = {"simulated": False, "torch": "2.13.0", "chip": "Apple M3 Max", "os": "macOS-15.5-arm64-arm-64bit"}
    assert DeviceFamily.of_audit(real) == DeviceFamily.of(evidence())
