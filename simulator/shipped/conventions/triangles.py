"""`tril`, `triu`, their indices, and `eye`.

Source: TriangularOps.mm and Eye.mm of aten/src/ATen/native/mps/operations (main, 2026); the kernels of 2.13.0 and
2.15.0 take the same arguments. Sizes and strides are the tensor's own, innermost dimension first, in elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, KernelLaunch, Planner, ReleaseKernels, Step, in_line, in_plane, required
from .fills import set_to_zero
from .metal_types import metal_name
from .names import functional_inplace_out, table
from .operands import is_same

_ONE_PASS_UP_TO = 1 << 22
"""Elements up to which `eye` writes zeros and ones in one kernel."""


def _triangle(name: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source, output = call["self"], call.result
        width, height = source.size(-1), source.size(-2)
        arguments: dict[str, object] = {
            "sizes": list(reversed(source.shape)),
            "k_ndim": [call["diagonal"], source.dim()],
        }
        if is_same(source, output):
            kernel = f"{name}_inplace_int_{metal_name(source.dtype)}"
            arguments |= {"self": output, "strides": list(reversed(output.stride()))}
        else:
            kernel = f"{name}_int_{metal_name(source.dtype)}"
            arguments |= {
                "out": output,
                "inp": source,
                "out_strides": list(reversed(output.stride())),
                "inp_strides": list(reversed(source.stride())),
            }
        threads = (width, height, math.prod(source.shape[:-2]))
        return [KernelLaunch(required(kernels, kernel), arguments, threads, (min(width, MAX_THREADS_OF_GROUP), 1, 1))]

    return plan


def _tril_indices(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    rows, columns, offset, result = call["row"], call["col"], call["offset"], call.result
    count = result.size(1)
    first = min(columns, 1 + offset) if offset > 0 else int(rows + offset > 0)
    skipped = max(0, -offset)
    rectangle_from = skipped + columns - first + 1
    rectangle = max(0, rows - rectangle_from) * columns
    arguments = {
        "tensor": result,
        "row_offset": skipped,
        "m_first_row": first,
        "col": columns,
        "trapezoid_size": count - rectangle,
        "tril_size": count,
    }
    return [KernelLaunch(required(kernels, f"tril_indices_{metal_name(result.dtype)}"), arguments, *in_line(count))]


def _triu_indices(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    rows, columns, offset, result = call["row"], call["col"], call["offset"], call.result
    count = result.size(1)
    arguments = {
        "tensor": result,
        "col_offset": max(0, offset),
        "m_first_row": max(columns - offset, 0) if offset > 0 else columns,
        "col": columns,
        "rectangle_size": min(rows, -offset) * columns if offset < 0 else 0,
        "triu_size": count,
    }
    return [KernelLaunch(required(kernels, f"triu_indices_{metal_name(result.dtype)}"), arguments, *in_line(count))]


def _eye(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result = call.result
    rows, columns = result.shape
    down, across = result.stride()
    name = metal_name(result.dtype)
    if rows * columns > _ONE_PASS_UP_TO:
        diagonal = {"output": result, "diag_stride": down + across}
        ones = KernelLaunch(required(kernels, f"eye_diag_{name}"), diagonal, *in_line(min(rows, columns)))
        return [set_to_zero(kernels, result), ones]
    grid = (columns, rows) if down >= across else (rows, columns)  # x goes along the smaller stride
    arguments = {"output": result, "stride0": max(down, across), "stride1": min(down, across)}
    return [KernelLaunch(required(kernels, f"eye_{name}"), arguments, *in_plane(*grid))]


PLANNERS: dict[str, Planner] = {
    **table([(functional_inplace_out(name), name) for name in ("tril", "triu")], _triangle),
    "tril_indices": _tril_indices,
    "triu_indices": _triu_indices,
    **dict.fromkeys(("eye.out", "eye.m_out"), _eye),
}
