"""Plans of conventions without a library: what a release has is a set of names."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.plan import KernelLaunch, Planner


class NamedKernels:
    """The kernels of a release that has those names, in which "*" stands for anything."""

    release = "9.9.9"

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns

    def __contains__(self, name: object) -> bool:
        return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in self.patterns)

    def signature(self, name: str, /) -> Any:
        raise AssertionError(f"a plan needs no signature, but asks for that of {name}")


def planned(
    planner: Planner, kernels: NamedKernels, results: Tensor | Sequence[Tensor], **arguments: Any
) -> list[KernelLaunch]:
    """The launches of a call with these arguments and results."""
    written = (results,) if isinstance(results, Tensor) else tuple(results)
    steps = planner(Call("operator", arguments, written), kernels)
    launches = [step for step in steps if isinstance(step, KernelLaunch)]
    assert len(launches) == len(steps)
    return launches


def numbers(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a launch that are no tensors."""
    return {name: value for name, value in arguments.items() if not isinstance(value, Tensor)}
