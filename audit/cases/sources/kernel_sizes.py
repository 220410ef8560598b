"""Calls of the sizes and modes at which the host chooses another Metal kernel.

Samples are small: they never reach the kernels for rows of more than a threadgroup's threads, for few long rows, for
attention heads of 64 and more, or for modes that a sampler leaves out. Each row of `SHAPED` names what selects the
kernel: the rows of a sort, the reduced dimension of a reduction, the head size and keys of attention. `RARE` adds
inputs that choose no other kernel, and are left out as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case, CaseSource, QuickShare
from ...model.group import GroupKey
from ...model.selection import DTYPES, Samples
from ..calls.invocation import SchemaCall
from .case_tensors import map_tensors
from .rare_inputs import RARE
from .value_classes import at
from .written_calls import ARITHMETIC, FLOATS, REAL, Shape, WrittenCalls, case_of, values

# Rows and their length: one threadgroup of 32 to 1,024 threads with four elements each, blocks that are merged, digits
# in a few rows and in many, and more elements than 16-bit indices count.
FITTING = ((4, 100), (4, 200), (4, 400), (4, 900), (4, 1_800))
IN_BLOCKS = ((3, 3_500), (1, 3_500), (2, 3_500), (3, 5_000), (5, 3_600), (1, 9_000), (1, 18_000))
LONG_ROWS = ((32, 2_500), (32, 3_500), (32, 4_000), (1, 66_000), (1, 70_000), (1, 2_500), (1, 68_000))
SORTED = (*FITTING, *IN_BLOCKS, *LONG_ROWS)
# Along the first dimension blocks leave their results in memory that is moved afterwards.
SORTED_COLUMNS = (*FITTING, (3, 3_500), (32, 3_500), (1, 9_000))
# Shape and reduced dimension: short and long rows, few and many; a dimension before others of few and many elements.
REDUCED = (
    ((40, 300), 1),
    ((260, 256), 1),
    ((3, 5_000), 1),
    ((300, 40), 0),
    ((100, 2_100), 0),
    ((9_000, 8), 0),
    ((5_000, 40), 0),
)
WHOLLY_REDUCED = ((260, 256), (64, 512))
SCANNED = (((4_100, 20), 1), ((1, 70_000), 1), ((2, 1_500, 40), 1), ((3, 5_000), 1), ((70, 300), 0))
# Columns beside each other, in long scans: each number up to 8 has its kernel, then each width of a block.
SCANNED_COLUMNS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 30)
NORMALIZED = ((3, 5_000), (200, 1_500), (70, 64))
HEAD_SIZES, KEYS = (64, 96, 128, 256), (40, 1_100)
QUERIES = (2, 3, 4)
# From this number of elements on, a copy that converts handles several per thread.
COPIED = 131_072


def _sorts(dtype: torch.dtype) -> Iterator[Case]:
    for shape in SORTED:
        for stable in (False, True):
            title = f"{'stable, ' if stable else ''}{_text(shape)}"
            yield case_of(torch.sort, title, values(shape, dtype), dim=1, stable=stable, descending=stable)
    for rows, length in SORTED_COLUMNS:
        for stable in (False, True):
            title = f"{'stable, ' if stable else ''}{length:,} by {rows} over 0"
            yield case_of(torch.sort, title, values((length, rows), dtype), dim=0, stable=stable, descending=stable)


def _largest(dtype: torch.dtype) -> Iterator[Case]:
    for shape in SORTED:
        yield case_of(torch.topk, _text(shape), values(shape, dtype), 5, 1)


def _reductions(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    def given(shape: Shape) -> Tensor:
        return _near_one(call, values(shape, dtype))

    for shape, dim in REDUCED:
        yield case_of(call, f"{_text(shape)} over {dim}", given(shape), dim)
        whole = given((*shape[:-1], 2 * shape[-1]))
        yield case_of(call, f"{_text(shape)} stepped over {dim}", whole[..., ::2], dim)
    for shape in WHOLLY_REDUCED:
        whole = given((shape[0], 2 * shape[1]))
        yield case_of(call, f"{_text(shape)} stepped", whole[:, ::2])
        yield case_of(call, f"{_text(shape)} transposed", whole[:, : shape[1]].T)


def _near_one(call: Callable[..., Any], given: Tensor) -> Tensor:
    """For a product, values near one: a product of other values is soon 0 or infinite."""
    products = (torch.prod, torch.cumprod)
    return 1 + given / 4_096 if given.dtype.is_floating_point and call in products else given


def _scans(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for shape, dim in SCANNED:
        yield case_of(call, f"{_text(shape)} over {dim}", _near_one(call, values(shape, dtype)), dim)


def _sums(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    """Scans that have kernels for few columns, and for a transposed matrix."""
    yield from _scans(call, dtype)
    for columns in SCANNED_COLUMNS:
        yield case_of(call, f"{columns} columns", _near_one(call, values((1, 1_500, columns), dtype)), 1)
    yield case_of(call, "transposed", _near_one(call, values((40, 300), dtype).T), 1)


def _softmax(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for shape in NORMALIZED:
        yield case_of(call, _text(shape), values(shape, dtype), 1)
    yield case_of(call, "over the first dimension", values((300, 40), dtype), 0)


def _layer_norm(dtype: torch.dtype) -> Iterator[Case]:
    for shape in NORMALIZED:
        weight, bias = values(shape[1:], dtype), values(shape[1:], dtype)
        yield case_of(torch.nn.functional.layer_norm, _text(shape), values(shape, dtype), shape[1:], weight, bias)


def _group_norm(dtype: torch.dtype) -> Iterator[Case]:
    for shape in ((2, 6, 5), (2, 6, 40, 40)):
        for weighted, biased in ((True, True), (True, False), (False, True), (False, False)):
            weight, bias = (values((6,), dtype) if given else None for given in (weighted, biased))
            title = f"{_text(shape)}{', weight' * weighted}{', bias' * biased}"
            given = values(shape, dtype).requires_grad_()
            case = case_of(torch.nn.functional.group_norm, title, given, 3, weight, bias)
            case.differentiable = True
            yield case


def _attention(dtype: torch.dtype) -> Iterator[Case]:
    attention = torch.nn.functional.scaled_dot_product_attention
    for size in HEAD_SIZES:
        for keys in KEYS:
            heads = 2 if keys < 1_024 else 1
            for queries in QUERIES:
                query, key, value = (values((1, heads, rows, size), dtype) for rows in (queries, keys, keys))
                title = f"heads of {size}, {queries} queries, {keys:,} keys"
                mask = values((queries, keys), dtype)
                yield case_of(attention, f"{title}, mask of numbers", query, key, value, mask)
                if queries == QUERIES[0]:
                    yield case_of(attention, title, query, key, value)
                    yield case_of(attention, f"{title}, causal", query, key, value, is_causal=True)
                    flags = torch.rand(queries, keys) < 0.8
                    yield case_of(attention, f"{title}, mask of bool", query, key, value, flags)


def _copies(dtype: torch.dtype) -> Iterator[Case]:
    """Conjugate and negative views, copied into their own dtype and into another one: small, large and strided."""
    other = torch.float16 if dtype in (torch.float32, torch.bfloat16) else torch.float32
    for shape in (*((rows, 20) for rows in (3, 5, 7)), *((rows, COPIED // 2 + 3) for rows in (2, 3, 4))):
        for into in (dtype, other):
            for title, view in _views(shape, dtype).items():
                title = f"{title} {_text(shape)} into"
                yield case_of(_copied, f"{title} {into}", torch.zeros(shape, dtype=into), view)
                if shape[1] == 20:
                    yield case_of(_copied, f"{title} transposed {into}", torch.zeros(shape[::-1], dtype=into).T, view)
        if shape[1] > 20 and not dtype.is_complex:
            target, given = (make(shape[::-1], dtype=dtype).T for make in (torch.zeros, values))
            yield case_of(_copied, f"transposed {_text(shape)} into transposed", target, given)


def _views(shape: Shape, dtype: torch.dtype) -> dict[str, Tensor]:
    if not dtype.is_complex:
        return {"negative": torch._neg_view(values(shape, dtype))}
    given = torch.randn(shape, dtype=dtype)
    return {"conjugate": given.conj(), "negative": torch._neg_view(given), "both": torch._neg_view(given.conj())}


def _copied(target: Tensor, source: Tensor) -> Tensor:
    return target.copy_(source)


def _dropouts(dtype: torch.dtype) -> Iterator[Case]:
    for share in (0.2, 0.5, 0.7):
        args = torch.ones(4_000, dtype=dtype), share, True
        yield Case(torch.native_dropout, args, distribution=True, title=f"{share}")


def _repetitions(dtype: torch.dtype) -> Iterator[Case]:
    for count in (3, 40, 300):
        yield case_of(torch.repeat_interleave, f"{count}", torch.randint(0, 4, (count,), dtype=dtype))


def _triangles(dtype: torch.dtype) -> Iterator[Case]:
    for rows, columns, offset in ((5, 4, 0), (3, 7, 1), (9, 2, -1)):
        kwargs = {"offset": offset, "dtype": dtype}
        title = f"{rows} by {columns} from {offset}"
        yield Case(torch.tril_indices, (rows, columns), kwargs, default_device=True, title=title)


def _cholesky(dtype: torch.dtype) -> Iterator[Case]:
    """More than one block of 32 rows, so that later blocks are solved and updated."""
    for size in (40, 70, 100):
        for upper in (False, True):
            root = torch.randn(size, size, dtype=dtype)
            given = root @ root.mT / size + torch.eye(size)
            yield case_of(torch.linalg.cholesky, f"{size}{', upper' * upper}", given, upper=upper)


def _distances(dtype: torch.dtype) -> Iterator[Case]:
    """Gradients of few components and of many, for each kind of order."""
    for order in (1.0, 1.5, float("inf")):
        for columns in (5, 20, 40, 70, 80, 90):
            given = (torch.randn(rows, columns, dtype=dtype).requires_grad_() for rows in (4, 6))
            case = case_of(torch.cdist, f"order {order}, {columns} components", *given, p=order)
            case.differentiable = True
            yield case
    left, right = torch.randn(4, 5, dtype=dtype), torch.randn(6, 5, dtype=dtype)
    order, gradient = float("inf"), torch.full((4, 6), float("inf"), dtype=dtype)
    distances = torch.cdist(left, right, p=order)
    call = SchemaCall("aten::_cdist_backward")
    yield case_of(call, f"order {order}, infinite gradients", gradient, left, right, order, distances)


def _filled(dtype: torch.dtype) -> Iterator[Case]:
    """A few indices of many, in rows and in columns."""
    for size in (200, 300, 400):
        index = torch.tensor([3, size - 1])
        yield case_of(torch.index_fill, f"{size} rows", values((size, 3), dtype), 0, index, 1)
        yield case_of(_fill_columns, f"{size} columns", values((size, 3), dtype), index)


def _fill_columns(given: Tensor, index: Tensor) -> Tensor:
    return given.T.index_fill_(1, index, 1)


def _interpolations(dtype: torch.dtype) -> Iterator[Case]:
    """One weight for all elements."""
    for shape in ((7,), (3, 20), (2, 3, 4)):
        start, end = values(shape, dtype), values(shape, dtype)
        yield case_of(torch.lerp, _text(shape), start, end, torch.tensor([0.3], dtype=dtype))


def _packed_products(dtype: torch.dtype) -> Iterator[Case]:
    for rows in (1, 5, 11):
        weight = torch.randint(-128, 128, (64, 96), dtype=torch.int8)
        scales = (torch.rand(64) / 64).to(dtype)
        yield case_of(torch._weight_int8pack_mm, f"{rows} rows", values((rows, 96), dtype), weight, scales)


def _descents(dtype: torch.dtype) -> Iterator[Case]:
    """Without momentum, which has another kernel."""
    numbers = {"momentum": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "is_first_step": False}
    for shape, decay, maximize in (((7,), 0.0, False), ((3, 20), 0.1, True), ((2, 3, 4), 0.3, False)):
        given, gradient = values(shape, dtype), values(shape, dtype)
        kwargs = {**numbers, "weight_decay": decay, "maximize": maximize}
        title = f"{_text(shape)}, decay {decay}"
        yield Case(SchemaCall("aten::_fused_sgd_"), ([given], [gradient], []), kwargs, title=title)


def _unscaling(dtype: torch.dtype) -> Iterator[Case]:
    """One gradient, which has another kernel than several."""
    for title, special in (("finite", 1.0), ("infinite", float("inf")), ("NaN", float("nan"))):
        given = values((3, 20), dtype)
        given[1, 2] = special
        args = [given], torch.zeros(1), torch.tensor([0.25])
        yield Case(SchemaCall("aten::_amp_foreach_non_finite_check_and_unscale_"), args, title=title)


def _concatenations(dtype: torch.dtype) -> Iterator[Case]:
    """A result of the dtype from each other dtype that is promoted to it, contiguous and transposed."""
    for name in DTYPES:
        other = getattr(torch, name)
        if torch.promote_types(dtype, other) is dtype:
            given = [values((3, 4), dtype) if not dtype.is_complex else torch.randn(3, 4, dtype=dtype)]
            given.append(values((4, 3), other).T if not other.is_complex else torch.randn(4, 3, dtype=other).T)
            yield case_of(torch.cat, f"with {name}", given, 0)


def _grid_sampler(dimensions: int, dtype: torch.dtype) -> Iterator[Case]:
    modes = ("bilinear", "nearest", "bicubic") if dimensions == 2 else ("bilinear", "nearest")
    for mode in modes:
        for padding in ("zeros", "border", "reflection"):
            given = values((1, 2, *(5,) * dimensions), dtype)
            grid = (2.4 * torch.rand(1, *(4,) * dimensions, dimensions) - 1.2).to(dtype)
            case = case_of(
                torch.nn.functional.grid_sample,
                f"{mode}, {padding}",
                given.requires_grad_(),
                grid.requires_grad_(),
                mode=mode,
                padding_mode=padding,
                align_corners=False,
            )
            case.differentiable = True
            yield case


def _integer_products(call: Callable[..., Any], shapes: tuple[Shape, ...], dtype: torch.dtype) -> Iterator[Case]:
    yield case_of(call, "", *(values(shape, dtype) for shape in shapes))


def _text(shape: Shape) -> str:
    return " by ".join(f"{size:,}" for size in shape)


_REDUCTIONS: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("sum", torch.sum, REAL),
    ("nansum", torch.nansum, ARITHMETIC),
    ("prod", torch.prod, ARITHMETIC),
    ("any", torch.any, REAL),
    ("all", torch.all, REAL),
    ("amax", torch.amax, REAL),
    ("amin", torch.amin, REAL),
    ("argmax", torch.argmax, ARITHMETIC),
    ("argmin", torch.argmin, ARITHMETIC),
    ("count_nonzero", torch.count_nonzero, REAL),
    ("linalg_vector_norm", lambda x, dim=None: torch.linalg.vector_norm(x, dim=dim), FLOATS),
    ("norm", lambda x, dim=None: torch.linalg.vector_norm(x, 1, dim), FLOATS),
)
_SCANS: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("logcumsumexp", torch.logcumsumexp, FLOATS),
    ("cummax", torch.cummax, REAL),
    ("cummin", torch.cummin, REAL),
)
_PRODUCTS: tuple[tuple[str, Callable[..., Any], tuple[Shape, ...]], ...] = (
    ("mm", torch.mm, ((5, 7), (7, 3))),
    ("addmm", torch.addmm, ((5, 3), (5, 7), (7, 3))),
    ("bmm", torch.bmm, ((2, 5, 7), (2, 7, 3))),
    ("baddbmm", torch.baddbmm, ((2, 5, 3), (2, 5, 7), (2, 7, 3))),
    ("addbmm", torch.addbmm, ((5, 3), (2, 5, 7), (2, 7, 3))),
)

SHAPED: tuple[WrittenCalls, ...] = (
    WrittenCalls("sort", REAL, _sorts),
    WrittenCalls("topk", ARITHMETIC, _largest),
    *(WrittenCalls(name, dtypes, partial(_reductions, call)) for name, call, dtypes in _REDUCTIONS),
    *(WrittenCalls(name, dtypes, partial(_scans, call)) for name, call, dtypes in _SCANS),
    WrittenCalls("cumsum", ARITHMETIC, partial(_sums, torch.cumsum)),
    WrittenCalls("cumprod", ARITHMETIC, partial(_sums, torch.cumprod)),
    WrittenCalls("_softmax", FLOATS, partial(_softmax, torch.softmax)),
    WrittenCalls("_log_softmax", FLOATS, partial(_softmax, torch.log_softmax)),
    WrittenCalls("native_layer_norm", FLOATS, _layer_norm),
    WrittenCalls("native_group_norm", FLOATS, _group_norm),
    WrittenCalls("scaled_dot_product_attention", FLOATS, _attention),
    WrittenCalls("copy_", ("float32", "float16", "bfloat16", "complex64"), _copies),
    WrittenCalls("index_fill", ("float32", "float16", "int64"), _filled),
    WrittenCalls("lerp", FLOATS, _interpolations),
    WrittenCalls("_weight_int8pack_mm", FLOATS, _packed_products),
    WrittenCalls("_fused_sgd_", FLOATS, _descents),
    WrittenCalls("_amp_foreach_non_finite_check_and_unscale_", ("float32",), _unscaling),
    WrittenCalls("tril_indices", ("int32", "int64"), _triangles),
    WrittenCalls("native_dropout", FLOATS, _dropouts),
    WrittenCalls("repeat_interleave", ("int32",), _repetitions),
    WrittenCalls("linalg_cholesky_ex", ("float32",), _cholesky),
    WrittenCalls("_cdist_backward", ("float32",), _distances),
    WrittenCalls("cat", DTYPES, _concatenations),
    WrittenCalls("grid_sampler_2d", FLOATS, partial(_grid_sampler, 2)),
    WrittenCalls("grid_sampler_3d", FLOATS, partial(_grid_sampler, 3)),
    *(
        WrittenCalls(name, tuple(n for n in ARITHMETIC if n not in FLOATS), partial(_integer_products, call, shapes))
        for name, call, shapes in _PRODUCTS
    ),
)


def _with_nan(case: Case) -> Case:
    """The case with NaN in the middle of its first tensor: kernels for large inputs look for maxima in other ways."""
    put = at("middle", float("nan"))

    def change(given: Tensor, position: int) -> Tensor:
        if position or not given.is_floating_point():
            return given
        return put(given.detach().clone(), 0).requires_grad_(given.requires_grad)

    return replace(map_tensors(case, change), title=f"NaN in {case.title}")


class KernelSizeSource(CaseSource):
    """The calls of `SHAPED` and `RARE`, a group for each operator and dtype."""

    name = "kernel sizes"
    quick = QuickShare.ONE_DTYPE

    def groups(self) -> Iterable[GroupKey]:
        """One for each operator and dtype of the table."""
        return [GroupKey(self.name, operator, "", dtype, "fallback") for operator, dtype in self._rows]

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The calls in the group's dtype; the first of each row once more with NaN, unless gradients are compared."""
        again: list[Case] = []
        for row in self._rows[key.operator, key.dtype]:
            for position, case in enumerate(row.calls(getattr(torch, key.dtype))):
                yield case
                if position == 0 and key.dtype in FLOATS and not (case.distribution or case.differentiable):
                    again.append(_with_nan(case))
        yield from again

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[WrittenCalls]]:
        rows: dict[tuple[str, str], list[WrittenCalls]] = {}
        for row in (*SHAPED, *RARE):
            for dtype in row.dtypes:
                rows.setdefault((row.operator, dtype), []).append(row)
        return rows
