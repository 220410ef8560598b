"""`nonzero` and `nonzero_static`: counts in blocks, sums over blocks, and coordinates from both.

Source: `nonzero_impl_mps` of aten/src/ATen/native/mps/operations/Indexing.mm (main, spring 2026), as in 2.13.0. 2.15.0
has no prefix sum for every element, and counts in 64 bits; how it binds was inferred from the names of the kernels'
arguments and verified against the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .copies import copied
from .fills import filled
from .metal_types import metal_name
from .operands import at_least_one

_LANES = 32


def coordinates(kernels: ReleaseKernels, source: Tensor, output: Tensor, most: int) -> list[Step]:
    """The steps that write the coordinates of the first `most` nonzero elements into a contiguous tensor."""
    source = source.contiguous()
    prefixed = f"count_nonzero_prefix_sum_{metal_name(source.dtype)}"
    if prefixed in kernels:
        return _with_prefix(kernels, prefixed, source, output, most)
    return _with_blocks(kernels, f"{prefixed}_uint", source, output, most)


def _with_prefix(kernels: ReleaseKernels, count: str, source: Tensor, output: Tensor, most: int) -> list[Step]:
    """The kernels of 2.13.0, with a prefix sum for every element."""
    numel = source.numel()
    blocks = -(-numel // MAX_THREADS_OF_GROUP)
    prefix, sums, offsets, total = (_temporary(n, torch.int32) for n in (numel, blocks, blocks, 1))
    scatter = required(kernels, f"scatter_nonzero_indices_{metal_name(source.dtype)}")
    return [
        KernelLaunch(count, {"input": source, "prefix": prefix, "block_sums": sums}, *in_line(numel)),
        _block_offsets(required(kernels, "prefix_sum_blocks"), sums, offsets, total, blocks),
        KernelLaunch(
            scatter,
            {
                "input": source,
                "prefix": prefix,
                "output": output,
                "ndim": source.dim(),
                "sizes": at_least_one(source.shape),
                "block_offsets": offsets,
                "max_entries": most,
            },
            *in_line(numel),
        ),
    ]


def _with_blocks(kernels: ReleaseKernels, count: str, source: Tensor, output: Tensor, most: int) -> list[Step]:
    """The kernels of 2.15.0, with prefix sums for blocks only."""
    numel = source.numel()
    blocks = -(-numel // MAX_THREADS_OF_GROUP)
    sums, offsets, total = _temporary(blocks, torch.int32), _temporary(blocks), _temporary(1)
    scatter = required(kernels, f"scatter_nonzero_indices_{metal_name(source.dtype)}_uint")
    first = {"flat_base": 0, "block_base": 0}
    return [
        KernelLaunch(required(kernels, count), {"input": source, "block_sums": sums, **first}, *in_line(numel)),
        _block_offsets(required(kernels, "prefix_sum_blocks_uint"), sums, offsets, total, blocks),
        KernelLaunch(
            scatter,
            {
                "input": source,
                "output": output,
                "ndim": source.dim(),
                "sizes": at_least_one(source.shape),
                "block_offsets": offsets,
                "max_entries": most,
                **first,
            },
            *in_line(numel),
        ),
    ]


def _block_offsets(kernel: str, sums: Tensor, offsets: Tensor, total: Tensor, blocks: int) -> KernelLaunch:
    width = min(MAX_THREADS_OF_GROUP, -(-blocks // _LANES) * _LANES)
    arguments = {"block_sums": sums, "block_offsets": offsets, "total_nonzero": total, "num_blocks": blocks}
    return KernelLaunch(kernel, arguments, (width, 1, 1), (width, 1, 1))


def _temporary(length: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.empty(length, dtype=dtype, device="cpu")


def _into(kernels: ReleaseKernels, source: Tensor, result: Tensor, most: int) -> list[Step]:
    """Coordinates into a result that need not be contiguous."""
    if result.is_contiguous():
        return coordinates(kernels, source, result, most)
    dense = torch.empty(result.shape, dtype=result.dtype, device="cpu")
    return [*coordinates(kernels, source, dense, most), copied(kernels, result, dense)]


def _check_subnormals(source: Tensor) -> None:
    """Decline subnormal numbers: the kernels take them for zero, and the host sizes the result by their count."""
    if source.dtype not in (torch.float32, torch.complex64):
        return
    magnitudes = (torch.view_as_real(source) if source.is_complex() else source).abs()
    if bool(((magnitudes > 0) & (magnitudes < torch.finfo(torch.float32).tiny)).any()):
        raise Declined("subnormal numbers, which the kernels take for zero")


def _nonzero(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    _check_subnormals(call["self"])
    return _into(kernels, call["self"], call.result, call.result.size(0))


def _nonzero_static(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    steps = [filled(kernels, call.result, call["fill_value"])]
    if call["self"].numel() == 0:
        return steps
    _check_subnormals(call["self"])
    return steps + _into(kernels, call["self"], call.result, call["size"])


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("nonzero", "nonzero.out"), _nonzero),
    **dict.fromkeys(("nonzero_static", "nonzero_static.out"), _nonzero_static),
}
