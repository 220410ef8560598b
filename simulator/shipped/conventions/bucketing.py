"""`searchsorted` and `bucketize`: a binary search for every number.

Source: aten/src/ATen/native/mps/operations/Bucketization.mm and BucketizationUtils.h (main, 2026); the kernels of
2.13.0 and 2.15.0 take the same arguments. They read contiguous memory of one dtype, so the host converts first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .metal_types import metal_name

_MOST_GROUPS = 1024


def _search(call: Call, kernels: ReleaseKernels, boundaries: Tensor, right: bool) -> list[Step]:
    wanted = call["self"]
    dtype = torch.result_type(boundaries, wanted)
    steps: list[Step] = []
    values = _in_dtype(kernels, wanted, dtype, steps)
    edges = _in_dtype(kernels, boundaries, dtype, steps)
    sorter = call.arguments.get("sorter")
    result = call.result
    dense = result if result.is_contiguous() else result.new_empty(result.shape)
    arguments: dict[str, object] = {
        "data_in": values,
        "data_bd": edges,
        "data_out": dense,
        "idim_in": values.size(-1) if values.dim() else 1,
        "idim_bd": edges.size(-1),
        "numel_in": values.numel(),
        "right": int(right),
        "is_1d_boundaries": int(edges.dim() == 1),
    }
    kernel = f"searchsorted_{metal_name(dtype)}_{metal_name(result.dtype)}"
    if sorter is not None:
        kernel += "_sorter"
        arguments["data_sort"] = sorter.contiguous()
    width = min(values.numel(), MAX_THREADS_OF_GROUP)
    groups = min(-(-values.numel() // width), _MOST_GROUPS)
    steps.append(KernelLaunch(required(kernels, kernel), arguments, (groups * width, 1, 1), (width, 1, 1)))
    return steps if dense is result else [*steps, copied(kernels, result, dense)]


def _in_dtype(kernels: ReleaseKernels, values: Tensor | complex, dtype: torch.dtype, steps: list[Step]) -> Tensor:
    if not isinstance(values, Tensor):
        return torch.scalar_tensor(values, dtype=dtype, device="cpu")
    if values.dtype == dtype:
        return values.contiguous()
    converted = torch.empty(values.shape, dtype=dtype, device="cpu")
    steps.append(copied(kernels, converted, values))
    return converted


def _searchsorted(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    right = call["right"] or call["side"] == "right"
    return _search(call, kernels, call["sorted_sequence"], right)


def _bucketize(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return _search(call, kernels, call["boundaries"], call["right"])


PLANNERS: dict[str, Planner] = {
    **{f"searchsorted.{form}{out}": _searchsorted for form in ("Tensor", "Scalar") for out in ("", "_out")},
    **dict.fromkeys(("bucketize.Tensor", "bucketize.Tensor_out", "bucketize.Scalar"), _bucketize),
}
