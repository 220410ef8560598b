"""Which machines may share one run: those whose results depend on the same things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....cache import fingerprint_of_code

# What decides about results, of everything that a run records of its environment; on a Mac the system too, whose
# part the kernels of many operators are.
DECIDES = ("torch", "chip", "cpu", "simulated", "profile", "shipped", "codegen", "variables")
# Their sources and data decide about cases and verdicts.
CODE = ("audit", "kernels", "simulator")


def code() -> str:
    """A fingerprint of the code that makes and judges cases here."""
    return fingerprint_of_code(*CODE)


def device_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The kind of device that an environment is of: machines with the same one may share a run."""
    names = DECIDES if environment.get("simulated") else (*DECIDES, "os")
    return {name: _word(environment.get(name)) for name in names}


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """In what the first kind of device differs from the other, "" where in nothing."""
    differing = (
        f"{name} {one.get(name, 'none')}, not {other.get(name, 'none')}"
        for name in sorted({*one, *other}, key=[*DECIDES, "os"].index)
        if one.get(name) != other.get(name)
    )
    return "; ".join(differing)


def in_words(device: Mapping[str, str]) -> str:
    """The kind of device for people."""
    simulated = "simulated device, " if device["simulated"] == "True" else ""
    return f"{simulated}{device['chip']}, torch {device['torch']}"


def _word(value: object) -> str:
    if not value and value is not False:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={of}" for name, of in sorted(value.items()))
    return str(value)
