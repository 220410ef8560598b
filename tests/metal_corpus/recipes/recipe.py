"""Recipes: how to call a kernel, and the result that it must write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class RecipeCall:
    """A launch and its expected result.

    Attributes:
        arguments: argument i is buffer i, as `torch.mps.compile_shader` binds them.
        expected: the expected tensor by argument index: in float64, or exact for integers and bools.
        threads: the size of the grid.
        group: the size of a threadgroup; by default torch's choice.
        casts: `arg_casts` by index.
        threadgroup_lengths: bytes of `[[threadgroup(n)]]` arguments.
        roundings: the accepted difference, in roundings of the type.
        least: smaller numbers have the tolerance of this one.
        reading: how to decode the memory at an index, if it is not the tensor's numbers.
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
    """How to call the kernels whose names match a pattern.

    Attributes:
        name: what they compute.
        project: its name in the list of projects.
        file: the end of the file's path.
        kernels: a pattern of whole names; its named groups are arguments of `call`.
        call: makes the launch of a kernel.
        constants: values of function constants.
        defect: a known defect of these kernels: their result is wrong.
    """

    name: str
    project: str
    file: str
    kernels: str
    call: Callable[..., RecipeCall]
    constants: Mapping[int | str, bool | int | float] = field(default_factory=dict)
    defect: str = ""

    def matches(self, kernel: str) -> bool:
        """Whether this is a recipe for the kernel."""
        return re.fullmatch(self.kernels, kernel) is not None

    def call_of(self, kernel: str) -> RecipeCall | None:
        """The launch of this kernel; None if the recipe does not match it."""
        match = re.fullmatch(self.kernels, kernel)
        return self.call(**match.groupdict()) if match else None


def ceil_div(count: int, by: int) -> int:
    """`count` divided by `by`, rounded up."""
    return -(-count // by)
