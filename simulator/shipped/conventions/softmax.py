"""`_softmax` and `_log_softmax`, which have kernels from 2.14 on; their gradients run in MPSGraph.

The host code is not public. The kernels' arguments are from the release, the use of each kernel from the comments in
aten/src/ATen/native/mps/kernels/LogSoftmax.metal (mid 2026). The length of a chunk is our choice; it changes the last
bits of a sum. The kernels that split strided rows have no convention; the one for any layout is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .layouts import wrapped
from .metal_types import metal_name

_GROUP = 256
_ROWS_OF_GROUP = 8
_LONGEST_ROW, _LONGEST_OF_MANY_ROWS, _MANY_ROWS = 1024, 2048, 128
_MOST_SPLIT_ROWS = 256
_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of `given` along a dimension, which are normalized into a contiguous `output`."""

    operator: str
    given: Tensor
    output: Tensor
    dimension: int

    @property
    def length(self) -> int:
        return self.given.size(self.dimension)

    @property
    def count(self) -> int:
        return self.given.numel() // self.length

    @property
    def inner(self) -> int:
        return prod(self.given.shape[self.dimension + 1 :])

    @property
    def is_dense(self) -> bool:
        return self.inner == 1 and self.given.is_contiguous()

    def kernel(self, kernels: ReleaseKernels, prefix: str) -> str:
        return required(kernels, f"{prefix}_{metal_name(self.given.dtype)}_u32")

    def params(self, chunks: int = 0) -> dict[str, object]:
        return {
            "dim_size": self.length,
            "num_rows": self.count,
            "inner_size": self.inner,
            "chunk_size": _CHUNK if chunks else 0,
            "n_chunks": chunks,
            "ndim": self.given.dim(),
            "dim": self.dimension,
            "sizes": list(self.given.shape),
            "strides": list(self.given.stride()),
        }


def _of(operator: str) -> Planner:
    """The planner of "softmax" or "log_softmax"."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        given, output = call["self"], call.result
        if call["half_to_float"]:
            raise Declined("half to float")
        if not output.is_contiguous():
            raise Declined("a result that is not contiguous")
        if given.dim() == 0:
            given, output = given.view(1), output.view(1)
        rows = _Rows(operator, given, output, wrapped(call["dim"], given.dim()))
        if rows.is_dense and (
            rows.length <= _LONGEST_ROW or (rows.length <= _LONGEST_OF_MANY_ROWS and rows.count >= _MANY_ROWS)
        ):
            return [_by_simd_groups(kernels, rows)]
        if rows.is_dense and rows.length > _LONGEST_OF_MANY_ROWS and rows.count <= _MOST_SPLIT_ROWS:
            return _in_chunks(kernels, rows)
        return [_of_any_layout(kernels, rows)]

    return plan


def _by_simd_groups(kernels: ReleaseKernels, rows: _Rows) -> KernelLaunch:
    """A SIMD group for each row."""
    arguments = {"input": rows.given, "output": rows.output, "params": rows.params()}
    threads = (-(-rows.count // _ROWS_OF_GROUP) * _GROUP, 1, 1)
    return KernelLaunch(rows.kernel(kernels, f"{rows.operator}_row"), arguments, threads, (_GROUP, 1, 1))


def _in_chunks(kernels: ReleaseKernels, rows: _Rows) -> list[Step]:
    """First the maximum and sum of each chunk, then the results of each chunk from those of all chunks."""
    chunks = -(-rows.length // _CHUNK)
    partials = torch.empty(rows.count * chunks, dtype=torch.complex64, device="cpu")
    first = {"input": rows.given, "partials": partials, "params": rows.params(chunks)}
    threads, group = (chunks * _GROUP, rows.count, 1), (_GROUP, 1, 1)
    return [
        KernelLaunch(rows.kernel(kernels, "softmax_partial"), first, threads, group),
        KernelLaunch(
            rows.kernel(kernels, f"{rows.operator}_finalize"), {**first, "output": rows.output}, threads, group
        ),
    ]


def _of_any_layout(kernels: ReleaseKernels, rows: _Rows) -> KernelLaunch:
    """Threadgroups of columns; the threads of a column share its elements."""
    width = min(32, 1 << (rows.inner - 1).bit_length())
    height = min(MAX_THREADS_OF_GROUP // width, 1 << (rows.length - 1).bit_length())
    arguments = {"input": rows.given, "output": rows.output, "params": rows.params()}
    threads = (-(-rows.inner // width) * width, rows.count // rows.inner * height, 1)
    return KernelLaunch(rows.kernel(kernels, rows.operator), arguments, threads, (width, height, 1))


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("_softmax", "_softmax.out"), _of("softmax")),
    **dict.fromkeys(("_log_softmax", "_log_softmax.out"), _of("log_softmax")),
}
