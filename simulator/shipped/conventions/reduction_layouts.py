"""A reduction seen as [outer, dim, inner] with `dim` reduced: its kernel in 2.15.0, and the number of segments.

The thresholds are those of `select_reduction_plan` in aten/src/ATen/native/mps/operations/ReduceOps.mm and of
ReduceOps.h beside its kernels (late 2026).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

INNERMOST = "_innermost"
INNERMOST_CHUNK = "_innermost_chunk"
OUTER = "_outer"
OUTER_SMALL_DIM = "_outer_small_dim"
NARROW = "_narrow"

_SIMD_GROUP = 32
_INNER_GROUP = 256
_OUTER_GROUP = 32
_NARROW_GROUP = 256

_CHUNK_LONGEST_ROW = 256
_CHUNK_ELEMENTS_PER_LANE = 16
_CHUNK_FEWEST_ELEMENTS = 65536
_SPLIT_SHORTEST_ROW = 2048
_SPLIT_SHORTEST_SEGMENT = 64
_SPLIT_MOST_SEGMENTS = 2048
_SPLIT_PARTIALS = 8192
_SPLIT_FEWEST_GROUPS = 64
_OUTER_LONGEST_SMALL_DIM = 256
_NARROW_SHORTEST_DIM = 128
_NARROW_ELEMENTS_PER_GROUP = 8192
_OUTER_SPLIT_SHORTEST_DIM = 4096
_OUTER_SPLIT_FEWEST_GROUPS = 32
_OUTER_SPLIT_SHORTEST_SEGMENT = 512
_OUTER_SPLIT_MOST_GROUPS = 2048
_OUTER_SPLIT_STRIDED_GROUPS = 256
_ARG_SPLIT_FEWEST_GROUPS = 512
_ARG_SPLIT_SHORTEST_SEGMENT = 512
_ARG_SPLIT_PARTIALS = 16384

Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Sizes, and the strides in elements of `dim`, `inner` and `outer`."""

    outer: int
    dim: int
    inner: int
    strides: Size
    is_contiguous: bool

    @classmethod
    def dense(cls, outer: int, dim: int, inner: int) -> RowLayout:
        """The layout of a dense tensor."""
        return cls(outer, dim, inner, (inner, 1, dim * inner), True)


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """The kernel, its layout, and the number of segments of `dim`; `lanes` of a SIMD group share a row."""

    kernel: str
    layout: RowLayout
    segments: int = 1
    lanes: int = _SIMD_GROUP

    @property
    def sizes(self) -> list[int]:
        """The kernel's argument `sizes`."""
        if self.kernel == INNERMOST:
            return [self.layout.outer, self.layout.dim]
        if self.kernel == INNERMOST_CHUNK:
            return [self.layout.outer, self.layout.dim, self.lanes, self.segments]
        return [self.layout.dim, self.layout.inner, self.segments, 0]

    @property
    def sizes_of_2_14(self) -> list[int]:
        """The argument `sizes` of the kernels of 2.14, which has the segments in a different position."""
        if self.kernel in (INNERMOST, INNERMOST_CHUNK):
            return self.sizes
        return [self.layout.dim, self.layout.inner, 1, self.segments]

    @property
    def strides(self) -> list[int] | None:
        """The kernel's argument `strides`; None for kernels for dense tensors, which have no such argument."""
        return [*self.layout.strides, 0] if self.kernel in (OUTER, OUTER_SMALL_DIM) else None

    @property
    def threads(self) -> Size:
        """The grid."""
        if self.kernel in (INNERMOST, INNERMOST_CHUNK):
            rows = -(-self.layout.outer * self.segments // (_SIMD_GROUP // self.lanes))
            return (-(-rows // (_INNER_GROUP // _SIMD_GROUP)) * _INNER_GROUP, 1, 1)
        width, height, _ = self.group
        across = 1 if self.kernel == NARROW else -(-self.layout.inner // _OUTER_GROUP)
        return (across * width, self.segments * height, self.layout.outer)

    @property
    def group(self) -> Size:
        """The threadgroup."""
        if self.kernel in (INNERMOST, INNERMOST_CHUNK):
            return (_INNER_GROUP, 1, 1)
        if self.kernel == NARROW:
            return (_NARROW_GROUP // self.layout.inner * self.layout.inner, 1, 1)
        return (_OUTER_GROUP, 1 if self.kernel == OUTER_SMALL_DIM else _OUTER_GROUP, 1)

    @property
    def second_pass(self) -> LayoutPlan:
        """The launch that reduces the segments' partial results."""
        kernel = INNERMOST if self.kernel == INNERMOST_CHUNK else self.kernel
        return LayoutPlan(kernel, RowLayout.dense(self.layout.outer, self.segments, self.layout.inner))


def layout_plan(value: Tensor, output: Tensor, is_arg: bool = False) -> LayoutPlan | None:
    """The plan for a reduction along dimensions to several elements; None for the kernel for any layout."""
    if not output.is_contiguous():
        return None
    reduced = [d for d in range(value.dim()) if value.size(d) != output.size(d)]
    if len(reduced) == 1 and reduced[0] < value.dim() - 1:
        layout = _row_layout(value, reduced[0])
        return _outer(layout, is_arg, value.numel()) if layout else None
    if not value.is_contiguous():
        return None
    if len(reduced) <= 1:
        size = value.numel() // output.numel()
        return _inner(RowLayout.dense(output.numel(), size, 1), is_arg, value.numel())
    first, last = reduced[0], reduced[-1]
    if len(reduced) != last - first + 1:
        return None
    return layout_plan(value.flatten(first, last), output.flatten(first, last), is_arg)


def _row_layout(value: Tensor, reduced: int) -> RowLayout | None:
    """The layout around a reduced dimension; None unless the dimensions on either side join to one."""
    before = _joined([(value.size(d), value.stride(d)) for d in range(reduced)])
    after = _joined([(value.size(d), value.stride(d)) for d in range(reduced + 1, value.dim())])
    if len(before) > 1 or len(after) > 1:
        return None
    outer, outer_stride = before[0] if before else (1, 0)
    inner, inner_stride = after[0] if after else (1, 0)
    strides = (value.stride(reduced), inner_stride, outer_stride)
    return RowLayout(outer, value.size(reduced), inner, strides, value.is_contiguous())


def _joined(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sizes and strides without dimensions of size 1; neighbours are joined if one continues the other in memory."""
    joined: list[tuple[int, int]] = []
    for size, stride in dimensions:
        if size == 1:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return joined


def _outer(layout: RowLayout, is_arg: bool, elements: int) -> LayoutPlan:
    groups = layout.outer * -(-layout.inner // _OUTER_GROUP)
    few_groups = groups < _OUTER_SPLIT_FEWEST_GROUPS
    split = layout.outer == 1 and layout.dim >= _OUTER_SPLIT_SHORTEST_DIM and few_groups
    small = not is_arg and layout.dim <= _OUTER_LONGEST_SMALL_DIM and groups >= _SPLIT_FEWEST_GROUPS
    is_small_anyway = small and layout.dim < _NARROW_SHORTEST_DIM
    narrow = split if is_arg else elements >= _CHUNK_FEWEST_ELEMENTS and not is_small_anyway
    if layout.is_contiguous and layout.inner < _OUTER_GROUP and narrow:
        asked = layout.dim * layout.inner // _NARROW_ELEMENTS_PER_GROUP
        segments = 1 if layout.outer > 1 else _between(asked, 2 if is_arg else 1, _SPLIT_MOST_SEGMENTS)
        return LayoutPlan(NARROW, layout, segments)
    if small:
        return LayoutPlan(OUTER_SMALL_DIM, layout)
    if not split:
        return LayoutPlan(OUTER, layout)
    if layout.is_contiguous and not is_arg:
        most = max(2, _OUTER_SPLIT_MOST_GROUPS // groups)
        return LayoutPlan(OUTER, layout, min(layout.dim // _OUTER_SPLIT_SHORTEST_SEGMENT, most))
    asked = _OUTER_SPLIT_STRIDED_GROUPS // groups
    return LayoutPlan(OUTER, layout, _between(asked, 2, min(layout.dim, _SPLIT_MOST_SEGMENTS)))


def _inner(layout: RowLayout, is_arg: bool, elements: int) -> LayoutPlan:
    rows, length = layout.outer, layout.dim
    if not is_arg and length <= _CHUNK_LONGEST_ROW and elements >= _CHUNK_FEWEST_ELEMENTS:
        lanes = min(_SIMD_GROUP, _power_of_two(-(-length // _CHUNK_ELEMENTS_PER_LANE)))
        return LayoutPlan(INNERMOST_CHUNK, layout, lanes=lanes)
    groups = -(-rows // (_INNER_GROUP // _SIMD_GROUP))
    few = _ARG_SPLIT_FEWEST_GROUPS if is_arg else _SPLIT_FEWEST_GROUPS
    if groups >= few or length < _SPLIT_SHORTEST_ROW:
        return LayoutPlan(INNERMOST, layout)
    if is_arg:
        most = max(length // _ARG_SPLIT_SHORTEST_SEGMENT, 2)
        asked = _between(_ARG_SPLIT_PARTIALS // rows, 2, most)
    else:
        most = max(min(_SPLIT_MOST_SEGMENTS, -(-length // _SPLIT_SHORTEST_SEGMENT)), 2)
        asked = _between(-(-_SPLIT_PARTIALS // rows), 2, most)
    segments = -(-length // -(-length // asked))
    return LayoutPlan(INNERMOST if is_arg else INNERMOST_CHUNK, layout, segments)


def _between(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))


def _power_of_two(number: int) -> int:
    """The least power of two that is not less than `number`."""
    return 1 << (number - 1).bit_length()
