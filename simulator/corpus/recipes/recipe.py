"""What a recipe is: which kernels it calls, with which arguments, and what they must write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ...metal import Mode


@dataclass(frozen=True)
class RecipeCall:
    """One launch and its result.

    Attributes:
        arguments: argument i is buffer i, as `torch.mps.compile_shader` binds them.
        expected: what the tensor at an index must hold afterwards: in float64, or exactly where it is no float.
        threads: how many in all.
        group: of a threadgroup; by default as many as torch takes.
        casts: `arg_casts` by index.
        threadgroup_lengths: bytes of `[[threadgroup(n)]]` arguments.
        roundings: how far a number may be away, in roundings of its own type.
        least: smaller numbers may be as far away as this one.
        reading: what stands in the memory at an index, where that is not its tensor's numbers.
    """

    arguments: Sequence[object]
    expected: Mapping[int, torch.Tensor]
    threads: int | tuple[int, ...]
    group: int | tuple[int, ...] | None = None
    casts: Mapping[int, str] = field(default_factory=dict)
    threadgroup_lengths: Mapping[int, int] = field(default_factory=dict)
    roundings: float = 4
    least: float = 1
    reading: Mapping[int, Callable[[torch.Tensor], torch.Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How kernels whose names follow one pattern are called.

    Attributes:
        name: what they compute.
        project: as the list of projects calls it.
        file: of the project's files, the end of the path.
        kernels: a pattern of whole names; its named groups are arguments of `call`.
        call: makes the launch of one kernel.
        constants: values of function constants.
        defect: what is wrong with these kernels, where that is known: their result is not what their name says.
        defect_shows_in: the modes in which it shows.
    """

    name: str
    project: str
    file: str
    kernels: str
    call: Callable[..., RecipeCall]
    constants: Mapping[int | str, bool | int | float] = field(default_factory=dict)
    defect: str = ""
    defect_shows_in: tuple[Mode, ...] = ("fast", "checked")

    def call_of(self, kernel: str) -> RecipeCall | None:
        """The launch of the kernel of this name; None where the recipe is not for it."""
        match = re.fullmatch(self.kernels, kernel)
        return self.call(**match.groupdict()) if match else None

    def is_for(self, kernel: str) -> bool:
        """Whether a kernel of this name is called this way."""
        return re.fullmatch(self.kernels, kernel) is not None


def ceil_div(count: int, by: int) -> int:
    """How many pieces of `by` cover `count`."""
    return -(-count // by)
