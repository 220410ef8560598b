"""A case source whose operators do what must cost one case each. Imported by the workers through --import."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import torch

from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples
from mpsmith.simulator.clang import Limits
from mpsmith.simulator.metal import compiler
from mpsmith.simulator.metal.torch_hook import compile_shader


def harmless(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def on_mps_only(deed):
    """The CPU reference stays harmless; the deed is done where the tensor is on mps."""

    def call(x: torch.Tensor) -> torch.Tensor:
        if x.device.type == "mps":
            deed()
        return harmless(x)

    return call


def hang_in_c() -> None:
    ctypes.CDLL(None).pause()


def hold_gil_forever() -> None:
    ctypes.PyDLL(None).pause()


def spin() -> None:
    while True:
        pass


def abort_with_a_word() -> None:
    os.write(2, b"[E1122 00:27:50.123456789 Thing.cpp:12] the kernel at 0x7f3a12345678 is gone\n")
    os.abort()


def chat() -> None:
    print("a case that passes says something")
    os.write(1, b"and more\n")


def eat_memory() -> None:
    hoard = [torch.empty(1 << 26, device="mps") for _ in range(1 << 10)]
    raise AssertionError(f"{len(hoard)} tensors fitted")


def raise_error() -> None:
    raise RuntimeError("the kernel says no")


HOARD: list[torch.Tensor] = []


def leak() -> None:
    HOARD.append(torch.empty(1 << 12, device="mps"))


DEEDS = {
    "aborts": os.abort,
    "aborts_with_a_word": abort_with_a_word,
    "segfaults": lambda: ctypes.string_at(0),
    "exits": lambda: os._exit(7),
    "hangs": hang_in_c,
    "hangs_with_gil": hold_gil_forever,
    "spins": spin,
    "eats_memory": eat_memory,
    "raises": raise_error,
    "leaks": leak,
}


class HostileSource(CaseSource):
    name = "hostile"

    def groups(self) -> Iterable[GroupKey]:
        for deed in DEEDS:
            yield GroupKey(self.name, deed, "", "float32", "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        for position in range(5):
            deeds = {1: chat, 2: DEEDS[key.operator]}
            call = on_mps_only(deeds[position]) if position in deeds else harmless
            yield Case(call, (torch.arange(4.0),))


class HostileToCpuSource(CaseSource):
    """Its reference kills the process: nothing is learnt of the device, and nothing is held against it."""

    name = "hostile to the cpu"

    def groups(self) -> Iterable[GroupKey]:
        yield GroupKey(self.name, "aborts_on_cpu", "", "float32", "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        yield Case(lambda x: os.abort() if x.device.type == "cpu" else x, (torch.ones(2),))


# A type of which clang makes two of each one before: more than there is time or memory for.
EXPONENTIAL = """
template <int N, int M> struct Tree { enum { size = Tree<N - 1, 2 * M>::size + Tree<N - 1, 2 * M + 1>::size }; };
template <int M> struct Tree<0, M> { enum { size = 1 }; };
static_assert(Tree<30, 0>::size > 0, "");
"""
AMPLE = Limits(seconds=3600, memory=8 << 30)
# By what the generated source has: what the compiler is given for the source with all those types.
SCARCE = {"tanh(": replace(AMPLE, processor_seconds=1), "atan(": replace(AMPLE, memory=400 << 20)}


def compiling_too_much(source: str) -> Any:
    """`torch.mps.compile_shader`, to which some generated kernels bring far more than they need."""
    scarce = next((limits for word, limits in SCARCE.items() if word in source), None)
    if scarce is None:
        return compile_shader(source)
    before, compiler._LIMITS = compiler._LIMITS, scarce
    try:
        return compile_shader(source + EXPONENTIAL)
    finally:
        compiler._LIMITS = before


def endless(x: torch.Tensor) -> torch.Tensor:
    """On mps a loop that a tracer unrolls for ever."""
    while x.device.type == "mps":
        x = x + 1
    return harmless(x)


class HostileToCompilingSource(CaseSource):
    """The Metal of two calls is too much for the compiler, and the last one is never traced to its end."""

    name = "hostile to compiling"

    def groups(self) -> Iterable[GroupKey]:
        yield GroupKey(self.name, "compiles_for_ever", "", "float32", "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        torch.mps.compile_shader = compiling_too_much
        for call in (harmless, torch.tanh, torch.atan, harmless, endless):
            yield Case(call, (torch.arange(4.0),))


class UnmakeableSource(CaseSource):
    """Its samples cannot be made: one group has none, one raises, one kills the process."""

    name = "unmakeable"

    def groups(self) -> Iterable[GroupKey]:
        yield GroupKey(self.name, "sampler_skips", "", "float32", "fallback")
        yield GroupKey(self.name, "sampler_raises", "", "float32", "fallback")
        yield GroupKey(self.name, "sampler_aborts", "", "float32", "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        if key.operator == "sampler_aborts":
            os.abort()
        if key.operator == "sampler_skips":
            raise SkipTest("nothing for float32")
        raise ValueError("no samples today")


mpsmith_case_sources = [HostileSource(), HostileToCpuSource(), HostileToCompilingSource(), UnmakeableSource()]
