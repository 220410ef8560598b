"""Collecting evidence: it resumes, a crash fails one family, and a Mac's tools are not asked about its owner."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.worker_exit import DEVICE_LOST
from mpsmith.audit.store.store import Store
from mpsmith.reports.evidence import collecting
from mpsmith.reports.evidence.checking import problems_of
from mpsmith.reports.evidence.collecting import Collection, collect
from mpsmith.reports.evidence.files import EvidenceError
from mpsmith.reports.evidence.kernel_runs import KernelTask, run_kernels
from mpsmith.reports.evidence.machine import machine_facts, output_of
from mpsmith.reports.evidence.preflight import Preflight
from mpsmith.reports.evidence.privacy import NO_NAMES, PrivateNames
from mpsmith.reports.evidence.schema import PREFLIGHT_STEPS
from support.evidence_files import NOW
from support.stores import begun, opinfo

PROFILE = {
    "SPDisplaysDataType": [{"_name": "Apple M3 Pro", "sppci_cores": "18"}, {"_name": "other", "sppci_cores": "x"}]
}
ANSWERS = {
    ("sysctl", "-n", "machdep.cpu.brand_string"): "Apple M3 Pro",
    ("sysctl", "-n", "hw.memsize"): str(36 * 2**30),
    ("sysctl", "-n", "kern.hv_vmm_present"): "0",
    ("system_profiler", "-json", "SPDisplaysDataType"): json.dumps(PROFILE),
    ("sw_vers", "-productVersion"): "15.5",
    ("sw_vers", "-buildVersion"): "24F74",
}


def mac(command: Sequence[str]) -> str:
    return ANSWERS[tuple(command)]


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tests run on a Mac, too: no preflight of its device."""
    monkeypatch.setattr("platform.system", lambda: "Linux")


@pytest.fixture
def darwin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")


@pytest.mark.usefixtures("darwin")
def test_a_mac_is_read_from_its_own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_MPS_LOG", "/Users/ada/log")
    facts = machine_facts({"torch": "2.13.0", "profile": None}, PrivateNames(users=("ada",)), mac)
    assert (facts.chip, facts.gpu_cores, facts.memory_gib) == ("Apple M3 Pro", 18, 36)
    assert (facts.system, facts.release, facts.build, facts.machine) == ("macOS", "15.5", "24F74", "arm64")
    assert facts.variables["PYTORCH_MPS_LOG"] == "<path>"


@pytest.mark.usefixtures("darwin")
def test_a_mac_without_its_tools_is_unknown() -> None:
    facts = machine_facts({"torch": "2.13.0"}, NO_NAMES, lambda command: "")
    assert (facts.chip, facts.gpu_cores, facts.memory_gib, facts.build) == ("unknown", None, None, None)


@pytest.mark.parametrize("profile", ["", "no json", "[]", '{"SPDisplaysDataType": 3}', '{"SPDisplaysDataType": [3]}'])
@pytest.mark.usefixtures("darwin")
def test_an_unexpected_profile_gives_no_cores(profile: str) -> None:
    facts = machine_facts(
        {"torch": "2.13.0"}, NO_NAMES, lambda command: profile if "system_profiler" in command else ""
    )
    assert facts.gpu_cores is None


def test_a_tool_that_is_absent_or_fails_gives_nothing() -> None:
    assert output_of(["mpsmith-no-such-tool"]) == ""
    assert output_of(["false"]) == ""
    assert output_of(["echo", "15.5"]) == "15.5"


def task(family: str, **changed: object) -> KernelTask:
    fields = {"family": family, "open_device": os.abort, "simulated": True, "private": NO_NAMES} | changed
    return KernelTask(**fields)  # type: ignore[arg-type]


def test_a_crash_fails_one_family() -> None:
    done: list[str] = []
    rows = run_kernels([task("mode"), task("heaviside")], done.append)
    assert [(row.family, row.ended, row.passed) for row in rows] == [
        ("mode", "its process ended with signal 6", False),
        ("heaviside", "its process ended with signal 6", False),
    ]
    assert done == ["mode", "heaviside"]
    assert [row.simulated for row in rows] == [True, True]


def test_a_device_that_stops_computing_fails_one_family() -> None:
    rows = run_kernels([task("mode", open_device=partial(os._exit, DEVICE_LOST)), task("heaviside")], lambda _: None)
    assert [row.ended for row in rows] == [
        "the device computed nothing after its kernels ran",
        "its process ended with signal 6",
    ]


def test_a_hang_fails_one_family() -> None:
    (row,) = run_kernels([task("mode", open_device=signal.pause)], lambda family: None, seconds=1)
    assert row.ended == "it did not end in 1 seconds"


SETTINGS = Settings(ops=("mode",))


def audit_into(
    store: Path, verdict: CaseVerdict = CaseVerdict.WRONG, finished: bool = True, changed: dict[str, str] | None = None
) -> None:
    environment = {"torch": "2.13.0", "simulated": False, "profile": None} | (changed or {})
    with Store.open_or_create(store) as opened:
        recording = begun(opened, SETTINGS.recorded(), environment)
        recording.add(opinfo("mode"), Outcome(verdict, message="at /Users/ada/x"), calls={"mode": True})
        if finished:
            recording.finish()


@pytest.mark.usefixtures("darwin")
def test_a_real_device_gives_consistent_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "run_audit", lambda settings, store, **_: audit_into(store))
    monkeypatch.setattr(machine_facts, "__defaults__", (mac,))
    tried = Preflight(dict.fromkeys(PREFLIGHT_STEPS, "works"), "", 31.0)
    monkeypatch.setattr(collecting, "require_working_device", lambda kind, say: tried)
    evidence = collect(Collection(SETTINGS, [], tmp_path, os.abort), lambda text: None, private=NO_NAMES)
    assert not evidence.simulated
    assert problems_of(evidence, NOW.replace(year=2999)) == []
    assert list(evidence.audit.failing_cases()) == [("opinfo:mode:float32:0", CaseVerdict.WRONG, "at <path>")]


@pytest.mark.parametrize(("finished", "resumed"), [(True, []), (False, [True])])
def test_a_stopped_audit_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool, resumed: list[bool]
) -> None:
    audit_into(tmp_path / collecting.STORE, finished=finished)
    seen: list[bool] = []
    monkeypatch.setattr(collecting, "run_audit", lambda settings, store, *, resume, say: seen.append(resume))
    collect(Collection(SETTINGS, [], tmp_path, os.abort), lambda text: None, private=NO_NAMES)
    assert seen == resumed


@pytest.mark.parametrize("changed", [{"torch": "2.9.0"}, {"mpsmith": "0.0.1"}, {"os": "macOS-14.1-arm64-arm-64bit"}])
def test_an_audit_of_another_torch_mpsmith_or_system_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    audit_into(tmp_path / collecting.STORE, changed=changed)
    seen: list[bool] = []
    monkeypatch.setattr(collecting, "run_audit", lambda settings, store, *, resume, say: seen.append(resume))
    said: list[str] = []
    collect(Collection(SETTINGS, [], tmp_path, os.abort), said.append, private=NO_NAMES)
    assert seen == [False]
    assert f"is of another {next(iter(changed))}" in said[0]


def test_rejects_an_audit_without_an_executed_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "run_audit", lambda settings, store, **_: audit_into(store, CaseVerdict.SKIPPED))
    with pytest.raises(EvidenceError, match="no case was executed"):
        collect(Collection(SETTINGS, [], tmp_path, os.abort), lambda text: None, private=NO_NAMES)
