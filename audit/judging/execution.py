"""One run of a case on the device of its inputs, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves, map_leaves
from .transfer import Inputs, differentiable_leaves


@dataclass
class Execution:
    """The result of a run.

    Attributes:
        arguments: of the call, which may have changed them.
        outputs: the flat outputs, tensors and plain values.
        differentiable: the outputs that have a gradient.
        inputs: the inputs that require a gradient, in their order.
        gradients: of `differentiable` with respect to `inputs`; empty until they are computed.
        returned: what the call returned, with its containers.
        versions: how often each tensor among the arguments had been written when the call began.
        cotangents: of the gradients.
    """

    arguments: Inputs
    outputs: list[Any]
    differentiable: list[Tensor]
    inputs: list[Tensor]
    gradients: list[Tensor | None] = field(default_factory=list)
    returned: Any = None
    versions: list[int] = field(default_factory=list)
    cotangents: list[Tensor] = field(default_factory=list)

    @cached_property
    def leaves(self) -> list[Any]:
        """The leaves of the arguments: everything but containers."""
        return list(leaves(self.arguments))

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, in their order."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def without_unchanged_arguments(self) -> Execution:
        """A copy of this run in which empty tensors replace the arguments that the call did not change.

        Inputs that require a gradient stay.
        """
        versions = iter(self.versions)

        def kept(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            unchanged = leaf._version == next(versions) and not leaf.requires_grad
            return torch.empty(0, dtype=leaf.dtype) if unchanged else leaf

        return replace(self, arguments=map_leaves(kept, self.arguments))


def execute(case: Case, inputs: Inputs) -> Execution:
    """Call the case's operator with `inputs`. Raises what the operator raises."""
    args, kwargs = inputs
    versions = [leaf._version for leaf in leaves(inputs) if isinstance(leaf, Tensor)]
    output = case.call(*args, **kwargs)
    processed = case.process_output(output) if case.differentiable else ()
    differentiable = [t for t in leaves(processed) if isinstance(t, Tensor) and t.grad_fn is not None]
    requiring = differentiable_leaves((args, kwargs))
    return Execution(inputs, list(leaves(output)), differentiable, requiring, returned=output, versions=versions)


def gradients(execution: Execution, cotangents: list[Tensor]) -> list[Tensor | None]:
    """Gradients of the outputs with respect to the inputs, None for an input that is not used."""
    execution.cotangents = cotangents
    outputs = [t if t.layout is torch.strided else t.to_dense() for t in execution.differentiable]
    return list(torch.autograd.grad(outputs, execution.inputs, cotangents, allow_unused=True))


def shown_execution(execution: Execution | None) -> str:
    """The outputs and gradients of a run as text."""
    if execution is None:
        return "(nothing)"
    named = (("output", execution.outputs), ("gradient", execution.gradients))
    return "\n".join(f"{name} {i}: {tensor!r}" for name, results in named for i, tensor in enumerate(results))
