"""Calls of the sizes and modes at which the host chooses another Metal kernel.

Samples are small: they never reach the kernels for rows of more than a threadgroup's threads, for few long rows, for
attention heads of 64 and more, or for modes that a sampler leaves out. Each row of `SHAPED` names what selects the
kernel: the rows of a sort, the reduced dimension of a reduction, the head size and keys of attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case, CaseSource, QuickShare
from ...model.group import GroupKey
from ...model.selection import DTYPES, Samples

Shape = tuple[int, ...]
Calls = Callable[[torch.dtype], Iterator[Case]]

FLOATS = ("float32", "float16", "bfloat16")
REAL = tuple(name for name in DTYPES if not name.startswith("complex"))
ARITHMETIC = tuple(name for name in REAL if name != "bool")

# Rows and their length: one threadgroup of 32 to 1,024 threads with four elements each, blocks that are merged, and
# more elements than 16-bit indices count.
SORTED = ((4, 100), (4, 200), (4, 400), (4, 900), (4, 1_800), (4, 3_500), (3, 5_000), (1, 5_000), (1, 66_000))
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
SCANNED = (((4_100, 20), 1), ((1, 70_000), 1), ((2, 1_500, 40), 1), ((3, 5_000), 1), ((70, 300), 0))
NORMALIZED = ((3, 5_000), (200, 1_500), (70, 64))
HEAD_SIZES, KEYS, QUERIES = (64, 96, 128, 256), (40, 1_100), 2


@dataclass(frozen=True)
class Sized:
    """The calls of one operator.

    Attributes:
        operator: its name in ATen, which the group has.
        dtypes: in which it is called.
        calls: gives the cases in a dtype.
    """

    operator: str
    dtypes: tuple[str, ...]
    calls: Calls


def values(shape: Shape, dtype: torch.dtype) -> Tensor:
    """Values of both signs, small enough that sums of thousands are exact in float32, with repetitions."""
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    low = -9 if dtype.is_signed else 0
    return torch.randint(low, 10, shape).to(dtype)


def _case(call: Callable[..., Any], title: str, *args: Any, **kwargs: Any) -> Case:
    return Case(call, args, kwargs, title=title)


def _sorts(dtype: torch.dtype) -> Iterator[Case]:
    for shape in SORTED:
        for stable in (False, True):
            title = f"{'stable, ' if stable else ''}{_text(shape)}"
            yield _case(torch.sort, title, values(shape, dtype), dim=1, stable=stable, descending=stable)


def _largest(dtype: torch.dtype) -> Iterator[Case]:
    for shape in SORTED:
        yield _case(torch.topk, _text(shape), values(shape, dtype), 5, 1)


def _reductions(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for shape, dim in REDUCED:
        yield _case(call, f"{_text(shape)} over {dim}", values(shape, dtype), dim)
        whole = values((*shape[:-1], 2 * shape[-1]), dtype)
        yield _case(call, f"{_text(shape)} stepped over {dim}", whole[..., ::2], dim)


def _scans(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for shape, dim in SCANNED:
        given = values(shape, dtype)
        # A product of small values is 0 or infinite after a few: these stay near 1.
        near_one = 1 + given / 4_096 if dtype.is_floating_point and call is torch.cumprod else given
        yield _case(call, f"{_text(shape)} over {dim}", near_one, dim)


def _softmax(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for shape in NORMALIZED:
        yield _case(call, _text(shape), values(shape, dtype), 1)
    yield _case(call, "over the first dimension", values((300, 40), dtype), 0)


def _layer_norm(dtype: torch.dtype) -> Iterator[Case]:
    for shape in NORMALIZED:
        weight, bias = values(shape[1:], dtype), values(shape[1:], dtype)
        yield _case(torch.nn.functional.layer_norm, _text(shape), values(shape, dtype), shape[1:], weight, bias)


def _group_norm(dtype: torch.dtype) -> Iterator[Case]:
    for shape in ((2, 6, 5), (2, 6, 40, 40)):
        for weighted, biased in ((True, True), (True, False), (False, True), (False, False)):
            weight, bias = (values((6,), dtype) if given else None for given in (weighted, biased))
            title = f"{_text(shape)}{', weight' * weighted}{', bias' * biased}"
            yield _case(torch.nn.functional.group_norm, title, values(shape, dtype), 3, weight, bias)


def _attention(dtype: torch.dtype) -> Iterator[Case]:
    attention = torch.nn.functional.scaled_dot_product_attention
    for size in HEAD_SIZES:
        for keys in KEYS:
            query, key, value = (values((1, 2, rows, size), dtype) for rows in (QUERIES, keys, keys))
            masks: dict[str, dict[str, Any]] = {
                "": {},
                ", mask of bool": {"attn_mask": torch.rand(QUERIES, keys) < 0.8},
                ", mask of numbers": {"attn_mask": values((QUERIES, keys), dtype)},
                ", causal": {"is_causal": True},
            }
            for title, mask in masks.items():
                yield _case(attention, f"heads of {size}, {keys:,} keys{title}", query, key, value, **mask)


def _concatenations(dtype: torch.dtype) -> Iterator[Case]:
    """A result of the dtype from each other dtype that is promoted to it, contiguous and transposed."""
    for name in DTYPES:
        other = getattr(torch, name)
        if torch.promote_types(dtype, other) is dtype:
            given = [values((3, 4), dtype) if not dtype.is_complex else torch.randn(3, 4, dtype=dtype)]
            given.append(values((4, 3), other).T if not other.is_complex else torch.randn(4, 3, dtype=other).T)
            yield _case(torch.cat, f"with {name}", given, 0)


def _grid_sampler(dimensions: int, dtype: torch.dtype) -> Iterator[Case]:
    modes = ("bilinear", "nearest", "bicubic") if dimensions == 2 else ("bilinear", "nearest")
    for mode in modes:
        for padding in ("zeros", "border", "reflection"):
            given = values((1, 2, *(5,) * dimensions), dtype)
            grid = (2.4 * torch.rand(1, *(4,) * dimensions, dimensions) - 1.2).to(dtype)
            case = _case(
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
    yield _case(call, "", *(values(shape, dtype) for shape in shapes))


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
    ("linalg_vector_norm", lambda x, dim: torch.linalg.vector_norm(x, dim=dim), FLOATS),
)
_SCANS: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("cumsum", torch.cumsum, ARITHMETIC),
    ("cumprod", torch.cumprod, ARITHMETIC),
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

SHAPED: tuple[Sized, ...] = (
    Sized("sort", REAL, _sorts),
    Sized("topk", ARITHMETIC, _largest),
    *(Sized(name, dtypes, partial(_reductions, call)) for name, call, dtypes in _REDUCTIONS),
    *(Sized(name, dtypes, partial(_scans, call)) for name, call, dtypes in _SCANS),
    Sized("_softmax", FLOATS, partial(_softmax, torch.softmax)),
    Sized("_log_softmax", FLOATS, partial(_softmax, torch.log_softmax)),
    Sized("native_layer_norm", FLOATS, _layer_norm),
    Sized("native_group_norm", FLOATS, _group_norm),
    Sized("scaled_dot_product_attention", FLOATS, _attention),
    Sized("cat", DTYPES, _concatenations),
    Sized("grid_sampler_2d", FLOATS, partial(_grid_sampler, 2)),
    Sized("grid_sampler_3d", FLOATS, partial(_grid_sampler, 3)),
    *(
        Sized(name, tuple(n for n in ARITHMETIC if n not in FLOATS), partial(_integer_products, call, shapes))
        for name, call, shapes in _PRODUCTS
    ),
)


class KernelSizeSource(CaseSource):
    """The calls of `SHAPED`, a group for each operator and dtype."""

    name = "kernel sizes"
    quick = QuickShare.ONE_DTYPE

    def groups(self) -> Iterable[GroupKey]:
        """One for each operator and dtype of the table."""
        return [GroupKey(self.name, operator, "", dtype, "fallback") for operator, dtype in self._rows]

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The calls in the group's dtype."""
        yield from self._rows[key.operator, key.dtype].calls(getattr(torch, key.dtype))

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Sized]:
        return {(row.operator, dtype): row for row in SHAPED for dtype in row.dtypes}
