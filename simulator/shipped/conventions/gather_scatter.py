"""`gather`, `scatter` and its reductions: one thread an index.

Source: aten/src/ATen/native/mps/operations/ScatterGather.mm and the shared aten/src/ATen/native/
TensorAdvancedIndexing.cpp (`scatter_impl`, `scatter_reduce_exclude_self_helper`), main, 2026; the kernels of 2.13.0 and
2.15.0 take the same arguments. The kernels of value type T and index type I are

    gather_dense_T_I, gather_strided_T_I
    scatter_set_dense_T_I, scatter_set_T_I      (strided)
    scatter_set_dense_value_T_I                 one number instead of a source
    scatter_OP_dense_T_I, scatter_OP_strided_T_I, OP of add, prod, amin, amax

int64 has amin and amax only for unsigned numbers: the host flips all sign bits before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import ERROR_BUFFER, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .composition import inner
from .copies import copied
from .fills import filled, masked_filled, set_to_zero
from .layouts import wrapped
from .metal_types import metal_name
from .names import functional_inplace_out
from .operands import at_least_1d, fits_32_bits, is_same, scalar_bytes

_OPERATIONS = {
    **{"sum": "add", "add": "add", "mean": "add", "prod": "prod", "multiply": "prod"},
    **{"amin": "amin", "amax": "amax"},
}


def _gather(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, index, output = (at_least_1d(t) for t in (call["self"], call["index"], call.result))
    dim = wrapped(call["dim"], source.dim())
    types = f"{metal_name(output.dtype)}_{metal_name(index.dtype)}"
    _check_offsets(source, index, output)
    dense = output.is_contiguous() and index.is_contiguous() and source.is_contiguous()
    if dense and _agree_outside(source, output, dim):
        arguments = {
            "output": output,
            "input": source,
            "index": index,
            "inner_size": _inner_size(output, dim),
            "output_dim_size": output.size(dim),
            "input_dim_size": source.size(dim),
        }
        return [_launch(kernels, f"gather_dense_{types}", arguments, index)]
    arguments = {
        "output": output,
        "input": source,
        "index": index,
        "sizes": list(index.shape),
        "output_strides": list(output.stride()),
        "input_strides": list(source.stride()),
        "index_strides": list(index.stride()),
        "ndim_dim": [index.dim(), dim, 0],
        "input_dim_size": source.size(dim),
    }
    return [_launch(kernels, f"gather_strided_{types}", arguments, index)]


def scattered(kernels: ReleaseKernels, target: Tensor, dim: int, index: Tensor, source: Tensor) -> list[Step]:
    """The steps that set `target` at `index` along `dim` to `source`."""
    return [_scatter(kernels, ("scatter_set_dense", "scatter_set"), target, dim, index, source)]


def scattered_value(kernels: ReleaseKernels, target: Tensor, dim: int, index: Tensor, value: complex) -> list[Step]:
    """The steps that set `target` at `index` along `dim` to one number."""
    target, index = at_least_1d(target), at_least_1d(index)
    dim = wrapped(dim, target.dim())
    if not _can_be_dense(target, index, dim):
        source = torch.empty(index.shape, dtype=target.dtype, device="cpu")
        return [filled(kernels, source, value), *scattered(kernels, target, dim, index, source)]
    arguments = {
        "output": target,
        "value": scalar_bytes(value, target.dtype),
        "index": index,
        "inner_size": _inner_size(target, dim),
        "index_dim_size": index.size(dim),
        "output_dim_size": target.size(dim),
    }
    _check_offsets(target, index)
    types = f"{metal_name(target.dtype)}_{metal_name(index.dtype)}"
    return [_launch(kernels, f"scatter_set_dense_value_{types}", arguments, index)]


def scatter_reduced(
    kernels: ReleaseKernels, target: Tensor, dim: int, index: Tensor, source: Tensor, operation: str
) -> list[Step]:
    """The steps that combine `target` at `index` along `dim` with `source` by `operation` (add, prod, amin, amax)."""
    names = (f"scatter_{operation}_dense", f"scatter_{operation}_strided")
    launch = _scatter(kernels, names, target, dim, index, source)
    if target.dtype != torch.int64 or operation not in ("amin", "amax"):
        return [launch]
    if not target.is_contiguous():
        raise Declined("refused on a Mac: int64 amin and amax need contiguous memory")
    flip = KernelLaunch(
        required(kernels, "scatter_signbit_xor_long"), {"data": target, "tid_offset": 0}, *in_line(target.numel())
    )
    return [flip, launch, flip]


def _scatter(
    kernels: ReleaseKernels, names: tuple[str, str], target: Tensor, dim: int, index: Tensor, source: Tensor
) -> KernelLaunch:
    target, index, source = at_least_1d(target), at_least_1d(index), at_least_1d(source)
    dim = wrapped(dim, target.dim())
    _check_offsets(target, index, source)
    types = f"{metal_name(target.dtype)}_{metal_name(index.dtype)}"
    if _can_be_dense(target, index, dim) and source.is_contiguous() and source.shape == index.shape:
        arguments = {
            "output": target,
            "src": source,
            "index": index,
            "inner_size": _inner_size(target, dim),
            "index_dim_size": index.size(dim),
            "output_dim_size": target.size(dim),
        }
        return _launch(kernels, f"{names[0]}_{types}", arguments, index)
    arguments = {
        "output": target,
        "src": source,
        "index": index,
        "index_sizes": list(index.shape),
        "output_strides": list(target.stride()),
        "src_strides": list(source.stride()),
        "index_strides": list(index.stride()),
        "ndim_dim": [index.dim(), dim, 0],
        "dim_size": target.size(dim),
    }
    return _launch(kernels, f"{names[1]}_{types}", arguments, index)


def _launch(kernels: ReleaseKernels, name: str, arguments: dict[str, object], index: Tensor) -> KernelLaunch:
    every = {**arguments, "tid_offset": 0, "error_buf": ERROR_BUFFER}
    return KernelLaunch(required(kernels, name), every, *in_line(index.numel()))


def _agree_outside(tensor: Tensor, other: Tensor, dim: int) -> bool:
    return all(tensor.size(i) == other.size(i) for i in range(tensor.dim()) if i != dim)


def _can_be_dense(target: Tensor, index: Tensor, dim: int) -> bool:
    return target.is_contiguous() and index.is_contiguous() and _agree_outside(target, index, dim)


def _inner_size(tensor: Tensor, dim: int) -> int:
    return math.prod(tensor.shape[dim + 1 :])


def _check_offsets(*tensors: Tensor) -> None:
    if not fits_32_bits(*tensors):
        raise Declined("offsets of more than 32 bits")


# ------------------------------------------------------------------------------------------------ overloads
def _start(call: Call, kernels: ReleaseKernels) -> list[Step]:
    """Copy self to the result, as `scatter_impl` does, unless it works in place."""
    if is_same(call["self"], call.result):
        return []
    return [copied(kernels, call.result, call["self"])]


def _nothing_to_do(call: Call) -> bool:
    source = call.arguments.get("src")
    return call["index"].numel() == 0 or (isinstance(source, Tensor) and source.numel() == 0)


def _scatter_set(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    steps = _start(call, kernels)
    if not _nothing_to_do(call):
        if "src" in call.arguments:
            steps += scattered(kernels, call.result, call["dim"], call["index"], call["src"])
        else:
            steps += scattered_value(kernels, call.result, call["dim"], call["index"], call["value"])
    return steps


def _scatter_reduce(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`scatter.reduce`, `scatter.value_reduce` and `scatter_add`, which keep self's values in the reduction."""
    steps = _start(call, kernels)
    if _nothing_to_do(call):
        return steps
    source = call.arguments.get("src")
    if source is None:
        source = torch.empty(call["index"].shape, dtype=call.result.dtype, device="cpu")
        steps.append(filled(kernels, source, call["value"]))
    operation = _OPERATIONS[call.arguments.get("reduce", "add")]
    return steps + scatter_reduced(kernels, call.result, call["dim"], call["index"], source, operation)


