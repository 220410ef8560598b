"""Backward as in programs: expanded cotangents, one of several outputs used, gradients of some inputs only.

The samples of OpInfos require the gradients of all inputs, and the judge's cotangents are contiguous random numbers. So
they do not find kernels that skip gradients wrongly (pytorch/pytorch#183825) or ignore the strides of a cotangent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ...judging.transfer import differentiable_leaves
from ...model.case import Case
from ...model.nested import leaves, map_leaves
from .case_tensors import call_on_cpu, tensors_of, with_tensors
from .derived import THOROUGH, BaseGroup, Factor, in_each_case, rotated
from .layouts import Layout, offset, stepped

IN_TURN = ("float16", "complex64")
# How many variations other dtypes, and modules in evaluation mode, get.
SOME = 2
# How many inputs, most often of a list, and how many outputs are varied.
MOST_INPUTS = 4
MOST_OUTPUTS = 3


def as_of_a_sum(tensor: Tensor) -> Tensor:
    """One number for all elements, as the backward of `sum` gives."""
    return torch.ones((), dtype=tensor.dtype).expand(tensor.shape)


def zero(tensor: Tensor) -> Tensor:
    """Zeros, as the backward of a mask gives."""
    return torch.zeros_like(tensor)


COTANGENTS: tuple[Layout, ...] = (as_of_a_sum, offset, zero)


def _applies(group: BaseGroup) -> bool:
    """Operators with a derivative, in one dtype of each kind; modules in float32."""
    if group.opinfo is None:
        return group.key.dtype == THOROUGH
    return group.key.dtype in (THOROUGH, *IN_TURN) and bool(group.opinfo.supports_autograd)


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """All variations in float32; in other dtypes, and for modules in evaluation mode, `SOME` of them in turn."""
    if not case.differentiable or not differentiable_leaves((case.args, case.kwargs)):
        return
    every = [*with_cotangents(case), *of_some_inputs(case), *of_some_outputs(case)]
    if group.key.dtype == THOROUGH and group.key.variant != "eval":
        yield from every
        yield from islice(with_gradient_uses(case, group.first_variation), 1)
    else:
        every.extend(with_gradient_uses(case, group.first_variation))
        yield from rotated(every, group.first_variation)[:SOME]


GRADIENT_FACTOR = Factor("gradients", in_each_case(_variations), _applies)


# ---- cotangents


def with_cotangents(case: Case) -> Iterator[Case]:
    """The case with cotangents of the layouts and values that occur in programs."""
    for layout in COTANGENTS:
        yield with_cotangent(case, layout)


def with_cotangent(case: Case, layout: Layout) -> Case:
    """The case with each cotangent in a layout."""
    title = f"gradients of the outputs {layout.__name__.replace('_', ' ')}"
    return replace(case, cotangent_layout=layout, title=title, form=title)


# ---- which inputs require a gradient


def of_some_inputs(case: Case) -> Iterator[Case]:
    """The case with the gradient of one input only; of three or more inputs, also with the gradients of all but one."""
    wanted = positions_with_gradient(case)
    if len(wanted) < 2:
        return
    for position in wanted[:MOST_INPUTS]:
        yield of_inputs(case, [position], f"gradient of tensor {position} alone")
    if 3 <= len(wanted) <= MOST_INPUTS:
        for position in wanted:
            others = [other for other in wanted if other != position]
            yield of_inputs(case, others, f"no gradient of tensor {position}")


def positions_with_gradient(case: Case) -> list[int]:
    """The positions of the tensors that require a gradient."""
    return [position for position, tensor in enumerate(tensors_of(case)) if tensor.requires_grad]


def of_inputs(case: Case, positions: Sequence[int], title: str) -> Case:
    """The case with gradients for only the tensors at these positions."""
    tensors = tensors_of(case)
    others = {i: tensors[i].detach() for i in positions_with_gradient(case) if i not in positions}
    return with_tensors(case, others, title)


# ---- which outputs are used


def of_some_outputs(case: Case) -> Iterator[Case]:
    """The case with one of several outputs used: the other outputs have no cotangent."""
    try:
        outputs = differentiable_outputs(case.process_output(call_on_cpu(case)))
    except Exception:  # whatever the CPU refuses has no outputs
        return
    if len(outputs) > 1:
        for number in range(min(len(outputs), MOST_OUTPUTS)):
            title = f"gradient of output {number} alone"
            yield replace(case, process_output=only(case.process_output, number), title=title, form=title)


def differentiable_outputs(processed: Any) -> list[Tensor]:
    """The outputs that have a gradient."""
    return [leaf for leaf in leaves(processed) if isinstance(leaf, Tensor) and leaf.grad_fn is not None]


def only(process_output: Callable[[Any], Any], number: int) -> Callable[[Any], Any]:
    """A function that processes the output, and returns the differentiable output of this number."""

    def pick(output: Any) -> Any:
        return differentiable_outputs(process_output(output))[number : number + 1]

    return pick


# ---- how the call is used


def with_gradient_uses(case: Case, start: int) -> Iterator[Case]:
    """The case with its gradients used in each of `USES`, rotated by `start`."""
    for use in rotated(USES, start):
        yield use(case)


def stepped_cotangent(case: Case) -> Case:
    """Use cotangents with a step of two in memory."""
    return with_cotangent(case, stepped)


def of_views(case: Case) -> Case:
    """With views of the leaves as inputs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return case.call(*map_leaves(_view, args), **map_leaves(_view, kwargs))

    return replace(case, call=call, title="gradients of views", form="gradients of views", elementwise=False)


def _view(leaf: Any) -> Any:
    return leaf.unsqueeze(0).squeeze(0) if isinstance(leaf, Tensor) and leaf.requires_grad else leaf


def used_twice(case: Case) -> Case:
    """Called twice with the same inputs, whose gradients are summed."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return [case.call(*args, **kwargs), case.call(*args, **kwargs)]

    def process(outputs: Iterable[Any]) -> Any:
        return [case.process_output(output) for output in outputs]

    title = "gradients of two calls"
    return replace(case, call=call, process_output=process, title=title, form=title, elementwise=False)


def backward_twice(case: Case) -> Case:
    """Run two backward passes through one graph; gradients accumulate in the inputs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = differentiable_outputs(case.process_output(case.call(*args, **kwargs)))
        ones = [torch.ones_like(output) for output in outputs]
        for _ in range(2):
            torch.autograd.backward(outputs, ones, retain_graph=True)
        return [leaf.grad for leaf in differentiable_leaves((args, kwargs))]

    title = "backward twice"
    plain: Callable[[Any], Any] = lambda output: output  # noqa: E731
    return replace(
        case, call=call, process_output=plain, differentiable=False, title=title, form=title, elementwise=False
    )


USES: tuple[Callable[[Case], Case], ...] = (stepped_cotangent, of_views, used_twice, backward_twice)
