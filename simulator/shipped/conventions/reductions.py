"""Reductions of values: sum, mean, nansum, trace, prod, count_nonzero, any, all, extremes, var, std.

Source: aten/src/ATen/native/mps/operations/ReduceOps.mm and aten/src/ATen/native/ReduceOps.cpp (mid and late 2026).
Operators that a release has no kernels for run in MPSGraph: prod, var, std, min and max (not amin, amax) in 2.13.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, Planner, ReleaseKernels, Step, required
from .argument_reductions import argument_of_extreme
from .copies import copied
from .layouts import with_reduced_dimensions, wrapped_dimensions
from .metal_types import metal_name
from .reduction_launches import ReductionOp, reduce

_ACCUMULATED: Final = {"half": "float", "bfloat": "float", "half2": "float2"}
"""What kernels of sums accumulate narrow floats in, and keep partial sums as."""


def _has(kernels: ReleaseKernels, prefix: str, value: str, result: str) -> bool:
    return f"{prefix}reduction_{value}_{result}" in kernels


def _accumulate(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    """A sum, a product or a count. Partial results of narrow floats are wider if the release can combine those."""
    given, wanted = metal_name(value.dtype), metal_name(output.dtype)
    wide = _ACCUMULATED.get(wanted, wanted)
    in_two_passes = _has(kernels, op.prefix, given, wide) and _has(kernels, op.combine_prefix, wide, wanted)
    partial = wide if in_two_passes else wanted
    typed = replace(op, input_type=given, output_type=wanted, partial_type=partial)
    return reduce(kernels, typed, output, value)


def _accumulate_converted(kernels: ReleaseKernels, op: ReductionOp, output: Tensor, value: Tensor) -> list[Step]:
    """A sum or a product of the input in the output's dtype.

    TensorIterator converts it (`make_reduction`), so kernels of two dtypes are not launched. On CUDA alone it leaves
    halves that are reduced to float.
    """
    if value.dtype == output.dtype:
        return _accumulate(kernels, op, output, value)
    wanted = metal_name(output.dtype)
    required(kernels, f"{op.prefix}reduction_{wanted}_{wanted}")
    converted = torch.empty(value.shape, dtype=output.dtype, device="cpu")
    return [copied(kernels, converted, value), *_accumulate(kernels, op, output, converted)]


def _sum(kernels: ReleaseKernels, prefix: str, output: Tensor, value: Tensor, divisor: float = 0.0) -> list[Step]:
    op = ReductionOp(prefix, "", "", "", "sum_", divisor, True)
    return _accumulate_converted(kernels, op, output, value)


def _reduced(call: Call, dimensions: Sequence[int] | int | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The output with its reduced dimensions kept, and the input."""
    value: Tensor = call["self"]
    if value.numel() == 0:
        raise Declined("an empty input is filled, not reduced")
    named = wrapped_dimensions(dimensions, value.dim())
    return with_reduced_dimensions(call.result, named, keepdim), value


def _of_dim_argument(call: Call) -> tuple[Tensor, Tensor]:
    return _reduced(call, call.arguments.get("dim"), bool(call.arguments.get("keepdim", False)))


def sums(prefix: str) -> Planner:
    """The planner of `sum` and other sums."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        output, value = _of_dim_argument(call)
        is_float = value.is_floating_point() or value.is_complex()
        return _sum(kernels, "sum_" if prefix == "nansum_" and not is_float else prefix, output, value)

    return plan


def mean(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """A sum whose kernel divides before it rounds."""
    output, value = _of_dim_argument(call)
    return _sum(kernels, "sum_", output, value, float(value.numel() // output.numel()))


def prod(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Products, for which only later releases have kernels."""
    output, value = _of_dim_argument(call)
    if not _has(kernels, "prod_", "float", "float"):
        raise Declined("MPSGraph")
    return _accumulate_converted(kernels, ReductionOp("prod_", "", "", "", "prod_"), output, value)


