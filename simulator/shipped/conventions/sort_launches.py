"""The launches that sort the rows of a matrix: in one threadgroup, by merging blocks, or digit by digit.

Source: aten/src/ATen/native/mps/operations/Sort.mm (mid 2026).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..plan import KernelLaunch, ReleaseKernels, Step, required
from .metal_types import metal_name

_PER_THREAD = 4
_LONGEST_WITH_SHORT_INDICES = 65536
_ROWS_THAT_FILL_THE_GPU = 256


@dataclass(frozen=True, slots=True)
class Sorting:
    """The order, and the part of the sorted row to write: `count` elements from `offset` on; a count of 0 means all."""

    descending: bool
    stable: bool
    offset: int = 0
    count: int = 0

    @property
    def window(self) -> dict[str, object]:
        """The argument of the kernels that write a window."""
        return {"sel": [self.offset, self.count]} if self.count else {}

    @property
    def suffix(self) -> str:
        """The suffix of the names of the kernels that write a window."""
        return "_topk" if self.count else ""


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix of any strides whose rows are sorted, and the dense results to write, if any."""

    given: Tensor
    values: Tensor | None = None
    indices: Tensor | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.given.size(0)

    @property
    def length(self) -> int:
        """The number of elements of a row."""
        return self.given.size(1)

    @property
    def element_size(self) -> int:
        """Bytes of an element."""
        return self.given.element_size()

    @property
    def writes_results(self) -> bool:
        """Whether the last kernel writes results, with 64-bit indices."""
        return self.indices is not None

    @property
    def has_short_indices(self) -> bool:
        """Whether indices are passed between the kernels in 16 bits."""
        return self.writes_results and self.length <= _LONGEST_WITH_SHORT_INDICES

    def grid(self, blocks: int, group: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Grid and group of `blocks` threadgroups a row."""
        return (blocks * group, self.count, 1), (group, 1, 1)


Sorted = tuple[list[Step], Tensor, Tensor]
"""Steps, and where they leave values and indices that are not results."""


def sorted_rows(kernels: ReleaseKernels, sorting: Sorting, rows: Rows) -> Sorted:
    """The steps that sort rows.

    Raises:
        Declined: the release has no kernel for it.
    """
    group = _group(rows)
    if _uses_radix_sort(rows, group * _PER_THREAD):
        return _radix_sort(kernels, sorting, rows)
    if rows.length <= group * _PER_THREAD and rows.writes_results:
        return [_in_one_group(kernels, sorting, rows, group)], rows.given, rows.given
    return _merged(kernels, sorting, rows, group)


def _group(rows: Rows) -> int:
    """The threads of a group; each sorts four elements. One or two long rows get more blocks than necessary."""
    threads = -(-rows.length // _PER_THREAD)
    if rows.count <= 2 and rows.length > 2048:
        blocks = max(1, 4 // rows.count)
        threads = min(threads, max(2048, -(-rows.length // blocks)) // _PER_THREAD)
    group = min(max(1 << (threads - 1).bit_length(), 32), 1024)
    if rows.element_size > 4:
        group = min(group, 512 if rows.count <= _ROWS_THAT_FILL_THE_GPU else 256)
    return group


def _rounds(blocks: int) -> int:
    """The number of rounds in which pairs of blocks are merged."""
    return (blocks - 1).bit_length()


def _uses_radix_sort(rows: Rows, block: int) -> bool:
    if rows.element_size > 4:
        return False
    if rows.given.is_floating_point() and rows.element_size == 2 and rows.length >= 2048:
        return True
    if rows.count >= _ROWS_THAT_FILL_THE_GPU:
        return False
    passes = 2 if rows.element_size <= 2 else 4
    return passes * 3 <= 2 * (1 + _rounds(-(-rows.length // block))) + 2


def _in_one_group(kernels: ReleaseKernels, sorting: Sorting, rows: Rows, group: int) -> KernelLaunch:
    stable = "_stable" if sorting.stable and not sorting.count else ""
    name = f"sort_block{sorting.suffix}_{metal_name(rows.given.dtype)}_tptg{group}{stable}"
    arguments: dict[str, object] = {"inp": rows.given, "out_vals": rows.values, "out_idx": rows.indices}
    arguments |= {"size": rows.length, "strides": _strides(rows.given), "desc": sorting.descending}
    return KernelLaunch(required(kernels, name), arguments | sorting.window, *rows.grid(1, group))


def _strides(given: Tensor) -> list[int]:
    """The strides from element to element of a row, and from row to row."""
    return [given.stride(1), given.stride(0)]


def _merged(kernels: ReleaseKernels, sorting: Sorting, rows: Rows, group: int) -> Sorted:
    """Sort each block, then merge blocks in pairs; floats are merged as integer keys with the same order.

    The last merge writes the results, if any.
    """
    blocks = -(-rows.length // (group * _PER_THREAD))
    keyed = rows.given.dtype == torch.float32 and blocks > 1 and rows.writes_results
    type_name = metal_name(rows.given.dtype)
    key_name = "uint" if keyed else type_name
    short = "_u16" if rows.has_short_indices else ""
    key_dtype = torch.int32 if keyed else rows.given.dtype
    index_dtype = torch.int16 if rows.has_short_indices else torch.int32
    keys = [torch.empty((rows.count, rows.length), dtype=key_dtype, device="cpu") for _ in range(2)]
    places = [torch.empty((rows.count, rows.length), dtype=index_dtype, device="cpu") for _ in range(2)]
    kind = f"fkey_{type_name}" if keyed else type_name
    stable = "_stable" if sorting.stable and not keyed else ""
    arguments: dict[str, object] = {"inp": rows.given, "dv": keys[0], "di": places[0], "size": rows.length}
    arguments |= {"strides": _strides(rows.given), "desc": sorting.descending}
    name = required(kernels, f"mb_sort_block_{kind}_tptg{group}{short}{stable}")
    steps: list[Step] = [KernelLaunch(name, arguments, *rows.grid(blocks, group))]
    for round_ in range(_rounds(blocks)):
        last = rows.writes_results and round_ == _rounds(blocks) - 1
        source, target = round_ % 2, 1 - round_ % 2
        name = f"mb_merge_final{sorting.suffix}_{kind}" if last else f"mb_merge_{key_name}"
        merging: dict[str, object] = {"vi": keys[source], "ii": places[source]}
        merging |= {"vo": rows.values, "io": rows.indices} if last else {"vo": keys[target], "io": places[target]}
        merging |= {"dims": [rows.length, 2 << round_, blocks], **(sorting.window if last else {})}
        merging["desc"] = sorting.descending and (last or not keyed)
        name = required(kernels, f"{name}_tptg{group}{short}")
        steps.append(KernelLaunch(name, merging, *rows.grid(blocks, group)))
    final_buffer = _rounds(blocks) % 2
    return steps, keys[final_buffer], places[final_buffer]


def _radix_sort(kernels: ReleaseKernels, sorting: Sorting, rows: Rows) -> Sorted:
    """Radix sort. For each digit: count its occurrences in each block, sum the counts, and move the elements."""
    bits = 4 if rows.element_size == 1 else 8
    passes = 8 * rows.element_size // bits
    small = rows.element_size == 2 and rows.count >= 32
    group = 1024 if rows.element_size == 2 and not small else 512
    blocks = -(-rows.length // (group * (8 if rows.element_size == 1 else 4)))
    entries = blocks << bits
    type_name = f"{metal_name(rows.given.dtype)}_{bits}bit"
    small_name = f"{type_name}{'_tptg512' if small else ''}"
    short = "_u16" if rows.has_short_indices else ""
    counts_and_sums = blocks <= 4 and not small
    sums_itself = not counts_and_sums and blocks <= 4 and blocks * blocks * rows.count <= 128
    fused = "fused_" if sums_itself else ""
    shape = (rows.count, rows.length)
    index_dtype = torch.int16 if rows.has_short_indices else torch.int32
    keys = [torch.empty(shape, dtype=rows.given.dtype, device="cpu") for _ in range(2)]
    places = [torch.empty(shape, dtype=index_dtype, device="cpu") for _ in range(2)]
    histograms = torch.empty((rows.count, entries), dtype=torch.int32, device="cpu")
    source = rows.given.contiguous()
    steps: list[Step] = []
    for digit in range(passes):
        last = rows.writes_results and digit == passes - 1
        ping = digit % 2
        dims = [rows.length, blocks, digit * bits]
        read = source if digit == 0 else keys[ping]
        counting: dict[str, object] = {"input": read, "histograms": histograms, "dims": dims}
        counting["desc"] = sorting.descending
        if counts_and_sums:
            name = required(kernels, f"radix_count_scan_{type_name}_mb4")
            steps.append(KernelLaunch(name, counting, *rows.grid(1, group)))
        else:
            name = required(kernels, f"radix_count_{small_name}")
            steps.append(KernelLaunch(name, counting, *rows.grid(blocks, group)))
        if not counts_and_sums and not sums_itself:
            summing: dict[str, object] = {"histograms": histograms, "n_entries": entries}
            steps.append(KernelLaunch(required(kernels, "radix_scan"), summing, *rows.grid(1, 1024)))
        moving: dict[str, object] = {"keys_in": read, "vals_in": places[ping]}
        moving["keys_out"], moving["vals_out"] = (
            (rows.values, rows.indices) if last else (keys[1 - ping], places[1 - ping])
        )
        moving |= {"offsets": histograms, "dims": dims, "flags": [sorting.descending, digit == 0]}
        kind = f"{fused}final{sorting.suffix}_" if last else fused
        name = required(kernels, f"radix_scatter_{kind}{small_name}{short}")
        steps.append(KernelLaunch(name, moving | (sorting.window if last else {}), *rows.grid(blocks, group)))
    return steps, keys[passes % 2], places[passes % 2]
