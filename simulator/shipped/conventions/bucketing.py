"""`searchsorted` and `bucketize`: where numbers would stand in sorted rows.

Read in aten/src/ATen/native/mps/operations/Bucketization.mm (2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .metal_types import metal_name

_MOST_GROUPS = 1024


def _searched(
    kernels: ReleaseKernels, result: Tensor, value: Any, boundaries: Tensor, right: bool, sorter: Tensor | None
) -> list[Step]:
    """Each thread searches for one number, and for those that are a grid apart."""
    given = _as_boundaries(value, boundaries)
    out = result if result.is_contiguous() else torch.empty(result.shape, dtype=result.dtype, device="cpu")
    suffix = "" if sorter is None else "_sorter"
    name = required(kernels, f"searchsorted_{metal_name(given.dtype)}_{metal_name(out.dtype)}{suffix}")
    arguments: dict[str, object] = {
        "data_in": given,
        "data_bd": boundaries.contiguous(),
        "data_out": out,
        "idim_in": given.size(-1) if given.dim() else 1,
        "idim_bd": boundaries.size(-1),
        "numel_in": given.numel(),
        "right": int(right),
        "is_1d_boundaries": int(boundaries.dim() == 1),
    }
    if sorter is not None:
        arguments["data_sort"] = sorter.contiguous()
    group = min(MAX_THREADS_OF_GROUP, given.numel())
    groups = min(_MOST_GROUPS, -(-given.numel() // group))
    launch = KernelLaunch(name, arguments, (groups * group, 1, 1), (group, 1, 1))
    return [launch] if out is result else [launch, copied(kernels, result, out)]


def _as_boundaries(value: Any, boundaries: Tensor) -> Tensor:
    """What is searched for, contiguous and of the boundaries' dtype; the host promotes both otherwise."""
    if not isinstance(value, Tensor):
        if isinstance(value, float) and not boundaries.is_floating_point():
            raise Declined("numbers of another dtype than the boundaries")
        return torch.tensor(value, dtype=boundaries.dtype, device="cpu")
    if value.dtype != boundaries.dtype:
        raise Declined("numbers of another dtype than the boundaries")
    return value.contiguous()


def searchsorted(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """In rows that may be sorted by indices."""
    right = call["right"] or call["side"] == "right"
    return _searched(kernels, call.result, call["self"], call["sorted_sequence"], right, call["sorter"])


def bucketize(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """In one row."""
    return _searched(kernels, call.result, call["self"], call["boundaries"], call["right"], None)


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("searchsorted.Tensor", "searchsorted.Tensor_out"), searchsorted),
    **dict.fromkeys(("searchsorted.Scalar", "searchsorted.Scalar_out"), searchsorted),
    **dict.fromkeys(("bucketize.Tensor", "bucketize.Tensor_out", "bucketize.Scalar"), bucketize),
}