def _scatter_reduce_two(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`scatter_reduce`, with or without self's values; a mean is a sum divided by the number of summands."""
    steps = _start(call, kernels)
    if _nothing_to_do(call):
        return steps
    operation = _OPERATIONS[call["reduce"]]
    target, dim, index = call.result, call["dim"], call["index"]
    if not call["include_self"]:
        steps += scattered_value(kernels, target, dim, index, initial_value(operation, target.dtype))
    steps += scatter_reduced(kernels, target, dim, index, call["src"], operation)
    if call["reduce"] != "mean":
        return steps
    ones, counts = torch.empty(call["src"].shape, dtype=target.dtype, device="cpu"), torch.empty_like(target)
    steps.append(filled(kernels, ones, 1))
    steps.append(filled(kernels, counts, 1) if call["include_self"] else set_to_zero(kernels, counts))
    steps += scatter_reduced(kernels, counts, dim, index, ones, "add")
    return steps + divided_by_counts(kernels, target, counts)


def divided_by_counts(kernels: ReleaseKernels, target: Tensor, counts: Tensor) -> list[Step]:
    """The steps that divide sums by counts; a count of 0 is taken as 1."""
    none = torch.empty_like(counts, dtype=torch.bool)
    steps = inner(kernels, "eq.Scalar", none, self=counts, other=0)
    steps.append(masked_filled(kernels, counts, none, 1))
    if target.dtype.is_floating_point or target.is_complex():
        return steps + inner(kernels, "div_.Tensor", target, self=target, other=counts)
    rounded = {"self": target, "other": counts, "rounding_mode": "floor"}
    return steps + inner(kernels, "div_.Tensor_mode", target, **rounded)


def initial_value(operation: str, dtype: torch.dtype) -> complex:
    """The initial value of a reduction without self's values."""
    if operation in ("add", "mean"):
        return 0
    if operation == "prod":
        return 1
    lowest = operation == "amax"
    if dtype == torch.bool:
        return not lowest
    if dtype.is_floating_point:
        return -math.inf if lowest else math.inf
    limits = torch.iinfo(dtype)
    return limits.min if lowest else limits.max


def _overloads(name: str, variant: str) -> tuple[str, ...]:
    return f"{name}.{variant}", f"{name}_.{variant}", f"{name}.{variant}_out"


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("gather", "gather.out"), _gather),
    **dict.fromkeys((*_overloads("scatter", "src"), *_overloads("scatter", "value")), _scatter_set),
    **dict.fromkeys((*_overloads("scatter", "reduce"), *_overloads("scatter", "value_reduce")), _scatter_reduce),
    **dict.fromkeys(functional_inplace_out("scatter_add"), _scatter_reduce),
    **dict.fromkeys(_overloads("scatter_reduce", "two"), _scatter_reduce_two),
}
