"""Norms of vectors: `linalg_vector_norm` and the overloads of `norm` that call it.

Source: `norm_kernel_mps` of aten/src/ATen/native/mps/operations/ReduceOps.mm (mid and late 2026): one kernel takes
every order and layout. Dense rows of orders 1 and 2 have separate kernels, which are sums of transformed elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .layouts import with_reduced_dimensions, wrapped_dimensions
from .metal_types import metal_name
from .reduction_launches import ReductionOp, innermost, params_of, reduce, reduced_dimensions

_PREFIXES = {
    0.0: "norm_l0_",
    1.0: "norm_l1_",
    2.0: "norm_l2_",
    float("inf"): "norm_inf_",
    -float("inf"): "norm_neginf_",
}


def norm(kernels: ReleaseKernels, output: Tensor, value: Tensor, order: float) -> list[Step]:
    """The steps of a norm of an order; if no kernel has these dtypes, the input is converted first."""
    if (
        value.is_complex() == output.is_complex()
        and value.dtype != output.dtype
        and not _has_any(kernels, value, output)
    ):
        converted = torch.empty(value.shape, dtype=output.dtype, device="cpu")
        return [copied(kernels, converted, value), *_of_dtype(kernels, output, converted, order)]
    return _of_dtype(kernels, output, value, order)


def _has_any(kernels: ReleaseKernels, value: Tensor, output: Tensor) -> bool:
    return f"norm_{metal_name(value.dtype)}_{metal_name(output.dtype)}" in kernels


def _of_dtype(kernels: ReleaseKernels, output: Tensor, value: Tensor, order: float) -> list[Step]:
    given, result = metal_name(value.dtype), metal_name(output.dtype)
    prefix = _PREFIXES.get(order)
    if prefix and f"{prefix}reduction_innermost_{given}_{result}" in kernels:
        partial = "float" if order in (0.0, 1.0, 2.0) else result
        combine = "norm_l2_combine_" if order == 2.0 else "sum_" if order in (0.0, 1.0) else prefix
        takes_root = 2.0 if order == 2.0 else 0.0  # only its sign counts: the root of a sum of squares is the last step
        return reduce(kernels, ReductionOp(prefix, given, result, partial, combine, takes_root), output, value)
    op = ReductionOp(prefix or "", given, result, result, "", takes_divisor=True)
    if order in (1.0, 2.0) and op.name("_inner") in kernels and _is_of_dense_rows(value, output):
        return [innermost(kernels, op, output, value)]
    return [_of_any_order(kernels, output, value, order)]


def _is_of_dense_rows(value: Tensor, output: Tensor) -> bool:
    dense = output.numel() > 1 and value.is_contiguous() and output.is_contiguous()
    return dense and reduced_dimensions(value, output) == [value.dim() - 1]


def _of_any_order(kernels: ReleaseKernels, output: Tensor, value: Tensor, order: float) -> KernelLaunch:
    """A threadgroup for each norm, with a thread for each element, up to the largest group."""
    name = required(kernels, f"norm_{metal_name(value.dtype)}_{metal_name(output.dtype)}")
    size = value.numel() // output.numel()
    group = min(MAX_THREADS_OF_GROUP, size)
    arguments: dict[str, object] = {"input": value, "output": output, "params": params_of(value, output, size, order)}
    return KernelLaunch(name, arguments, (output.numel() * group, 1, 1), (group, 1, 1))


def vector_norm(order_argument: str) -> Planner:
    """The planner of an overload; `order_argument` names the argument with the order, which is 2 if that is None."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        value: Tensor = call["self"]
        if value.numel() == 0:
            raise Declined("an empty input is filled, not reduced")
        order = call[order_argument]
        dimensions = wrapped_dimensions(call["dim"], value.dim())
        output = with_reduced_dimensions(call.result, dimensions, call["keepdim"])
        return norm(kernels, output, value, 2.0 if order is None else float(order))

    return plan


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("linalg_vector_norm", "linalg_vector_norm.out"), vector_norm("ord")),
    **dict.fromkeys(("norm.ScalarOpt_dim", "norm.out"), vector_norm("p")),
    **dict.fromkeys(("norm.ScalarOpt_dim_dtype", "norm.dtype_out"), vector_norm("p")),
}
