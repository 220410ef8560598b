"""Kernels that have names and arguments and no code: what a planner needs to see of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mpsmith.simulator.air.signature import CONSTANT, BufferArgument, KernelSignature, StructField
from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.plan import Planner, Step

Arguments = Sequence[str] | Mapping[str, Sequence[str]]
"""Names of a kernel's arguments; those with members are structs."""


class FakeKernels:
    """A release that has these kernels, by name."""

    release = "9.9.9"

    def __init__(self, kernels: Mapping[str, Arguments]) -> None:
        self._kernels = kernels

    def __contains__(self, name: str) -> bool:
        return name in self._kernels

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def signature(self, name: str) -> KernelSignature:
        """The arguments, all of them read-only and of no type."""
        arguments = self._kernels[name]
        members = arguments if isinstance(arguments, Mapping) else {}
        fields = [_struct(members, argument) for argument in arguments]
        buffers = [
            BufferArgument(index, index, argument, "", 0, 0, "read", True, CONSTANT, False, False, fields[index])
            for index, argument in enumerate(arguments)
        ]
        return KernelSignature(name, tuple(buffers), (), (), None, True)


def _struct(members: Mapping[str, Sequence[str]], argument: str) -> tuple[StructField, ...]:
    return tuple(StructField(member, "int", 0, 4, 0) for member in members.get(argument, ()))


def planned(
    planners: Mapping[str, Planner], overload: str, kernels: FakeKernels, *results: Tensor, **arguments: Any
) -> Sequence[Step]:
    """The steps for a call of an overload; arguments that are left out have their defaults."""
    operator, _, variant = overload.partition(".")
    schema = getattr(getattr(torch.ops.aten, operator), variant or "default")._schema
    names = {argument.name for argument in schema.arguments}
    assert arguments.keys() <= names, f"{overload} has no {arguments.keys() - names}"
    given = {argument.name: argument.default_value for argument in schema.arguments} | arguments
    return planners[overload](Call(overload, given, results), kernels)
