from typing import get_args

import pytest

from mpsmith.registry.drift import drift_of
from mpsmith.registry.model import Entry, Status, Verdict


def entry(status: str | None, verdict: str, device: str = "mps", **more: object) -> Entry:
    fields: dict[str, object] = {"operator": "aten::mode", "status": status, "kernel": "mode", "reason": "because"}
    fields["evidence"] = {device: {"torch": "2.13.0", "source": "0" * 12, "checks": ["numerics"]}}
    fields["measured"] = {device: {"torch": "2.13.0", "verdict": verdict, **more}}
    return Entry.model_validate(fields)


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_without_a_status_nothing_drifts(verdict: str) -> None:
    assert drift_of(entry(None, verdict)) is None


def test_nothing_drifts_before_it_was_measured() -> None:
    assert drift_of(Entry(operator="aten::mode", status=Status.native)) is None


@pytest.mark.parametrize("status", ["wrong", "dtype gap"])
@pytest.mark.parametrize("verdict", ["native", "composite"])
def test_the_simulated_device_does_not_refute_wrong_values(status: str, verdict: str) -> None:
    assert drift_of(entry(status, verdict, "simulated")) is None
    assert drift_of(entry(status, verdict, "mps")) is not None


def test_the_simulated_device_reports_missing_operators() -> None:
    assert drift_of(entry("wrong", "missing", "simulated")) is not None
    assert drift_of(entry("native", "missing", "simulated")) is not None


@pytest.mark.parametrize(("status", "drifts"), [("implemented", False), ("wrong", False), ("native", True)])
def test_a_kernel_is_still_needed_where_some_cases_are_wrong(status: str, drifts: bool) -> None:
    partly = {"wrong": ["float32"]}
    assert (drift_of(entry(status, "native", partly=partly)) is not None) == drifts
    assert drift_of(entry("implemented", "native")) is not None


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [
        ("missing", "native", "marked missing, but native now on mps with the coverage of torch 2.13.0: it may be"),
        ("native", "missing", "marked native, but it has no kernel on mps"),
        ("verified", "native", "its kernel may no longer be needed"),
        ("native", "crash", "it crashes the process"),
        ("native", "unreachable", "mark it not applicable"),
    ],
)
def test_a_drift_has_a_reason_and_a_next_step(status: str, verdict: str, words: str) -> None:
    drift = drift_of(entry(status, verdict))
    assert drift is not None
    assert words in drift.explanation
    assert str(drift) == f"aten::mode: {drift.explanation}"


def test_a_simulated_finding_says_so() -> None:
    drift = drift_of(entry("missing", "native", "simulated", profile="2.15.0"))
    assert drift is not None
    assert "on the simulated device with the coverage of torch 2.15.0" in drift.explanation
    assert (drift.device, drift.release) == ("simulated", "2.15.0")


def test_the_reason_of_a_measurement_is_the_advice() -> None:
    drift = drift_of(entry("missing", "unreachable", reason="works on a format for CPUs"))
    assert drift is not None
    assert drift.explanation.endswith("works on a format for CPUs")
