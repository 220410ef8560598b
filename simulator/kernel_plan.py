"""Which operators get which kernel of the simulated device: the coverage profile, and where we must deviate from it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .coverage_profile import CoverageProfile

# Native whatever the profile says: overload -> why.
ALWAYS_NATIVE: dict[str, str] = {
    "copy_": "composite; asks a DispatchStub for mps, which a torch built without mps does not know",
    "conj_physical_": "composite; asks a DispatchStub for mps, as copy_ does",
    "convolution": "composite; its branch for mps is compiled out of this torch",
    "_convolution": "composite; its branch for mps is compiled out of this torch",
    "convolution_backward": "composite; its branch for mps is compiled out of this torch",
}

# Left to the composite kernel even if the profile lists it: overload -> why.
NEVER_NATIVE: dict[str, str] = {
    "_fused_rms_norm": "its backward has no kernel on the CPU either",
}

# Written out in C++ (csrc/factories.cpp), native in every profile.
WRITTEN_OUT: frozenset[str] = frozenset({"empty.memory_format", "empty_strided", "_copy_from", "_copy_from_and_resize"})


@dataclass(frozen=True)
class KernelPlan:
    """The overloads to register with each kind of kernel, sorted, all known to the running torch."""

    native: list[str]
    sparse: list[str]
    always_fallback: list[str]


def plan(profile: CoverageProfile, known: Set[str]) -> KernelPlan:
    """The plan for `profile` in a torch that has the aten overloads `known` (no namespace).

    A profile of another release may name overloads that this torch does not have; they are left out, as nothing can
    call them.
    """
    native = (profile.native | set(ALWAYS_NATIVE)) - set(NEVER_NATIVE) - WRITTEN_OUT
    always_fallback = profile.always_fallback - native
    return KernelPlan(
        native=sorted(native & known),
        sparse=sorted(profile.sparse & known),
        always_fallback=sorted(always_fallback & known),
    )
