"""One vector of indices along one dimension: `index_select`, `index_add`, `index_copy`, `index_fill`, `index_reduce`.

Source: aten/src/ATen/native/mps/operations/Indexing.mm (main, 2026) and, for the geometry of `index_fill_`, the shared
TensorAdvancedIndexing.cpp. `index_copy`, `index_fill` and `index_reduce` are the same in 2.13.0 and 2.15.0.
`index_select` and `index_add` have kernels in 2.15.0, which check the bounds of the indices first. In 2.13.0 they run
in MPSGraph, except `index_add` of int64 and complex numbers, which is a product and an accumulating `index_put`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import ERROR_BUFFER, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .advanced_indexing import put
from .composition import inner
from .copies import copied
from .fills import filled, set_to_zero
from .gather_scatter import divided_by_counts, initial_value
from .layouts import wrapped
from .metal_types import metal_name
from .names import functional_inplace_out
from .operands import as_bits, at_least_1d, at_least_one, bit_name, fits_32_bits, in_box, is_same, scalar_bytes

_UNITS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}
"""What `index_select` copies of contiguous memory at once, the widest first."""
_MASK_FROM = 16
"""`index_fill` marks positions in a mask where at least one in so many positions is filled."""
_CONTENDED = 16
"""`index_add` adds in float32 where at least so many indices meet in one place of half a precision."""


# ------------------------------------------------------------------------------------------------ index_select
def _index_select(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, output, index = call["self"], call.result, at_least_1d(call["index"])
    dim = wrapped(call["dim"], source.dim())
    if source.dim() == 0:
        return [copied(kernels, output, source)]
    types = metal_name(index.dtype)
    if f"index_select_dim_{bit_name(output)}_{types}" not in kernels:
        raise Declined("MPSGraph")
    check = _check_bounds(kernels, index, source.size(dim))
    if source.is_contiguous() and output.is_contiguous() and index.is_contiguous():
        return [check, _select_runs(kernels, source, output, index, dim)]
    launch = KernelLaunch(
        required(kernels, f"index_select_dim_{bit_name(output)}_{types}"),
        {
            "output": as_bits(output),
            "index": index,
            "input": as_bits(source),
            "params": _along(dim, index, source, output),
        },
        *in_line(output.numel()),
    )
    return [check, launch]


def _select_runs(kernels: ReleaseKernels, source: Tensor, output: Tensor, index: Tensor, dim: int) -> KernelLaunch:
    """Contiguous memory: copy the elements of each index in the widest units that divide their length and offsets."""
    inner = math.prod(source.shape[dim + 1 :])
    size = output.element_size()
    run = inner * size
    lengths = (run, source.storage_offset() * size, output.storage_offset() * size)
    unit = next(u for u in _UNITS if u <= size or not any(length % u for length in lengths))
    outer = source.numel() // (source.size(dim) * inner)
    integer = _UNITS[unit]
    units = run // unit
    arguments = {
        "output": _as_units(output, integer),
        "index": index,
        "input": _as_units(source, integer),
        "params": {
            "inner": units,
            "in_dim_size": source.size(dim),
            "out_dim_size": index.numel(),
            "index_stride": index.stride(0),
        },
    }
    name = required(kernels, f"index_select_dim_dense_{unit * 8}bit_{metal_name(index.dtype)}")
    return KernelLaunch(name, arguments, *in_box(units, index.numel(), outer))


def _as_units(tensor: Tensor, integer: torch.dtype) -> Tensor:
    """Contiguous memory as integers, which may be wider than its elements."""
    units = torch.empty(0, dtype=integer, device="cpu")
    size = tensor.element_size()
    count = tensor.numel() * size // integer.itemsize
    return units.set_(tensor.untyped_storage(), tensor.storage_offset() * size // integer.itemsize, (count,), (1,))


def _check_bounds(kernels: ReleaseKernels, index: Tensor, size: int) -> KernelLaunch:
    name = required(kernels, f"index_check_bounds_{metal_name(index.dtype)}")
    arguments = {"index": index, "index_stride": index.stride(0), "dim_size": size, "error_buf": ERROR_BUFFER}
    return KernelLaunch(name, arguments, *in_line(index.numel()))


def _along(dim: int, index: Tensor, target: Tensor, source: Tensor) -> dict[str, object]:
    """`IndexReduceParams`: kernels iterate over the source; an index gives the position in the target."""
    return {
        "ndim": target.dim(),
        "reduce_dim": dim,
        "self_strides": list(target.stride()),
        "self_sizes": list(target.shape),
        "source_strides": list(source.stride()),
        "source_sizes": list(source.shape),
        "index_stride": index.stride(0),
    }


# ------------------------------------------------------------------------------------------------ index_add
def _index_add(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    target, source, index = at_least_1d(call.result), at_least_1d(call["source"]), at_least_1d(call["index"])
    dim = wrapped(call["dim"], target.dim())
    kernel = f"index_add_{metal_name(target.dtype)}_{metal_name(index.dtype)}"
    if kernel not in kernels:
        return _add_by_index_put(call, kernels, target, source, index, dim)
    if torch.are_deterministic_algorithms_enabled():
        raise Declined("deterministic algorithms")
    steps: list[Step] = [] if is_same(call["self"], call.result) else [copied(kernels, call.result, call["self"])]
    if index.numel() == 0 or source.numel() == 0 or target.size(dim) == 0:
        return steps
    wider = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
    sums, addends = target, source
    if index.numel() // target.size(dim) >= _CONTENDED and target.dtype in wider:
        sums, addends = (torch.empty_like(t, dtype=wider[target.dtype]) for t in (target, source))
        steps += [copied(kernels, sums, target), copied(kernels, addends, source)]
    steps += [
        _check_bounds(kernels, index, target.size(dim)),
        KernelLaunch(
            required(kernels, f"index_add_{metal_name(sums.dtype)}_{metal_name(index.dtype)}"),
            {
                "self": sums,
                "index": index,
                "source": addends,
                "params": _along(dim, index, sums, addends),
                "alpha": scalar_bytes(call["alpha"], sums.dtype),
            },
            *in_line(addends.numel()),
        ),
    ]
    return steps if sums is target else [*steps, copied(kernels, target, sums)]


def _add_by_index_put(
    call: Call, kernels: ReleaseKernels, target: Tensor, source: Tensor, index: Tensor, dim: int
) -> list[Step]:
    """2.13.0: multiply and use an accumulating `index_put` for dtypes that MPSGraph cannot add."""
    if target.dtype != torch.int64 and not target.is_complex():
        raise Declined("MPSGraph")
    if index.numel() == 0:
        raise Declined("the host leaves the result as it is where there are no indices")
    steps: list[Step] = [] if is_same(call["self"], call.result) else [copied(kernels, call.result, call["self"])]
    product = torch.empty(source.shape, dtype=source.dtype, device="cpu")
    steps += inner(kernels, "mul.Tensor", product, self=source, other=call["alpha"])
    return steps + put(kernels, target, [*[None] * dim, index], product, accumulate=True)


# ------------------------------------------------------------------------------------------------ index_copy
def _index_copy(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    own, target, source, index = call["self"], call.result, call["source"], call["index"]
    if own.dim() == 0:
        return [copied(kernels, target, source.squeeze())]
    steps: list[Step] = [] if is_same(own, target) else [copied(kernels, target, own)]
    if source.numel() == 0 or index.numel() == 0:
        return steps
    dim = wrapped(call["dim"], own.dim())
    index, source = at_least_1d(index), at_least_1d(source)
    slice_numel = source.numel() // index.numel()
    width = 32 if fits_32_bits(target, source, index) else 64
    suffix = f"{metal_name(target.dtype)}_{'long' if index.dtype == torch.int64 else 'int'}_{width}"
    arguments: dict[str, object] = {"output": target, "source": source, "indices": index, "dim_size": target.size(dim)}
    if source.is_contiguous() and target.is_contiguous() and index.is_contiguous():
        inner = target.stride(dim)
        arguments |= {"inner": inner, "indices_numel": index.numel()}
        name = required(kernels, f"index_copy_dense_{suffix}")
        return [*steps, KernelLaunch(name, arguments, *in_box(inner, index.numel(), slice_numel // inner))]
    others = [d for d in range(target.dim()) if d != dim]
    arguments |= {
        "dim_out_stride": target.stride(dim),
        "dim_source_stride": source.stride(dim),
        "slice_sizes": at_least_one([target.size(d) for d in others]),
        "slice_out_strides": at_least_one([target.stride(d) for d in others]),
        "slice_source_strides": at_least_one([source.stride(d) for d in others]),
        "slice_ndim": len(others),
        "slice_numel": slice_numel,
        "indices_stride": index.stride(0),
    }
    name = required(kernels, f"index_copy_strided_{suffix}")
    return [*steps, KernelLaunch(name, arguments, *in_line(index.numel() * slice_numel))]


# ------------------------------------------------------------------------------------------------ index_fill
def index_filled(kernels: ReleaseKernels, target: Tensor, dim: int, index: Tensor, value: complex) -> list[Step]:
    """The steps that set `target` at `index` along `dim` to a number."""
    target, index = at_least_1d(target), at_least_1d(index)
    dim = wrapped(dim, target.dim())
    if index.numel() == 0 or target.numel() == 0:
        return []
    dense = target.is_contiguous() and index.is_contiguous()
    fill = {"output": target, "fill_val": scalar_bytes(value, target.dtype)}
    if index.numel() * _MASK_FROM >= target.size(dim):
        return _fill_by_mask(kernels, fill, target, dim, index, dense)
    layout = "dense" if dense else "strided"
    name = required(kernels, f"index_fill_{layout}_{metal_name(target.dtype)}")
    slice_numel = target.numel() // target.size(dim)
    arguments = {**fill, "indices": index, "dim_size": target.size(dim), "slice_numel": slice_numel}
    if dense:
        arguments["dim_stride"] = target.stride(dim)
    else:
        others = [d for d in range(target.dim()) if d != dim]
        arguments |= {
            "dim_out_stride": target.stride(dim),
            "slice_sizes": at_least_one([target.size(d) for d in others]),
            "slice_out_strides": at_least_one([target.stride(d) for d in others]),
            "slice_ndim": len(others),
            "indices_stride": index.stride(0),
        }
    return [KernelLaunch(name, arguments, *in_line(index.numel() * slice_numel))]


def _fill_by_mask(
    kernels: ReleaseKernels, fill: dict[str, object], target: Tensor, dim: int, index: Tensor, dense: bool
) -> list[Step]:
    """Mark the positions along `dim` in a mask, which the fill kernel then reads for every element."""
    size = target.size(dim)
    mask = torch.empty(size, dtype=torch.bool, device="cpu")
    marked = {"mask": mask, "indices": index, "dim_size": size, "indices_stride": index.stride(0)}
    steps: list[Step] = [
        KernelLaunch(required(kernels, "index_fill_zero_mask"), {"mask": mask}, *in_line(size)),
        KernelLaunch(required(kernels, "index_fill_set_mask"), marked, *in_line(index.numel())),
    ]
    layout = "dense" if dense else "strided"
    name = required(kernels, f"index_fill_{layout}_from_mask_{metal_name(target.dtype)}")
    arguments = {**fill, "mask": mask}
    if dense:
        inner = math.prod(target.shape[dim + 1 :])
        arguments |= {"dim_size": size, "inner_size": inner}
        return [*steps, KernelLaunch(name, arguments, *in_box(inner, size, target.numel() // (size * inner)))]
    arguments |= {"sizes": list(target.shape), "out_strides": list(target.stride()), "dim": dim, "ndim": target.dim()}
    return [*steps, KernelLaunch(name, arguments, *in_line(target.numel()))]


def _index_fill(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    value = call["value"]
    number = value.item() if isinstance(value, Tensor) else value
    return index_filled(kernels, call.result, call["dim"], call["index"], number)


# ------------------------------------------------------------------------------------------------ index_reduce
def _index_reduce(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    target, source, index, reduce = call.result, call["source"], call["index"], call["reduce"]
    if target.dim() == 0 or index.dim() == 0:
        raise Declined("no dimensions")
    dim = wrapped(call["dim"], target.dim())
    name = f"index_reduce_{reduce}_{metal_name(target.dtype)}_{metal_name(index.dtype)}"
    steps: list[Step] = [] if is_same(call["self"], target) else [copied(kernels, target, call["self"])]
    if not call["include_self"]:
        positions = index
        if index.dtype != torch.int64:
            positions = torch.empty(index.shape, dtype=torch.int64, device="cpu")
            steps.append(copied(kernels, positions, index))
        steps += index_filled(kernels, target, dim, positions, initial_value(reduce, target.dtype))
    if source.numel() == 0:
        return steps
    arguments = {"self": target, "index": index, "source": source, "params": _along(dim, index, target, source)}
    steps.append(KernelLaunch(required(kernels, name), arguments, *in_line(source.numel())))
    if reduce != "mean":
        return steps
    ones, counts = torch.empty(source.shape, dtype=target.dtype, device="cpu"), torch.empty_like(target)
    steps.append(filled(kernels, ones, 1))
    steps.append(filled(kernels, counts, 1) if call["include_self"] else set_to_zero(kernels, counts))
    steps += inner(kernels, "index_add_", counts, self=counts, dim=dim, index=index, source=ones)
    return steps + divided_by_counts(kernels, target, counts)


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("index_select", "index_select.out"), _index_select),
    **dict.fromkeys(functional_inplace_out("index_add"), _index_add),
    **dict.fromkeys(functional_inplace_out("index_copy"), _index_copy),
    **dict.fromkeys(("index_fill_.int_Scalar", "index_fill_.int_Tensor"), _index_fill),
    **dict.fromkeys(functional_inplace_out("index_reduce"), _index_reduce),
}
