"""Indexing by the shipped kernels: tensors and masks as indices, gather and scatter, one index along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.conventions import advanced_indexing, gather_scatter
from mpsmith.simulator.shipped.plan import ERROR_BUFFER, KernelLaunch
from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_device

pytestmark = pytest.mark.network

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.bool, torch.complex64]
CUBES: dict[str, Callable[[torch.dtype], Tensor]] = {
    "contiguous": lambda dtype: normal(dtype)((5, 4, 3)),
    "transposed": lambda dtype: normal(dtype)((3, 4, 5)).permute(2, 1, 0),
    "stepped": lambda dtype: normal(dtype)((11, 9, 7))[1::2, 1::2, 1::2],
    "offset": lambda dtype: normal(dtype)((7, 4, 3))[2:],
}

# Every layout, and every dtype: not each with each.
SAMPLES = [*((layout, torch.float32) for layout in CUBES), *(("stepped", dtype) for dtype in DTYPES[1:])]

FIRST = torch.tensor([4, -5, 0, 2, 2, -1])
SECOND = torch.tensor([3, 0, -4, 1, -1, 2])
MASK = normal(torch.bool, 3)((5, 4))
INDEXED: dict[str, tuple[Any, ...]] = {
    "one": (FIRST,),
    "two": (FIRST, SECOND),
    "the middle one": (slice(None), SECOND),
    "two apart": (FIRST[:, None], slice(None), torch.tensor([[2, -3]])),
    "int32": (FIRST.int(), SECOND.int()),
    "a mask": (MASK,),
    "a mask and an index": (MASK[:, 0], SECOND[: int(MASK[:, 0].sum())]),
    "strides that differ": (FIRST[::2, None], torch.tensor([[0, 1], [2, 3], [1, 0]]).t().contiguous().t()),
    "no index": (torch.empty(0, dtype=torch.int64),),
}


def same(shipped: Shipped, function: Callable[..., Any], *arguments: Any, kernels: tuple[str, ...] = ("*",)) -> None:
    """The result and everything that was changed in place are the CPU's."""
    moved = [on_device(argument) for argument in arguments]
    actual = shipped.run(function, *moved, kernels=kernels)
    copies = [on_device(argument).cpu() if isinstance(argument, Tensor) else argument for argument in arguments]
    assert_near(actual, function(*copies))
    for changed, copy in zip(moved, copies, strict=True):
        if isinstance(copy, Tensor):
            assert_near(changed, copy)


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_index_in_every_layout_and_width(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x = CUBES[layout](dtype)
    kernel = f"index_select_{x.element_size() * 8}bit"
    same(shipped, lambda x, i, j: x[i, :, j], x, FIRST[:, None], torch.tensor([[2, -3]]), kernels=(kernel,))


@pytest.mark.parametrize("indices", sorted(INDEXED))
@pytest.mark.parametrize("layout", sorted(CUBES))
def test_index_by_every_kind_of_index(shipped: Shipped, layout: str, indices: str) -> None:
    kernels = () if indices == "no index" else ("index_select_32bit",)
    given = INDEXED[indices]
    same(
        shipped, lambda x, *_: x[on_device(given) if x.is_mps else given], CUBES[layout](torch.float32), kernels=kernels
    )


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_index_put_in_every_layout_and_width(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x, rows = CUBES[layout](dtype), torch.tensor([3, -5, 1])
    put = f"index_put_{x.element_size() * 8}bit"
    same(shipped, lambda x, i, v: x.index_put_((i,), v), x, rows, normal(dtype, 5)((3, 4, 3)), kernels=(put,))
    same(shipped, lambda x, i, v: x.index_put_((i,), v), x, rows, normal(dtype, 5)((3,)), kernels=(put,))
    same(shipped, lambda x, m, v: x.index_put_((m,), v), x, MASK, normal(dtype, 6)((3,)), kernels=(put,))
    add = "index_put_accumulate_*"
    accumulate = torch.ops.aten.index_put_.default
    same(shipped, lambda x, i, v: accumulate(x, [i], v, True), x, rows, normal(dtype, 5)((3, 4, 3)), kernels=(add,))


def test_sums_meet_in_one_place(shipped: Shipped) -> None:
    x, rows, ones = torch.zeros(3, 5), torch.tensor([1, 1, -2, 1]), torch.ones(4, 5)
    moved = on_device(x)
    shipped.run(moved.index_put_, (on_device(rows),), on_device(ones), accumulate=True, kernels=["*accumulate_float"])
    assert moved.cpu().tolist() == [[0.0] * 5, [4.0] * 5, [0.0] * 5]


def test_deterministic_algorithms_put_by_one_thread(shipped: Shipped) -> None:
    x = torch.zeros(3)
    torch.use_deterministic_algorithms(True)
    try:
        same(shipped, lambda x, i, v: x.index_put_((i,), v), x, torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_number_under_a_mask_is_filled_in(shipped: Shipped) -> None:
    x = normal(torch.float32)((5, 4, 3))
    assign = lambda x, m: torch.ops.aten.index_put_.default(x, [m], torch.tensor(7.0))  # noqa: E731
    same(shipped, assign, x, MASK, kernels=("masked_fill_scalar_strided_32bit",))


def errors_of(shipped: Shipped, steps: Any) -> str:
    """What kernels report when they run without the CPU's own check of the indices before them."""
    from mpsmith.simulator.shipped.interposed_kernel import _prepared_launch

    assert any(ERROR_BUFFER in step.arguments.values() for step in steps if isinstance(step, KernelLaunch))
    runs = [_prepared_launch(shipped.library.kernel(step.kernel), step) for step in steps]
    with pytest.raises(torch.AcceleratorError) as raised:
        any(run() for run in runs)
    return str(raised.value)


def test_an_index_out_of_range_is_reported_by_the_kernel(shipped: Shipped) -> None:
    x, result = torch.zeros(3, 2), torch.empty(1, 2)
    call = Call("index.Tensor", {"self": x, "indices": [torch.tensor([5])]}, (result,))
    steps = advanced_indexing.PLANNERS["index.Tensor"](call, shipped.library)
    assert "index 5 is out of bounds for dimension 0 with size 3" in errors_of(shipped, steps)
    call = Call("gather", {"self": x, "dim": 0, "index": torch.tensor([[-1, 7]])}, (result,))
    steps = gather_scatter.PLANNERS["gather"](call, shipped.library)
    assert "out of bounds for dimension with size 3" in errors_of(shipped, steps)


# ------------------------------------------------------------------------------------------------ masks
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool], ids=str)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_nonzero_and_what_a_mask_selects(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x = LAYOUTS[layout](normal(dtype))
    mask = normal(torch.bool, 4)(tuple(x.shape))
    kernels = () if layout in ("empty", "no_dimension") else ("scatter_nonzero_indices_*", "count_nonzero_prefix_sum_*")
    same(shipped, torch.nonzero, x, kernels=kernels)
    same(
        shipped,
        torch.masked_select,
        x,
        mask,
        kernels=() if layout == "empty" or not mask.any() else ("index_select_*",),
    )
    same(shipped, lambda x: torch.nonzero_static(x, size=4, fill_value=-7), x, kernels=kernels)


@pytest.mark.parametrize("size", [31, 32, 33, 1000, 1024, 1025, 5000])
def test_nonzero_counts_in_blocks(shipped: Shipped, size: int) -> None:
    same(shipped, torch.nonzero, normal(torch.bool)((size,)))
    same(shipped, torch.nonzero, torch.ones(size, 2))


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_masked_fill_and_scatter(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    bits = normal(dtype)((1,)).element_size() * 8
    flavours = {"dense": (5, 4, 3), "broadcast": (4, 3), "strided": (5, 1, 3)}
    for flavour, shape in flavours.items():
        mask = normal(torch.bool, 1)(shape)
        expected = flavour if layout in ("contiguous", "offset") else "strided"
        kernel = f"masked_fill_scalar_{expected}_{bits}bit"
        same(shipped, lambda x, m: x.masked_fill_(m, 1), CUBES[layout](dtype), mask, kernels=(kernel,))
    source = normal(dtype, 9)((70,))
    mask = normal(torch.bool, 1)((4, 3))
    same(shipped, lambda x, m, s: x.masked_scatter_(m, s), CUBES[layout](dtype), mask, source, kernels=("index_put_*",))


# ------------------------------------------------------------------------------------------------ gather, scatter
@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_gather(shipped: Shipped, layout: str, dtype: torch.dtype, index_dtype: torch.dtype) -> None:
    x = CUBES[layout](dtype)
    for dim, shape in ((0, (5, 4, 3)), (1, (5, 2, 3)), (-1, (2, 3, 6))):
        index = torch.randint(0, x.size(dim), shape, generator=torch.Generator().manual_seed(1)).to(index_dtype)
        fits = layout in ("contiguous", "offset") and shape != (2, 3, 6)
        kernel = f"gather_{'dense' if fits else 'strided'}_*"
        same(shipped, lambda x, i, dim=dim: torch.gather(x, dim, i), x, index, kernels=(kernel,))


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_scatter(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x = CUBES[layout](dtype)
    index = torch.tensor([3, 0, 2, 1])[None, :, None].expand(5, 4, 3).contiguous()
    whole, part, source = index, index[:3, :2, :2], normal(dtype, 2)((5, 4, 3))
    dense = layout in ("contiguous", "offset")
    for i in (whole, part):
        fits = dense and i is whole
        flavour = "scatter_set_dense_*" if fits else "scatter_set_*"
        same(shipped, lambda x, i, s: x.scatter_(1, i, s), x, i, source, kernels=(flavour,))
        same(shipped, lambda x, i, s: x.scatter(1, i, s), x, i, source, kernels=("scatter_set_*",))
        value = "scatter_set_dense_value_*" if fits and i.is_contiguous() else "scatter_set_*"
        same(shipped, lambda x, i: x.scatter_(1, i, 3), x, i, kernels=(value,))
        same(shipped, lambda x, i, s: x.scatter_add_(1, i, s), x, i, source, kernels=("scatter_add_*",))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amin", "amax"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.int16], ids=str)
def test_scatter_reduce(shipped: Shipped, dtype: torch.dtype, reduce: str, include_self: bool) -> None:
    x, source = normal(dtype)((5, 4)), normal(dtype, 8)((5, 4))
    index = torch.tensor([1, 1, 4, 0, 1])[:, None].expand(5, 4).contiguous()
    if dtype == torch.int64 and reduce == "prod":  # no atomic product of 64 bits
        assert shipped.reasons(lambda x: x.scatter_reduce(0, on_device(index), on_device(source), reduce), x)
        return

    def reduced(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
        return x.scatter_reduce(0, index, source, reduce, include_self=include_self)

    same(shipped, reduced, x, index, source, kernels=(f"scatter_{'add' if reduce == 'sum' else reduce}_dense_*",))
    same(
        shipped,
        reduced,
        x.t().contiguous().t(),
        index,
        source,
        kernels=(f"scatter_{'add' if reduce == 'sum' else reduce}_*",),
    )


# ------------------------------------------------------------------------------------------------ along a dimension
@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_index_copy_and_fill(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    dense = layout in ("contiguous", "offset")
    kind = "dense" if dense else "strided"
    x = CUBES[layout](dtype)
    for dim in (0, 1, 2):
        shape = [5, 4, 3]
        shape[dim] = 2
        source, index = normal(dtype, 7)(tuple(shape)), torch.tensor([2, 0])
        copy = lambda x, i, s, dim=dim: x.index_copy_(dim, i, s)  # noqa: E731
        same(shipped, copy, x, index, source, kernels=(f"index_copy_{kind}_*_long_32",))
        same(shipped, lambda x, i, s, dim=dim: x.index_copy(dim, i, s), x, index, source, kernels=("index_copy_*",))
        fill = lambda x, i, dim=dim: x.index_fill_(dim, i, 3)  # noqa: E731
        same(shipped, fill, x, index - 2, kernels=(f"index_fill_{kind}_from_mask_*", "index_fill_set_mask"))
    few = normal(dtype)((40, 6))
    same(shipped, lambda x, i: x.index_fill_(0, i, 3), few, torch.tensor([-1, 7]), kernels=("index_fill_dense_*",))
    same(
        shipped, lambda x, i: x.t().index_fill_(1, i, 3), few, torch.tensor([-1, 7]), kernels=("index_fill_strided_*",)
    )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "amin", "amax"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce(shipped: Shipped, reduce: str, include_self: bool) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int32, torch.int8):
        x, source, index = normal(dtype)((5, 4)).t(), normal(dtype, 3)((4, 3)), torch.tensor([4, 0, 4])

        def reduced(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
            return x.index_reduce(1, index, source, reduce, include_self=include_self)

        same(shipped, reduced, x, index, source, kernels=(f"index_reduce_{reduce}_*_long",))
        same(shipped, reduced, x, index.int(), source, kernels=(f"index_reduce_{reduce}_*_int",))


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_index_select_and_add(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x, index = CUBES[layout](dtype), torch.tensor([2, 0, 2])
    if shipped.release == "2.13.0":
        assert shipped.reasons(lambda x: x.index_select(0, on_device(index)), x) == {"MPSGraph"}
        return
    kind = "dense_" if layout in ("contiguous", "offset") else ""
    for dim in (0, 1, 2):
        shape = [5, 4, 3]
        shape[dim] = 3
        select = lambda x, i, dim=dim: x.index_select(dim, i)  # noqa: E731
        same(shipped, select, x, index, kernels=(f"index_select_dim_{kind}*", "index_check_bounds_long"))
        source = normal(dtype, 3)(tuple(shape))
        add = lambda x, i, s, dim=dim: x.index_add_(dim, i, s)  # noqa: E731
        same(shipped, add, x, index.int(), source, kernels=("index_add_*_int", "index_check_bounds_int"))


def test_contended_sums_are_made_in_float32(shipped: Shipped) -> None:
    x, index, source = torch.zeros(2, dtype=torch.float16), torch.zeros(64, dtype=torch.int64), torch.ones(64).half()
    if shipped.release == "2.13.0":
        return
    same(shipped, lambda x, i, s: x.index_add(0, i, s), x, index, source, kernels=("index_add_float_long",))
