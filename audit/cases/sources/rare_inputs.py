"""Calls with inputs that samplers leave out, each of which a fault or a report has shown to matter.

A padding index with gradients, a norm over the last dimension, indices of int32 that count from the end, sums in
another dtype, integers that wrap, one element at an offset beside many, a copy to the host that converts, one feature
whose gradient is expanded, the tails of distributions, one element among many that decides a reduction, draws into
integers, values that equal a boundary, one image rearranged by several factors, and resized by one for each dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ...model.case import Case
from ..calls.invocation import SchemaCall
from .gradients import as_of_a_sum, with_cotangent
from .layouts import offset
from .written_calls import ARITHMETIC, FLOATS, REAL, WrittenCalls, case_of, values

INTEGERS = tuple(name for name in ARITHMETIC if name not in FLOATS)
# Draws of which so many are expected beyond a threshold on one side; their number is off by six deviations at most.
DRAWS, BEYOND = 1 << 18, 1e-3
SIX_DEVIATIONS = 6 * math.sqrt(DRAWS * BEYOND)
# By which five elements are resized: each gives other nearest elements than the next, and than the ratio of the sizes.
FACTORS = (0.7, 1.3, 2.3)


def _wanting_gradients(case: Case) -> Case:
    tensors = tuple(a.requires_grad_() if isinstance(a, Tensor) and a.is_floating_point() else a for a in case.args)
    return replace(case, args=tensors, differentiable=True)


def _embeddings(dtype: torch.dtype) -> Iterator[Case]:
    """Rows that padding takes out of the gradient, the first, the last, and counted from the end."""
    for padding in (0, 4, -2):
        for indices in (torch.int64, torch.int32):
            places = torch.tensor([[0, 4, 3], [3, 1, 0]], dtype=indices)
            title = f"padding_idx={padding}, indices of {indices}"
            case = case_of(F.embedding, title, places, values((5, 3), dtype), padding_idx=padding)
            yield _wanting_gradients(case)


def _weight_norms(dtype: torch.dtype) -> Iterator[Case]:
    """By the first dimension, which samples have, and by the last one."""
    for shape in ((3, 5), (4, 2, 3)):
        for dim in (0, len(shape) - 1):
            norms = [1] * len(shape)
            norms[dim] = shape[dim]
            given = values(shape, dtype), values(tuple(norms), dtype)
            yield _wanting_gradients(case_of(torch._weight_norm, f"{list(shape)} by {dim}", *given, dim))


def _distances(dtype: torch.dtype) -> Iterator[Case]:
    """More rows than one SIMD group handles, with p = 1, whose gradient is a sign."""
    for rows, others in ((9, 12), (40, 33)):
        given = values((rows, 5), dtype), values((others, 5), dtype)
        yield _wanting_gradients(case_of(torch.cdist, f"order 1, {rows} by {others} rows", *given, 1.0))


def _from_the_end(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    for indices in (torch.int32, torch.int64):
        places = [torch.tensor([-1, 2, -5], dtype=indices), torch.tensor([0, -3, -1], dtype=indices)]
        yield case_of(call, f"two of {indices} from the end", values((5, 4), dtype), places)
        yield case_of(call, f"one of {indices} from the end", values((5, 4), dtype), places[:1])


def _taken(given: Tensor, places: list[Tensor]) -> Tensor:
    return given[tuple(places)]


def _put(given: Tensor, places: list[Tensor]) -> Tensor:
    return given.index_put_(tuple(places), torch.ones((), dtype=given.dtype, device=given.device), accumulate=True)


def _reductions_into(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    """Along the last dimension into each dtype of another kind; of integers so large that they wrap in their own."""
    others: tuple[torch.dtype, ...] = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8)
    if call in (torch.mean, torch.softmax, torch.log_softmax):
        others = others[:2]
    for other in others:
        if other is not dtype:
            given = values((3, 40), dtype)  # converting what is below zero to uint8 is undefined
            given = given.abs() if dtype.is_floating_point and not other.is_signed else given
            given = given.index_fill(1, torch.arange(1, 40), True) if dtype is torch.bool else given
            yield case_of(call, f"into {other}", given, 1, dtype=other)
    if not dtype.is_floating_point and dtype is not torch.bool and len(others) > 2:
        yield case_of(call, "wraps", _large(dtype, (3, 40)), 1, dtype=dtype)


def _large(dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """Integers over the whole range of their dtype."""
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, shape, dtype=torch.int64).to(dtype)


def _products(call: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> Iterator[Case]:
    yield case_of(call, "wraps", *(_large(dtype, shape) for shape in shapes))


def _beside_one_element(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    """The second operand has one element, with and without a dimension, that does not begin its memory."""
    for shape in ((), (1,), (1, 1)):
        element = offset(torch.full(shape, 0 if dtype is torch.bool else 3, dtype=dtype))
        assert element is not None
        yield case_of(call, f"one element at an offset in {len(shape)} dimensions", values((3, 4), dtype), element)
        yield case_of(call, f"the same of many elements, {len(shape)}", values((70, 200), dtype), element)


def _to_host(dtype: torch.dtype) -> Iterator[Case]:
    """Views copied to the host, and from it, into another dtype: their bytes are converted on the way."""
    other = torch.float32 if dtype is not torch.float32 else torch.float16
    whole = values((6, 8), dtype)
    views = {"at an offset": whole[2:], "stepped": whole[:, 1::2], "transposed": whole[1:].T, "one": whole[3, 5]}
    for title, view in views.items():
        for into in (dtype, other, torch.int64 if dtype is not torch.int64 else torch.int32):
            yield replace(case_of(_on_the_host, f"{title} into {into}", view, into), same_memory=False)
            source = values(tuple(view.shape), into)
            case = case_of(SchemaCall("aten::copy_"), f"{title} from {into}", view, source)
            yield replace(case, on_host=frozenset({1}))


def _on_the_host(view: Tensor, into: torch.dtype) -> list[Tensor]:
    return [view.to("cpu", into).to(view.device), view.to(into).cpu().to(view.device)]


def _one_feature(call: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> Iterator[Case]:
    """The gradient of a sum, which has one number in memory, of a result whose last dimension is one."""
    case = case_of(call, "", *(values(shape, dtype) for shape in shapes))
    yield replace(with_cotangent(_wanting_gradients(case), as_of_a_sum), title="one feature, gradient of a sum")


def _tails(draw: str, args: tuple[float, ...], low: float, high: float, dtype: torch.dtype) -> Iterator[Case]:
    """Whether as many draws as there should be are beyond the quantiles, and none is where none can be."""
    yield replace(case_of(_has_expected_tails, "", draw, args, low, high, dtype), default_device=True)


def _has_expected_tails(draw: str, args: tuple[float, ...], low: float, high: float, dtype: torch.dtype) -> list[bool]:
    drawn = getattr(torch.zeros(DRAWS, dtype=dtype), draw)(*args).cpu().double()
    beyond = (int((drawn < low).sum()), int((drawn > high).sum()))
    right = [abs(count - DRAWS * BEYOND) <= SIX_DEVIATIONS for count in beyond]
    return [*right, bool(drawn.isfinite().all()), draw != "uniform_" or bool((drawn < 1).all())]


def _decided_by_one(call: Callable[..., Any], dtype: torch.dtype) -> Iterator[Case]:
    """All elements are alike but one, which is a number, or a NaN that counts as true."""
    others = call is torch.all
    for special in (not others, math.nan) if dtype.is_floating_point else (not others,):
        for place in ((0, 0), (2, 37), (2, 299)):
            given = torch.full((3, 300), others, dtype=dtype)
            given[place] = special
            title = f"{special} at {list(place)}"
            yield case_of(call, title, given, 1)
            yield case_of(call, f"{title}, along columns", given.T.contiguous(), 0)
            yield case_of(call, f"{title}, of all", given)


def _draws_of_integers(dtype: torch.dtype) -> Iterator[Case]:
    for share in (BEYOND, 0.25, 0.75):
        yield replace(case_of(_has_expected_share, f"probability {share}", share, dtype), default_device=True)


def _has_expected_share(share: float, dtype: torch.dtype) -> list[bool]:
    drawn = torch.full((DRAWS,), 7 if dtype is not torch.bool else 1, dtype=dtype).bernoulli_(share).cpu()
    ones, zeros = int((drawn == 1).sum()), int((drawn == 0).sum())
    deviation = 6 * math.sqrt(DRAWS * share * (1 - share))
    return [abs(ones - DRAWS * share) <= deviation, ones + zeros == DRAWS]


def _shares(dtype: torch.dtype) -> Iterator[Case]:
    """Rows of a Dirichlet distribution, which sum to one."""
    for concentration in (0.5, 3.0):
        given = torch.full((400, 5), concentration, dtype=dtype)
        yield case_of(_sums_of_shares, f"concentration {concentration}", given)


def _sums_of_shares(concentration: Tensor) -> list[Any]:
    drawn = torch._sample_dirichlet(concentration)
    return [drawn.sum(1), bool((drawn > 0).all()), bool((drawn < 1).all())]


def _on_boundaries(dtype: torch.dtype) -> Iterator[Case]:
    """Values that are boundaries, lie between two, and beyond the first and the last."""
    boundaries = torch.arange(-8, 9, 2).to(dtype) if dtype.is_signed else torch.arange(0, 18, 2).to(dtype)
    given = torch.randint(-9 if dtype.is_signed else 0, 10, (6, 70)).to(dtype)
    for right in (False, True):
        for out_int32 in (False, True):
            title = f"right={right}, out_int32={out_int32}"
            yield case_of(torch.bucketize, title, given, boundaries, right=right, out_int32=out_int32)


def _resized(operator: str, dtype: torch.dtype) -> Iterator[Case]:
    """Each dimension by its own factor, and one factor left out: its dimension then has that of the sizes."""
    factors = FACTORS[: (dimensions := int(operator[-2]))]
    sizes, corners = [int(5 * factor) for factor in factors], () if "nearest" in operator else (False,)
    for left_out in range(dimensions + 1):
        given = [None if i == left_out else factor for i, factor in enumerate(factors)]
        title, image = "by " + ", ".join(map(str, given)), values((2, 3, *[5] * dimensions), dtype)
        yield _wanting_gradients(case_of(SchemaCall(f"aten::{operator}"), title, image, sizes, *corners, *given))


def _by_factors(call: Callable[[Tensor, int], Tensor], dtype: torch.dtype) -> Iterator[Case]:
    """One image by two factors, neither of which is one: samples fit no more than one such factor."""
    given = values((1, 36, 6, 6), dtype)
    yield from (case_of(call, f"by {factor}", given, factor) for factor in (2, 3))


_INTO: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("sum", torch.sum),
    ("prod", torch.prod),
    ("cumsum", torch.cumsum),
    ("cumprod", torch.cumprod),
    ("nansum", torch.nansum),
    ("mean", torch.mean),
    ("_softmax", torch.softmax),
    ("_log_softmax", torch.log_softmax),
)
_WRAPPING: tuple[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]], ...] = (
    ("mm", torch.mm, ((5, 7), (7, 3))),
    ("addmm", torch.addmm, ((5, 3), (5, 7), (7, 3))),
    ("bmm", torch.bmm, ((2, 5, 7), (2, 7, 3))),
    ("mul", torch.mul, ((5, 7), (5, 7))),
)
_OF_TWO: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("add", torch.add, REAL),
    ("sub", torch.sub, ARITHMETIC),
    ("mul", torch.mul, ARITHMETIC),
    ("div", torch.div, ARITHMETIC),
    ("maximum", torch.maximum, REAL),
    ("pow", torch.pow, FLOATS),
    ("lt", torch.lt, ARITHMETIC),
    ("remainder", torch.remainder, ARITHMETIC),
)
_WITH_ONE_FEATURE: tuple[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]], ...] = (
    ("linear", F.linear, ((6, 5), (1, 5), (1,))),
    ("mm", torch.mm, ((6, 5), (5, 1))),
    ("convolution", F.conv2d, ((2, 3, 5, 5), (1, 3, 2, 2), (1,))),
    ("native_group_norm", lambda x, w, b: F.group_norm(x, 1, w, b), ((3, 1, 6), (1,), (1,))),
    ("native_batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((6, 1), (1,), (1,))),
)
# The draw, its arguments, and the quantiles of BEYOND and of 1 - BEYOND.
_DRAWN: tuple[tuple[str, tuple[float, ...], float, float], ...] = (
    ("normal_", (), -3.0902323, 3.0902323),
    ("uniform_", (), BEYOND, 1 - BEYOND),
    ("exponential_", (), -math.log1p(-BEYOND), -math.log(BEYOND)),
    ("cauchy_", (), math.tan(math.pi * (BEYOND - 0.5)), math.tan(math.pi * (0.5 - BEYOND))),
    ("log_normal_", (0.0, 1.0), math.exp(-3.0902323), math.exp(3.0902323)),
)

_RESIZED = (
    *(f"{kind}{dimensions}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for dimensions in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
)

RARE: tuple[WrittenCalls, ...] = (
    WrittenCalls("embedding", FLOATS, _embeddings),
    WrittenCalls("_weight_norm", FLOATS, _weight_norms),
    WrittenCalls("cdist", ("float32",), _distances),
    WrittenCalls("index", ("float32", "float16", "int64", "bool"), partial(_from_the_end, _taken)),
    WrittenCalls("index_put_", ("float32", "float16", "int64"), partial(_from_the_end, _put)),
    *(WrittenCalls(name, REAL, partial(_reductions_into, call)) for name, call in _INTO),
    *(WrittenCalls(name, INTEGERS, partial(_products, call, shapes)) for name, call, shapes in _WRAPPING),
    *(WrittenCalls(name, dtypes, partial(_beside_one_element, call)) for name, call, dtypes in _OF_TWO),
    WrittenCalls("_to_copy", ("float32", "float16", "int32", "int64", "uint8", "bool"), _to_host),
    *(
        WrittenCalls(name, ("float32", "float16"), partial(_one_feature, call, shapes))
        for name, call, shapes in _WITH_ONE_FEATURE
    ),
    WrittenCalls("any", REAL, partial(_decided_by_one, torch.any)),
    WrittenCalls("all", REAL, partial(_decided_by_one, torch.all)),
    WrittenCalls("bernoulli_", REAL, _draws_of_integers),
    WrittenCalls("_sample_dirichlet", ("float32",), _shares),
    WrittenCalls("bucketize", ARITHMETIC, _on_boundaries),
    *(WrittenCalls(f.__name__, ("float32",), partial(_by_factors, f)) for f in (F.pixel_shuffle, F.pixel_unshuffle)),
    *(WrittenCalls(name, ("float32",), partial(_resized, name)) for name in _RESIZED),
    *(WrittenCalls(draw, ("float32",), partial(_tails, draw, args, low, high)) for draw, args, low, high in _DRAWN),
)
