"""sort, topk and kthvalue: all of them sort rows, and the latter two write a window of the sorted row.

Source: aten/src/ATen/native/mps/operations/Sort.mm (mid 2026). A row that fits into a threadgroup is sorted by one. A
longer row is sorted in blocks that are merged, or digit by digit (`sort_launches.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import Planner, ReleaseKernels, Step
from .copies import copied
from .layouts import wrapped
from .sort_launches import Rows, Sorting, sorted_rows
from .zeroing import zeroed


def _sort(
    kernels: ReleaseKernels, sorting: Sorting, values: Tensor, indices: Tensor, given: Tensor, dimension: int
) -> list[Step]:
    """The steps that sort along a dimension into results of any strides."""
    if given.dim() == 0 or given.size(dimension) <= 1:
        return [copied(kernels, values, given), zeroed(indices)]
    if values.is_contiguous() and indices.is_contiguous():
        return _into_dense(kernels, sorting, values, indices, given, dimension)
    dense = [torch.empty(t.shape, dtype=t.dtype, device="cpu") for t in (values, indices)]
    steps = _into_dense(kernels, sorting, dense[0], dense[1], given, dimension)
    return [*steps, copied(kernels, values, dense[0]), copied(kernels, indices, dense[1])]


def _into_dense(
    kernels: ReleaseKernels, sorting: Sorting, values: Tensor, indices: Tensor, given: Tensor, dimension: int
) -> list[Step]:
    """Sort into dense results: rows along the last dimension are read in place if possible, others are copied."""
    length = given.size(dimension)
    if dimension == given.dim() - 1:
        rows = Rows(_as_matrix(given), values, indices)
        return sorted_rows(kernels, sorting, rows)[0]
    matrix = given.movedim(dimension, -1).contiguous().view(-1, length)
    if sorting.count == 1:
        return sorted_rows(kernels, sorting, Rows(matrix, values, indices))[0]
    steps, sorted_values, sorted_indices = sorted_rows(kernels, sorting, Rows(matrix))
    shape = given.movedim(dimension, -1).shape
    for result, sorted_result in ((values, sorted_values), (indices, sorted_indices)):
        steps.append(copied(kernels, result, sorted_result.view(shape).movedim(-1, dimension)))
    return steps


def _as_matrix(given: Tensor) -> Tensor:
    """The rows of the last dimension as a matrix: a view if possible, else a copy."""
    try:
        return given.view(-1, given.size(-1))
    except RuntimeError:
        return given.contiguous().view(-1, given.size(-1))


def sort(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Whole rows."""
    given: Tensor = call["self"]
    sorting = Sorting(call["descending"], bool(call["stable"]))
    values, indices = call.results[:2]
    return _sort(kernels, sorting, values, indices, given, wrapped(call["dim"], given.dim()))


def topk(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """The first elements of each sorted row; along a dimension other than the last, the results are moved back."""
    given: Tensor = call["self"]
    values, indices = call.results[:2]
    dimension = wrapped(call["dim"], given.dim())
    sorting = Sorting(call["largest"], False, 0, call["k"])
    if dimension == given.dim() - 1 or given.dim() == 0:
        return _sort(kernels, sorting, values, indices, given, dimension)
    moved = given.movedim(dimension, -1).contiguous()
    shape = (*moved.shape[:-1], call["k"])
    outputs = [torch.empty(shape, dtype=t.dtype, device="cpu") for t in (values, indices)]
    steps = _sort(kernels, sorting, outputs[0], outputs[1], moved, moved.dim() - 1)
    for result, part in zip((values, indices), outputs, strict=True):
        steps.append(copied(kernels, result, part.movedim(-1, dimension)))
    return steps


def kthvalue(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """One element of each row."""
    given: Tensor = call["self"]
    sorting = Sorting(False, False, call["k"] - 1, 1)
    values, indices = call.results[:2]
    dimension = wrapped(call["dim"], given.dim())
    if given.dim() and given.size(dimension) == 1:
        values, indices = values.view(given.shape), indices.view(given.shape)
    return _sort(kernels, sorting, values, indices, given, dimension)


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("sort.stable", "sort.values_stable"), sort),
    **dict.fromkeys(("topk", "topk.values"), topk),
    "kthvalue.values": kthvalue,
}