def count_nonzero(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Counts of any dtype into int64."""
    output, value = _of_dim_argument(call)
    return _accumulate(kernels, ReductionOp("count_nonzero_", "", "", "", "sum_", 0.0, True), output, value)


def trace(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """The sum of the diagonal."""
    diagonal = call["self"].diagonal()
    return _sum(kernels, "sum_", call.result.unsqueeze(0), diagonal)


def _extreme(kernels: ReleaseKernels, prefix: str, output: Tensor, value: Tensor) -> list[Step]:
    """The launches of amin or amax; bool uses the kernels of char, which compare equally."""
    name = "char" if value.dtype == torch.bool else metal_name(value.dtype)
    return reduce(kernels, ReductionOp(prefix, name, name, name, prefix), output, value)


def extremes(prefix: str) -> Planner:
    """`amin` and `amax`."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return _extreme(kernels, prefix, *_of_dim_argument(call))

    return plan


def aminmax(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """The minimum and the maximum, by one reduction each."""
    output, value = _of_dim_argument(call)
    dimensions = wrapped_dimensions(call["dim"], value.dim())
    other = with_reduced_dimensions(call.results[1], dimensions, call["keepdim"])
    return [*_extreme(kernels, "min_", output, value), *_extreme(kernels, "max_", other, value)]


def _convert_to_bool(kernels: ReleaseKernels, output: Tensor, value: Tensor) -> list[Step]:
    """Convert the only element to bool."""
    boolean = torch.empty(output.shape, dtype=torch.bool, device="cpu")
    return [copied(kernels, boolean, value.view_as(boolean)), copied(kernels, output, boolean)]


def predicates(prefix: str, combine: str) -> Planner:
    """`all` and `any`, whose partial results are bytes that are combined as `min` and `max`."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        output, value = _of_dim_argument(call)
        if value.numel() == 1:
            return _convert_to_bool(kernels, output, value)
        op = ReductionOp(prefix, metal_name(value.dtype), "uchar", "uchar", combine)
        return reduce(kernels, op, output, value)

    return plan


def _needs_kernels_since_2_14(kernels: ReleaseKernels) -> None:
    if not _has(kernels, "var_", "float", "float"):
        raise Declined("MPSGraph")


def extreme_of_all(prefix: str) -> Planner:
    """`min` and `max` of a whole tensor."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        _needs_kernels_since_2_14(kernels)
        return _extreme(kernels, prefix, *_reduced(call, None, False))

    return plan


def extreme_along(prefix: str) -> Planner:
    """`min` and `max` along a dimension: the indices first, then the values, each by its own reduction."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        _needs_kernels_since_2_14(kernels)
        output, value = _of_dim_argument(call)
        if value.dim() == 0:
            raise Declined("one element is copied, not reduced")
        indices = with_reduced_dimensions(
            call.results[1], wrapped_dimensions(call["dim"], value.dim()), call["keepdim"]
        )
        first = argument_of_extreme(kernels, f"arg{prefix}", indices, value, call["dim"])
        return [*first, *_extreme(kernels, prefix, output, value)]

    return plan


def variance(prefix: str) -> Planner:
    """`var` and `std`, with the correction as the kernels' parameter."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        _needs_kernels_since_2_14(kernels)
        output, value = _of_dim_argument(call)
        if value.is_complex():
            raise Declined("the variance of complex numbers is a sum of two")
        name = metal_name(value.dtype)
        correction = 1.0 if call["correction"] is None else float(call["correction"])
        return reduce(kernels, ReductionOp(prefix, name, name, "float3", prefix, correction), output, value)

    return plan


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("sum.dim_IntList", "sum.IntList_out"), sums("sum_")),
    **dict.fromkeys(("nansum", "nansum.out"), sums("nansum_")),
    "count_nonzero.dim_IntList": count_nonzero,
    **dict.fromkeys(("mean.dim", "mean.out"), mean),
    **dict.fromkeys(("prod", "prod.dim_int", "prod.int_out"), prod),
    "trace": trace,
    **dict.fromkeys(("amin", "amin.out"), extremes("min_")),
    **dict.fromkeys(("amax", "amax.out"), extremes("max_")),
    **dict.fromkeys(("aminmax", "aminmax.out"), aminmax),
    **dict.fromkeys(("all", "all.all_out", "all.dim", "all.out"), predicates("all_", "min_")),
    **dict.fromkeys(("any", "any.all_out", "any.dim", "any.out"), predicates("any_", "max_")),
    **dict.fromkeys(("min", "min.unary_out"), extreme_of_all("min_")),
    **dict.fromkeys(("max", "max.unary_out"), extreme_of_all("max_")),
    **dict.fromkeys(("min.dim", "min.dim_min"), extreme_along("min_")),
    **dict.fromkeys(("max.dim", "max.dim_max"), extreme_along("max_")),
    **dict.fromkeys(("var.correction", "var.correction_out"), variance("var_")),
    **dict.fromkeys(("std.correction", "std.correction_out"), variance("std_")),
}
