"""Long scans: kernels that split a scan into blocks, or that pass the sum of each tile on to the next while they run.

Source: aten/src/ATen/native/mps/operations/ScanKernel.mm (mid 2026). Floats use the kernels that pass sums on (the host
does so from the M3 and macOS 15 on), unless deterministic algorithms are enabled; integers are split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..plan import MAX_THREADS_OF_GROUP, BlitFill, KernelLaunch, ReleaseKernels, Step, required
from .metal_types import metal_name

Size = tuple[int, int, int]

_SPLIT_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
_NARROW_FLOATS = (torch.float16, torch.bfloat16)
_SIMD_GROUP = 32
_TILE_OF_TINY_SCANS = 2048
_DECOUPLED_GROUP, _DECOUPLED_READS = 256, 16
_BLOCK_GROUP = 256
_VEC_GROUP = 64
_ROWS_OF_TILE = 32


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of `value` along a dimension into `output`."""

    operator: str
    value: Tensor
    output: Tensor
    dimension: int

    @property
    def length(self) -> int:
        """The number of elements of one scan."""
        return self.value.size(self.dimension)

    @property
    def count(self) -> int:
        """The number of scans."""
        return self.value.numel() // self.length

    @property
    def is_innermost(self) -> bool:
        """Whether it goes along the last dimension."""
        return self.dimension == self.value.dim() - 1

    @property
    def inner(self) -> int:
        """The distance between neighbouring elements of a scan, in a dense tensor."""
        return math.prod(self.value.shape[self.dimension + 1 :])

    @property
    def may_be_split(self) -> bool:
        """Whether there are kernels for long scans of it."""
        return self.operator in ("cumsum", "cumprod") and self.value.dtype in _SPLIT_DTYPES

    @property
    def accumulated(self) -> torch.dtype:
        """The dtype in which it accumulates."""
        return torch.float32 if self.output.dtype in _NARROW_FLOATS else self.output.dtype

    @property
    def reads(self) -> int:
        """Elements that a thread reads at a time."""
        return 4 if self.accumulated.itemsize <= 4 else 2

    @property
    def type_names(self) -> str:
        """The dtypes in the names of its kernels: one, or two if the result's dtype differs."""
        given, result = metal_name(self.value.dtype), metal_name(self.output.dtype)
        return given if given == result else f"{given}_{result}"

    @property
    def is_transposed(self) -> bool:
        """Whether it has many columns and goes along the last dimension, which is the outermost in memory."""
        if not self.may_be_split or self.value.dim() < 2 or not self.is_innermost or self.value.is_contiguous():
            return False
        if not self.output.is_contiguous() or self.count < 256:
            return False
        return self.value.movedim(-1, 0).is_contiguous()


