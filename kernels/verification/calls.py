"""The contents of a family's `cases.py`: the calls that its kernels implement, with inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...audit.model.case import Case

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REAL = (*FLOATING, *INTEGERS, torch.bool)

Inputs = Callable[[torch.dtype], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True)
class KernelCall:
    """One call to verify. The auditor's judge compares it with the CPU, with its usual tolerances.

    Attributes:
        name: the operator as in torch's OpInfos, `nn.functional.softshrink`.
        operators: the operators whose kernels all run in the call, forward or backward, as `aten::softshrink`.
        call: called with the inputs, on the CPU and on mps; returns a tensor or several.
        inputs: yields the positional arguments of cases for a dtype: tensors on the CPU, numbers, lists of tensors.
        dtypes: the dtypes of the inputs.
        variant: distinguishes calls of a family with the same name.
        gradients: positions of the arguments that require a gradient; may be empty.
        elementwise: every output element depends only on the input elements at its position, so any size is valid.
        special_values: torch defines the result for NaN, infinities, denormals and extreme integers in any input.
        layouts: whether arguments are given in other layouts as well; false if they only give a size.
        expands: whether arguments may be expanded tensors; false if one is written.
        distribution: the outputs are many draws, whose distribution must be the CPU's.
    """

    name: str
    operators: tuple[str, ...]
    call: Callable[..., Any]
    inputs: Inputs
    dtypes: tuple[torch.dtype, ...] = FLOATING
    variant: str = ""
    gradients: tuple[int, ...] = ()
    elementwise: bool = False
    special_values: bool = False
    layouts: bool = True
    expands: bool = True
    distribution: bool = False

    @property
    def label(self) -> str:
        """For people: the name and the variant."""
        return f"{self.name}, {self.variant}" if self.variant else self.name

    def cases(self, dtype: torch.dtype) -> Iterator[Case]:
        """One case for each of the inputs, unvaried."""
        differentiable = bool(self.gradients) and dtype.is_floating_point
        for arguments in self.inputs(dtype):
            wanted = self.gradients if differentiable else ()
            args = tuple(arg.requires_grad_() if at in wanted else arg for at, arg in enumerate(arguments))
            yield Case(
                self.call,
                args,
                differentiable=differentiable,
                elementwise=self.elementwise,
                distribution=self.distribution,
            )


@dataclass(frozen=True)
class RefusedCall:
    """A call that the CPU refuses; a kernel that did not check its arguments would read arbitrary memory.

    Attributes:
        title: a text that says what is wrong with it.
        call: called with the arguments, on the CPU and on mps.
        arguments: its positional arguments, tensors on the CPU.
    """

    title: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def case(self) -> Case:
        """The call as a case: mps must raise the same type of error as the CPU."""
        return Case(self.call, self.arguments, errors_count=True, title=f"refused: {self.title}")
