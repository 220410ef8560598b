"""Scans: cumsum, cumprod, logcumsumexp, cummax and cummin.

Source: aten/src/ATen/native/mps/operations/ScanKernel.mm and UnaryOps.mm (`cumulative_op_impl`, mid 2026).
`scan_launches` has the kernels for long scans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .layouts import wrapped
from .metal_types import metal_name
from .scan_launches import Scan, grid_of_scan, outer_grid, outer_group, steps_of_long_scan

_SCANNED_AS_THEY_ARE = (torch.int32, torch.int64)


def _simple(kernels: ReleaseKernels, operator: str, output: Tensor, value: Tensor, dimension: int) -> list[Step]:
    """The steps of a scan with one result, `output`, which may have a wider dtype and any strides."""
    scan = Scan(operator, value, output, dimension)
    if scan.is_transposed:
        return [_transposed(kernels, scan)]
    dense = replace(scan, value=value.contiguous())
    if output.is_contiguous():
        return _into(kernels, dense)
    staged = torch.empty(output.shape, dtype=output.dtype, device="cpu")
    return [*_into(kernels, replace(dense, output=staged)), copied(kernels, output, staged)]


def _into(kernels: ReleaseKernels, scan: Scan) -> list[Step]:
    long = steps_of_long_scan(kernels, scan)
    if long is not None:
        return long
    arguments: dict[str, object] = {"in": scan.value, "out": scan.output}
    return [_one_group_a_scan(kernels, scan, arguments, scan.type_names, scan.reads)]


def _one_group_a_scan(
    kernels: ReleaseKernels, scan: Scan, arguments: dict[str, object], type_names: str, reads: int
) -> KernelLaunch:
    """A threadgroup for each scan, or for each 32 columns of a scan along an outer dimension."""
    arguments["axis_size"] = scan.length
    if scan.is_innermost:
        group, grid = grid_of_scan(scan.value, scan.dimension, scan.length, reads)
        name = f"{scan.operator}_innermost_{type_names}"
    else:
        stride = scan.value.stride(scan.dimension)
        blocks = -(-stride // 32)
        arguments |= {"stride": stride, "stride_blocks": blocks}
        group, grid = outer_grid(scan.value, scan.dimension, blocks, reads)
        name = f"{scan.operator}_outer_{type_names}"
    return KernelLaunch(required(kernels, name), arguments, grid, group)


def _transposed(kernels: ReleaseKernels, scan: Scan) -> KernelLaunch:
    columns = scan.value.numel() // scan.length
    blocks = -(-columns // 32)
    group = outer_group(32, scan.reads)
    arguments: dict[str, object] = {"in": scan.value, "out": scan.output, "axis_size": scan.length}
    arguments |= {"n_cols": columns, "stride_blocks": blocks}
    name = required(kernels, f"{scan.operator}_innermost_transposed_{scan.type_names}")
    return KernelLaunch(name, arguments, (group, blocks, 1), (group, 1, 1))


def cumulative(operator: str) -> Planner:
    """`cumsum` and `cumprod`, which scan in int32, in int64 or in the input's floating-point dtype."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        value: Tensor = call["self"]
        output = call.result
        dimension = wrapped(call["dim"], value.dim())
        steps: list[Step] = []
        if call["dtype"] is not None and call["dtype"] != value.dtype:
            steps, value = _converted(kernels, value, call["dtype"])
        if value.is_complex():
            value, output = (t.view(1) if t.dim() == 0 else t for t in (value, output))
            if operator == "cumsum":
                value, output = torch.view_as_real(value), torch.view_as_real(output)
            return [*steps, *_simple(kernels, operator, output, value, dimension)]
        if value.dim() == 0:
            return [*steps, copied(kernels, output, value)]
        if not value.is_floating_point() and value.dtype not in _SCANNED_AS_THEY_ARE:
            more, value = _converted(kernels, value, torch.int32)
            steps += more
        if not value.is_floating_point() and output.dtype not in _SCANNED_AS_THEY_ARE:
            narrow = output
            output = torch.empty(narrow.shape, dtype=torch.int32, device="cpu")
            return [*steps, *_simple(kernels, operator, output, value, dimension), copied(kernels, narrow, output)]
        if value.dtype != output.dtype and (value.dtype, output.dtype) != _SCANNED_AS_THEY_ARE:
            more, value = _converted(kernels, value, output.dtype)
            steps += more
        return [*steps, *_simple(kernels, operator, output, value, dimension)]

    return plan


def _converted(kernels: ReleaseKernels, value: Tensor, dtype: torch.dtype) -> tuple[list[Step], Tensor]:
    converted = torch.empty(value.shape, dtype=dtype, device="cpu")
    return [copied(kernels, converted, value)], converted


def logcumsumexp(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """The logarithm of the sum of exponentials up to each element."""
    value: Tensor = call["self"]
    if value.dim() == 0:
        raise Declined("one element is copied, not scanned")
    return _simple(kernels, "logcumsumexp", call.result, value, wrapped(call["dim"], value.dim()))


def with_indices(operator: str) -> Planner:
    """`cummax` and `cummin`, which write to values and indices that are already allocated."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        value, values, indices = call["self"].contiguous(), call["values"], call["indices"]
        if value.dim() == 0 or not (values.is_contiguous() and indices.is_contiguous()):
            raise Declined("results that are not contiguous")
        scan = Scan(operator, value, values, wrapped(call["dim"], value.dim()))
        reads = 4 if value.element_size() <= 4 else 2
        arguments: dict[str, object] = {"in": value, "out_values": values, "out_indices": indices}
        return [_one_group_a_scan(kernels, scan, arguments, metal_name(value.dtype), reads)]

    return plan


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("cumsum", "cumsum_", "cumsum.out"), cumulative("cumsum")),
    **dict.fromkeys(("cumprod", "cumprod_", "cumprod.out"), cumulative("cumprod")),
    **dict.fromkeys(("_logcumsumexp", "_logcumsumexp.out"), logcumsumexp),
    "_cummax_helper": with_indices("cummax"),
    "_cummin_helper": with_indices("cummin"),
}