def grid_of_scan(value: Tensor, dimension: int, length: int, reads: int) -> tuple[Size, Size]:
    """Group and grid of one threadgroup for each scan along the last dimension."""
    per_simd_group = reads * _SIMD_GROUP
    group = MAX_THREADS_OF_GROUP
    if length <= reads * 1024:
        group = -(-length // per_simd_group) * _SIMD_GROUP
    elif length <= reads * 2048:
        group = -(-(length // 2) // per_simd_group) * _SIMD_GROUP
    group = min(group, MAX_THREADS_OF_GROUP)
    return (group, 1, 1), (group, math.prod(value.shape[:dimension]), 1)


def outer_group(columns: int, reads: int) -> int:
    """Threads for a tile of `columns` columns: a SIMD group for each of its reads."""
    return columns // reads * _SIMD_GROUP


def outer_grid(value: Tensor, dimension: int, blocks: int, reads: int) -> tuple[Size, Size]:
    """Group and grid of one threadgroup for each 32 columns of scans along an outer dimension."""
    group = outer_group(32, reads)
    return (group, 1, 1), (group, math.prod(value.shape[:dimension]) * blocks, 1)


def steps_of_long_scan(kernels: ReleaseKernels, scan: Scan) -> list[Step] | None:
    """The steps of a scan of a dense tensor with a special kernel for its sizes; None for all others."""
    if not scan.may_be_split:
        return None
    if scan.is_innermost and scan.length <= 32 and scan.count >= 4096:
        return [_tiny(kernels, scan)]
    is_decoupled = scan.value.is_floating_point() and not torch.are_deterministic_algorithms_enabled()
    if scan.inner == 1:
        if scan.length < 65536 or scan.count > 1024:
            return None
        return _decoupled_scan(kernels, scan) if is_decoupled else _in_blocks(kernels, scan)
    outer = scan.count // scan.inner
    if scan.length < 1024 or outer * -(-scan.inner // 32) > 64:
        return None
    if is_decoupled and scan.inner in (2, 4, 8, 16):
        return _decoupled_column_scan(kernels, scan, outer)
    few_columns = range(2, 9) if scan.value.is_floating_point() else (2, 3, 4, 8)
    if scan.inner in few_columns:
        return _few_columns_in_blocks(kernels, scan, outer)
    return _columns_in_blocks(kernels, scan, outer)


def _tiny(kernels: ReleaseKernels, scan: Scan) -> Step:
    rows = _TILE_OF_TINY_SCANS // scan.length
    arguments: dict[str, object] = {"in": scan.value, "out": scan.output, "axis_size": scan.length}
    arguments |= {"n_scans": scan.count, "rows_per_tg": rows}
    name = required(kernels, f"{scan.operator}_tiny_innermost_{scan.type_names}")
    return KernelLaunch(name, arguments, (256 * -(-scan.count // rows), 1, 1), (256, 1, 1))


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _words(count: int) -> Tensor:
    return torch.empty(count, dtype=torch.int32, device="cpu")


def _decoupled_scan(kernels: ReleaseKernels, scan: Scan) -> list[Step]:
    tiles = -(-scan.length // (_DECOUPLED_GROUP * _DECOUPLED_READS))
    counter, aggregates, inclusive = _words(1), _words(scan.count * tiles), _words(scan.count * tiles)
    arguments: dict[str, object] = {"in": scan.value, "out": scan.output, "tile_counter": counter}
    arguments |= {"aggregates": aggregates, "inclusive": inclusive, "axis_size": scan.length, "num_tiles": tiles}
    name = required(kernels, f"{scan.operator}_contig_decoupled_{scan.type_names}")
    threads = (_DECOUPLED_GROUP * scan.count * tiles, 1, 1)
    launch = KernelLaunch(name, arguments, threads, (_DECOUPLED_GROUP, 1, 1))
    return [BlitFill(counter), BlitFill(aggregates, 0xFF), BlitFill(inclusive, 0xFF), launch]


def _decoupled_column_scan(kernels: ReleaseKernels, scan: Scan, outer: int) -> list[Step]:
    columns = scan.inner
    group = 768 if columns <= 2 else 512
    reads = 8 if columns <= 2 else 4 if columns <= 8 else 2
    tiles = -(-scan.length // (group * reads))
    counter, status = _words(1), _words(outer * tiles)
    arguments: dict[str, object] = {"in": scan.value, "out": scan.output, "tile_counter": counter, "status": status}
    arguments |= {"aggregates": _words(outer * tiles * columns), "inclusive": _words(outer * tiles * columns)}
    arguments |= {"axis_size": scan.length, "num_tiles": tiles}
    name = required(kernels, f"{scan.operator}_strided_decoupled_{columns}_{reads}_{scan.type_names}")
    launch = KernelLaunch(name, arguments, (group * outer * tiles, 1, 1), (group, 1, 1))
    return [BlitFill(counter), BlitFill(status), launch]


def _in_blocks(kernels: ReleaseKernels, scan: Scan) -> list[Step]:
    most = max(1, scan.length // (_BLOCK_GROUP * scan.reads))
    blocks = min(max(math.isqrt(scan.length) // 4, 2), most, 4096)
    size = -(-scan.length // blocks)
    blocks = -(-scan.length // size)
    sums = torch.empty((scan.count, blocks), dtype=scan.accumulated, device="cpu")
    numbers: dict[str, object] = {"axis_size": scan.length, "block_size": size, "num_blocks": blocks}
    threads = (_BLOCK_GROUP * blocks, scan.count, 1)
    return _reduced_and_carried(kernels, scan, "block", "", sums, numbers, threads, _BLOCK_GROUP)


def _few_columns_in_blocks(kernels: ReleaseKernels, scan: Scan, outer: int) -> list[Step]:
    tile = _VEC_GROUP * scan.reads
    blocks = max(min(max(-(-512 // outer), 2), max(1, scan.length // tile)), 1)
    size = _round_up(_round_up(scan.length, blocks) // blocks, tile)
    blocks = -(-scan.length // size)
    sums = torch.empty(outer * blocks * scan.inner, dtype=scan.accumulated, device="cpu")
    numbers: dict[str, object] = {"axis_size": scan.length, "block_size": size, "num_blocks": blocks}
    numbers["n_orows"] = outer
    threads = (_VEC_GROUP, outer * blocks, 1)
    return _reduced_and_carried(kernels, scan, "vec_block", f"_{scan.inner}", sums, numbers, threads, _VEC_GROUP)


def _columns_in_blocks(kernels: ReleaseKernels, scan: Scan, outer: int) -> list[Step]:
    widths = (8, 12, 16, 24, 32) if scan.value.is_floating_point() else (8, 16, 32)
    width = next((w for w in widths if scan.inner <= w), 32)
    column_blocks = -(-scan.inner // width)
    blocks = min(max(-(-4096 // (outer * column_blocks)), 2), max(1, scan.length // 512))
    size = _round_up(_round_up(scan.length, blocks) // blocks, _ROWS_OF_TILE)
    blocks = -(-scan.length // size)
    sums = torch.empty((scan.count, blocks), dtype=scan.accumulated, device="cpu")
    numbers: dict[str, object] = {"axis_size": scan.length, "stride": scan.inner, "stride_blocks": column_blocks}
    numbers |= {"block_size": size, "num_blocks": blocks, "n_orows": outer}
    group = outer_group(width, scan.reads)
    threads = (group, outer * column_blocks * blocks, 1)
    reduce, carry = _reduced_and_carried(kernels, scan, "strided_block", f"_{width}", sums, numbers, threads, group)
    name = required(kernels, f"{scan.operator}_scan_block_sums_{metal_name(scan.output.dtype)}")
    arguments: dict[str, object] = {"block_sums": sums, "num_blocks": blocks}
    return [reduce, KernelLaunch(name, arguments, (256, scan.count, 1), (256, 1, 1)), carry]


def _reduced_and_carried(
    kernels: ReleaseKernels,
    scan: Scan,
    kind: str,
    width: str,
    sums: Tensor,
    numbers: dict[str, object],
    threads: Size,
    group: int,
) -> list[Step]:
    """First the sums of all blocks, then the scan of each block, which starts with the sum of the earlier blocks."""
    names = [f"{scan.operator}_{kind}_{step}{width}_{scan.type_names}" for step in ("reduce", "carry")]
    reduce = {"in": scan.value, "block_sums": sums, **numbers}
    carry = {**reduce, "out": scan.output}
    return [
        KernelLaunch(required(kernels, names[0]), reduce, threads, (group, 1, 1)),
        KernelLaunch(required(kernels, names[1]), carry, threads, (group, 1, 1)),
    ]
