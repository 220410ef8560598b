"""Evidence of many devices: the newest of each kind counts, and where kinds disagree all of them are shown."""

from __future__ import annotations

from mpsmith.audit.model.verdicts import OverloadVerdict
from mpsmith.registry.sync import Measurement
from mpsmith.reports.evidence.devices import DeviceFamily, conflicts, findings_by_device, real_measurements
from mpsmith.reports.evidence.schema import EvidenceFile
from support.evidence_files import evidence

PASSES = {"aten::mode": {"float32": {"passed": 3}}}
WRONG = {"aten::mode": {"float32": {"wrong": 3}}}
SORT = {"aten::sort": {"float32": {"passed": 1}}}


def measured_by(*files: EvidenceFile) -> list[Measurement]:
    return real_measurements(findings_by_device(files))


def test_chips_of_one_family_are_one_kind() -> None:
    kinds = {str(DeviceFamily.of(evidence(chip=chip))) for chip in ("Apple M3", "Apple M3 Pro", "Apple M3 Ultra")}
    assert kinds == {"Apple M3, macOS 15, torch 2.13.0"}
    others = [evidence(chip="Apple M4"), evidence(release="26.0"), evidence(torch="2.12.0"), evidence()]
    assert len({DeviceFamily.of(file) for file in others}) == 4


def test_the_newest_evidence_of_a_kind_counts_operator_by_operator() -> None:
    old = evidence({**WRONG, **SORT}, collected="2026-01-01T00:00:00+00:00", chip="Apple M3")
    new = evidence(PASSES, collected="2026-02-01T00:00:00+00:00", chip="Apple M3 Max")
    for given in ([old, new], [new, old]):
        ((_, by_operator),) = findings_by_device(given).items()
        assert {name: (finding.verdict.value, finding.day) for name, finding in by_operator.items()} == {
            "aten::mode": ("native", "2026-02-01"),
            "aten::sort": ("native", "2026-01-01"),
        }


def test_an_operator_has_the_worst_of_its_overloads() -> None:
    given = {
        "aten::mode": {"float32": {"passed": 9}, "int64": {"passed": 7, "wrong": 2}},
        "aten::mode.values": {"float32": {"fallback": 1}},
    }
    ((_, by_operator),) = findings_by_device([evidence(given)]).items()
    finding = by_operator["aten::mode"]
    assert finding.verdict is OverloadVerdict.FALLBACK
    assert finding.dtypes == {"fallback": ("float32",), "passed": ("int64",)}
    assert finding.partly == {"wrong": ("int64",)}
    assert finding.executed == 19


def test_devices_that_disagree_are_shown_side_by_side() -> None:
    findings = findings_by_device([evidence(PASSES), evidence(WRONG, chip="Apple M1"), evidence(SORT, chip="Apple M1")])
    (conflict,) = conflicts(findings)
    assert str(conflict) == "aten::mode with torch 2.13.0: Apple M1, macOS 15: wrong; Apple M3, macOS 15: native"
    assert conflict.worst is OverloadVerdict.WRONG


def test_another_torch_and_the_simulated_device_do_not_disagree() -> None:
    others = [evidence(WRONG, torch="2.12.0"), evidence(WRONG, simulated=True)]
    assert conflicts(findings_by_device([evidence(PASSES), *others])) == []


def test_the_registry_measures_with_the_newest_torch() -> None:
    (measured,) = measured_by(evidence(PASSES), evidence(WRONG, torch="2.9.1", chip="Apple M4"))
    assert (measured.torch, measured.verdict, measured.device) == ("2.13.0", "native", "mps")
    assert (measured.dtypes, measured.overloads) == ({"passed": ("float32",)}, {"aten::mode": "native"})


def test_the_registry_has_the_worst_of_devices_that_disagree_and_says_so() -> None:
    (measured,) = measured_by(evidence(PASSES), evidence(WRONG, chip="Apple M1"))
    assert measured.verdict == "wrong"
    assert measured.reason == "devices differ: Apple M1, macOS 15: wrong; Apple M3, macOS 15: native"


def test_the_simulated_device_measures_nothing() -> None:
    assert measured_by(evidence(WRONG, simulated=True)) == []


def test_an_operator_that_newer_devices_did_not_run_is_measured_by_the_older() -> None:
    by_operator = measured_by(evidence(PASSES), evidence(SORT, torch="2.9.1"), evidence(WRONG, torch="2.10.0"))
    assert [(row.operator, row.torch) for row in by_operator] == [("aten::mode", "2.13.0"), ("aten::sort", "2.9.1")]
