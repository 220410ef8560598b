"""argmin and argmax: the index of the least or the greatest element; of equal elements, the first.

Source: `argmax_argmin_out_mps` of aten/src/ATen/native/mps/operations/ReduceOps.mm (mid and late 2026). The kernels of
2.14 and 2.15 split a long dimension into segments; a second kernel compares their best values and indices.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .layouts import with_reduced_dimensions, wrapped
from .metal_types import metal_name
from .reduction_launches import ReductionOp, any_layout
from .reduction_layouts import INNERMOST, LayoutPlan, RowLayout, layout_plan

_INNER_GROUP = 256
_ROWS_PER_GROUP = 8
_OUTER_GROUP = 32


def argument_of_extreme(
    kernels: ReleaseKernels, prefix: str, output: Tensor, value: Tensor, dimension: int | None
) -> list[Step]:
    """The launches of "argmin_" or "argmax_" into `output`, which has all of the input's dimensions.

    Without a dimension the index counts the elements as if the input were contiguous, and the output has one element.
    """
    name = "char" if value.dtype == torch.bool else metal_name(value.dtype)
    op = ReductionOp(prefix, name, "long", name, prefix)
    if dimension is None:
        value, output, reduced = value.contiguous().view(-1), output.view(1), 0
    else:
        reduced = wrapped(dimension, value.dim())
        if value.size(reduced) == 1 and _has_layouts(kernels, op):
            raise Declined("one element a row: the indices are filled")
    if _has_layouts(kernels, op):
        return _by_layout(kernels, op, *_moved(output, value, reduced, dimension))
    return [_by_ends(kernels, op, output, value, reduced, dimension is not None)]


def _has_layouts(kernels: ReleaseKernels, op: ReductionOp) -> bool:
    """Whether the release has the kernels of 2.14 and 2.15."""
    return f"{op.prefix}reduction_combine_{op.input_type}" in kernels


def _by_ends(
    kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor, reduced: int, along_dimension: bool
) -> Step:
    dense = value.is_contiguous() and output.is_contiguous() and value.dim() >= 2
    if along_dimension and dense and reduced == 0:
        rows, columns = value.size(0), value.numel() // value.size(0)
        arguments = {"input": value, "output": output, "sizes": [rows, columns, 1]}
        threads = (-(-columns // _OUTER_GROUP) * _OUTER_GROUP, _OUTER_GROUP, 1)
        return KernelLaunch(required(kernels, op.name("_outer")), arguments, threads, (_OUTER_GROUP, _OUTER_GROUP, 1))
    if along_dimension and dense and reduced == value.dim() - 1:
        rows, length = value.numel() // value.size(-1), value.size(-1)
        arguments = {"input": value, "output": output, "sizes": [rows, length]}
        threads = (-(-rows // _ROWS_PER_GROUP) * _INNER_GROUP, 1, 1)
        return KernelLaunch(required(kernels, op.name("_inner")), arguments, threads, (_INNER_GROUP, 1, 1))
    return any_layout(kernels, op, output, value)


def _moved(output: Tensor, value: Tensor, reduced: int, dimension: int | None) -> tuple[Tensor, Tensor]:
    """Move the reduced dimension of both last or first if that makes the input contiguous."""
    if dimension is not None and not value.is_contiguous():
        for place in (-1, 0):
            moved = value.movedim(reduced, place)
            if moved.is_contiguous():
                return output.movedim(reduced, place), moved
    return output, value


def _by_layout(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    plan = layout_plan(value, output, is_arg=True)
    if plan is None:
        return [any_layout(kernels, op, output, value)]
    if plan.segments == 1:
        return [_of_layout(kernels, op.name(plan.kernel), plan, {"input": value, "output": output})]
    count = output.numel() * plan.segments
    values = torch.empty(count, dtype=value.dtype, device="cpu")
    indices = torch.empty(count, dtype=torch.int32, device="cpu")
    first = f"{op.prefix}reduction{plan.kernel}_p1_{op.input_type}"
    partial_arguments: dict[str, object] = {"input": value, "val_out": values, "idx_out": indices}
    rows = RowLayout.dense(plan.layout.outer * plan.layout.inner, plan.segments, 1)
    second = f"{op.prefix}reduction_combine_{op.input_type}"
    arguments: dict[str, object] = {"input": values, "output": output, "idx_in": indices}
    return [
        _of_layout(kernels, first, plan, partial_arguments),
        _of_layout(kernels, second, LayoutPlan(INNERMOST, rows), arguments),
    ]


def _of_layout(kernels: ReleaseKernels, name: str, plan: LayoutPlan, arguments: dict[str, object]) -> KernelLaunch:
    arguments["sizes"] = plan.sizes
    if plan.kernel == INNERMOST:
        length = -(-plan.layout.dim // plan.segments)
        arguments["sizes"] = [plan.layout.outer * plan.segments, length, plan.segments, plan.layout.dim]
    elif plan.strides is not None:
        arguments["strides"] = plan.strides
    if name not in kernels:  # so it is called in 2.14
        name = name.replace("_innermost", "_inner")
    return KernelLaunch(required(kernels, name), arguments, plan.threads, plan.group)


def _argument(prefix: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        value: Tensor = call["self"]
        if value.dim() == 0:
            raise Declined("one element: the index is filled")
        dimension = call["dim"]
        reduced = [] if dimension is None else [wrapped(dimension, value.dim())]
        output = with_reduced_dimensions(call.result, reduced, call["keepdim"])
        return argument_of_extreme(kernels, prefix, output, value, dimension)

    return plan


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("argmax", "argmax.out"), _argument("argmax_")),
    **dict.fromkeys(("argmin", "argmin.out"), _argument("argmin_")),
}
