"""A body for a generated launch: it computes the operator on the CPU from nothing but what is bound.

Arguments are put together from the buffers alone, as a kernel would have to: memory, sizes, numbers. What is not bound
cannot be computed with, a buffer of the wrong type or length is a finding, and only as many elements are written as
threads were launched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torchgen.model import Argument, BaseTy, BaseType, ListType, OptionalType

from ..audit.cases.calls.invocation import overload_of
from .errors import ScaffoldError
from .launches.buffers import BoundBuffer
from .launches.elements import METAL_ELEMENTS
from .launches.launch import Launch
from .operators.model import is_tensor

# What a finding is about.
OUTPUTS, SHAPES, DTYPES, ARGUMENTS, GRID = "outputs", "shapes", "dtypes", "arguments", "grid"
ASPECTS = (OUTPUTS, SHAPES, DTYPES, ARGUMENTS, GRID)


class WrongLaunchError(ScaffoldError):
    """What is bound is not what the operator needs."""

    def __init__(self, aspect: str, message: str) -> None:
        super().__init__(message)
        self.aspect = aspect


@dataclass
class Findings:
    """The first finding about each aspect, and how many launches were computed."""

    by_aspect: dict[str, str] = field(default_factory=dict)
    launches: int = 0


@dataclass(frozen=True)
class ReferenceBody:
    """What `Shader.kernel` gives in the place of a compiled kernel."""

    launch: Launch
    findings: Findings

    def __call__(self, *bound: Any, threads: int, **options: object) -> None:
        """Run. Raises WrongLaunchError, which the findings keep too."""
        self.findings.launches += 1
        try:
            self._run(bound, threads)
        except WrongLaunchError as error:
            self.findings.by_aspect.setdefault(error.aspect, str(error))
            raise

    def _run(self, bound: Sequence[Any], threads: int) -> None:
        launch = self.launch
        buffers = launch.buffers
        if len(bound) != len(buffers) + 1 or bound[-1] != threads:
            raise WrongLaunchError(ARGUMENTS, f"{len(bound)} arguments are bound for {len(buffers) + 1} parameters")
        values = {buffer.name: value for buffer, value in zip(buffers, bound[:-1], strict=True)}
        for buffer in launch.tensors:
            self._require_tensor(buffer, values[buffer.name])
        arguments = {argument.name: self._argument(argument, values) for argument in launch.overload.inputs}
        results = self._results(arguments, values)
        if len(results) != len(launch.outputs):
            raise WrongLaunchError(
                OUTPUTS, f"{len(launch.outputs)} outputs are bound, the operator gives {len(results)}"
            )
        for buffer, result in zip(launch.outputs, results, strict=True):
            target = values[buffer.name]
            if target.numel() != result.numel():
                raise WrongLaunchError(
                    SHAPES, f"{buffer.name} has {target.numel()} elements, its result {result.numel()}"
                )
            if target.dtype != result.dtype:
                raise WrongLaunchError(DTYPES, f"{buffer.name} is {target.dtype}, its result {result.dtype}")
        expected = self._expected_threads(values, results)
        if threads != expected:
            raise WrongLaunchError(GRID, f"{threads} threads for {expected} rows or elements")
        for buffer, result in zip(launch.outputs, results, strict=True):
            values[buffer.name].copy_(result.reshape(values[buffer.name].shape))

    def _require_tensor(self, buffer: BoundBuffer, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            raise WrongLaunchError(ARGUMENTS, f"{buffer.name} is bound to {type(value).__name__}")
        if buffer.optional:
            return
        if not value.is_contiguous():
            raise WrongLaunchError(SHAPES, f"{buffer.name} is bound with strides {value.stride()} that are not passed")
        name = str(value.dtype).removeprefix("torch.")
        if buffer.metal != "T" and METAL_ELEMENTS.get(name) != buffer.metal:
            raise WrongLaunchError(DTYPES, f"{buffer.name}, {name}, is bound to {buffer.metal}*")

    def _argument(self, argument: Argument, values: Mapping[str, Any]) -> Any:
        """The argument as the buffers alone say it."""
        launch = self.launch
        kind = argument.type
        inner = kind.elem if isinstance(kind, OptionalType) else kind
        if launch.row_dim and argument.name in ("dim", "keepdim"):
            return False if argument.name == "keepdim" else [-1] if isinstance(inner, ListType) else -1
        given = values.get(f"has_{argument.name}")
        if isinstance(kind, OptionalType) and given == 0:
            return None
        buffer = next((b for b in launch.bound if launch.argument(b) == argument.name and not b.says), None)
        if buffer is None:
            if (isinstance(inner, BaseType) and inner.name is BaseTy.ScalarType) or argument.default is not None:
                return None if isinstance(kind, OptionalType) else _DEFAULT
            raise WrongLaunchError(ARGUMENTS, f"{argument.name} is not bound")
        value = values[buffer.name]
        if is_tensor(kind):
            return self._tensor(buffer, value, values)
        if buffer.many:
            return value[1:]
        if buffer.is_word:
            return buffer.choices[value][0]
        return bool(value) if isinstance(inner, BaseType) and inner.name is BaseTy.bool else value

    def _tensor(self, buffer: BoundBuffer, value: torch.Tensor, values: Mapping[str, Any]) -> torch.Tensor:
        spread = self.launch.spread
        told = spread[0] if buffer in spread else buffer  # what is spread has the shape of the first
        sizes = values.get(f"{told.name}_sizes")
        memory = value.detach().cpu().clone().reshape(-1)
        if buffer.name in self.launch.in_rows:
            return memory.reshape(-1, values["row_length"]) if memory.numel() else value.detach().cpu().clone()
        return memory.reshape(sizes[1:]) if sizes is not None else memory

    def _results(self, arguments: Mapping[str, Any], values: Mapping[str, Any]) -> list[torch.Tensor]:
        launch = self.launch
        overload = overload_of(f"aten::{launch.name}")
        given = {name: value for name, value in arguments.items() if value is not _DEFAULT}
        outputs = {}
        for argument in launch.overload.outputs:
            buffer = next(b for b in launch.outputs if launch.argument(b) == argument.name)
            outputs[argument.name] = torch.empty(0, dtype=values[buffer.name].dtype)
        result = overload(**given, **outputs)
        results = [one for one in (result if isinstance(result, tuple | list) else (result,)) if torch.is_tensor(one)]
        # What a mutable form writes into counts as well, behind what it gives.
        changed = [launch.argument(buffer) for buffer in launch.outputs if buffer in launch.read]
        return [*results, *(given[name] for name in changed)] if launch.form == "mutable" else results

    def _expected_threads(self, values: Mapping[str, Any], results: Sequence[torch.Tensor]) -> int:
        launch = self.launch
        if launch.row_dim:
            return int(values[launch.inputs[0].name].numel()) // max(int(values["row_length"]), 1)
        if launch.a_thread_a_matrix and launch.source:
            sizes = values[f"{launch.source.name}_sizes"]
            return math.prod(sizes[1:-2])
        if launch.a_thread_a_row:
            return results[0].numel() // max(int(values["row_length"]), 1)
        return results[0].numel()


# An argument that keeps the schema's own default.
_DEFAULT = object()


@dataclass(frozen=True)
class FunctorBody:
    """The same for a launch through the kernels' elementwise functions, which know about layouts themselves."""

    launch: Launch
    findings: Findings

    def __call__(self, *bound: Any, threads: Any, **options: object) -> None:
        """Run."""
        self.findings.launches += 1
        launch = self.launch
        count = 1 + len(launch.inputs)
        output, *inputs = bound[:count]
        numbers = dict(zip((launch.argument(buffer) for buffer in launch.numbers), bound[count], strict=False))
        tensors = {launch.argument(b): value.cpu() for b, value in zip(launch.inputs, inputs, strict=True)}
        arguments = {argument.name: {**tensors, **numbers}.get(argument.name) for argument in launch.overload.inputs}
        out = {launch.overload.outputs[0].name: torch.empty(0, dtype=output.dtype)}
        output.copy_(overload_of(f"aten::{launch.name}")(**arguments, **out))
