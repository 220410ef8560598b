"""Which machines may share a run."""

from __future__ import annotations

from typing import Any

from mpsmith.audit.running.cluster import members

MAC = {"torch": "2.13.0", "chip": "Apple M4", "cpu": "DEFAULT", "simulated": False, "profile": None, "os": "macOS-26.1"}


def of(**changes: Any) -> dict[str, str]:
    return members.device_of({**MAC, "python": "3.12.1", "variables": {}, **changes})


def test_names_decisive_differences() -> None:
    assert members.difference(of(python="3.13.0", mpsmith="9"), of()) == ""
    assert members.difference(of(torch="2.12.0", chip="Apple M1"), of()) == (
        "torch 2.12.0, not 2.13.0; chip Apple M1, not Apple M4"
    )
    assert members.difference(of(os="macOS-15.0"), of()) == "os macOS-15.0, not macOS-26.1"
    variables = {"PYTORCH_MPS_FAST_MATH": "1"}
    assert members.difference(of(variables=variables), of()) == "variables PYTORCH_MPS_FAST_MATH=1, not none"


def test_the_system_says_nothing_about_a_simulated_device() -> None:
    assert of(simulated=True, os="Linux-6.1") == of(simulated=True, os="Linux-6.2")
    assert members.difference(of(simulated=True), of()).startswith("simulated True, not False")


def test_a_stored_environment_describes_the_same_device() -> None:
    assert members.device_of({"torch": "2.13.0", "simulated": True}) == members.device_of(
        {"torch": "2.13.0", "simulated": True, "shipped": None, "variables": {}}
    )
