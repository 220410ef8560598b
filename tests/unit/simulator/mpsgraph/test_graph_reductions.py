"""The stand-in's reductions, sorts and scans, against torch on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.graph_calls import Graph, dtype_of, shape_of

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
NAN = float("nan")


def product(x: Tensor, axes: list[int]) -> Tensor:
    for axis in axes:
        x = x.prod(axis, keepdim=True, dtype=x.dtype)
    return x


REDUCTIONS: dict[str, Callable[[Tensor, list[int]], Tensor]] = {
    "reductionSum": lambda x, axes: x.sum(axes, keepdim=True, dtype=x.dtype),
    "reductionProduct": product,
    "reductionMaximum": lambda x, axes: x.amax(axes, keepdim=True),
    "reductionMinimum": lambda x, axes: x.amin(axes, keepdim=True),
    "reductionMaximumPropagateNaN": lambda x, axes: x.amax(axes, keepdim=True),
    "reductionMinimumPropagateNaN": lambda x, axes: x.amin(axes, keepdim=True),
    "reductionAnd": lambda x, axes: x.bool().all(axes, keepdim=True).to(x.dtype),
    "reductionOr": lambda x, axes: x.bool().any(axes, keepdim=True).to(x.dtype),
}


def values(shape: list[int], dtype: torch.dtype) -> Tensor:
    return torch.randint(-3, 4, shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_keep_their_dimensions(name: str, dtype: torch.dtype) -> None:
    for shape, axes in [([4], [0]), ([2, 3], [0, 1]), ([2, 3, 4], [-1]), ([2, 3, 4], [0, 2]), ([2, 1, 3, 2], [1, -2])]:
        x = values(shape, dtype)
        graph = Graph()
        of_axes = graph(f"{name}WithTensor:axes:name:", graph.feed(x), axes, None)
        of_axis = graph(f"{name}WithTensor:axis:name:", graph.feed(x), axes[0], None)
        several, single = graph.run(of_axes, of_axis)
        torch.testing.assert_close(several, REDUCTIONS[name](x, axes))
        torch.testing.assert_close(single, REDUCTIONS[name](x, axes[:1]))


def test_a_reduction_without_axes_is_over_all_of_them() -> None:
    x = values([2, 3], torch.float32)
    graph = Graph()
    (result,) = graph.run(graph("reductionSumWithTensor:axes:name:", graph.feed(x), None, None))
    assert result.tolist() == [[float(x.sum())]]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_over_an_empty_list_of_axes_is_over_none(name: str) -> None:
    x = values([2, 3], torch.int32)
    graph = Graph()
    (result,) = graph.run(graph(f"{name}WithTensor:axes:name:", graph.feed(x), [], None))
    assert result.equal(x.bool().int() if name in ("reductionAnd", "reductionOr") else x)


def test_the_sum_of_bool_counts() -> None:
    x = torch.tensor([[True, True, False], [True, False, False]])
    graph = Graph()
    node = graph("reductionSumWithTensor:axes:name:", graph.feed(x), [1], None)
    assert dtype_of(node) == torch.int32
    assert graph.run(node)[0].tolist() == [[2], [1]]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("reductionMaximumWithTensor:axis:name:", [2.0, float("-inf")]),
        ("reductionMinimumWithTensor:axis:name:", [1.0, float("inf")]),
        ("reductionMaximumPropagateNaNWithTensor:axis:name:", [NAN, NAN]),
        ("reductionMinimumPropagateNaNWithTensor:axis:name:", [NAN, NAN]),
        ("reductionArgMaximumWithTensor:axis:name:", [2, 0]),
        ("reductionArgMinimumWithTensor:axis:name:", [1, 0]),
    ],
)
def test_reductions_pass_over_nan_unless_they_propagate_it(selector: str, expected: list[float]) -> None:
    x = torch.tensor([[NAN, 1.0, 2.0], [NAN, NAN, NAN]])
    graph = Graph()
    node = graph(selector, graph.feed(x), 1, None)
    (result,) = graph.run(node)
    torch.testing.assert_close(result, torch.tensor(expected).to(result.dtype).unsqueeze(1), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_places_of_extremes_are_int32_with_the_dimension_kept(dtype: torch.dtype, axis: int) -> None:
    x = torch.randperm(12).reshape(3, 4).to(dtype)
    graph = Graph()
    nodes = [
        graph("reductionArgMaximumWithTensor:axis:name:", graph.feed(x), axis, None),
        graph("reductionArgMinimumWithTensor:axis:name:", graph.feed(x), axis, None),
    ]
    largest, smallest = graph.run(*nodes)
    assert largest.dtype == smallest.dtype == torch.int32
    assert largest.equal(x.argmax(axis, keepdim=True).int())
    assert smallest.equal(x.argmin(axis, keepdim=True).int())


def test_mean_and_variance() -> None:
    x = torch.randn(2, 3, 4)
    graph = Graph()
    source = graph.feed(x)
    mean = graph("meanOfTensor:axes:name:", source, [0, 2], None)
    nodes = [
        mean,
        graph("varianceOfTensor:axes:name:", source, [0, 2], None),
        graph("varianceOfTensor:meanTensor:axes:name:", source, mean, [0, 2], None),
        graph("meanOfTensor:axes:name:", source, None, None),
    ]
    results = graph.run(*nodes)
    expected = x.double().var((0, 2), correction=0, keepdim=True).float()
    torch.testing.assert_close(results[0], x.mean((0, 2), keepdim=True))
    torch.testing.assert_close(results[1], expected)
    torch.testing.assert_close(results[2], expected)
    torch.testing.assert_close(results[3], x.mean().reshape(1, 1, 1))


SCANS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "cumulativeSumWithTensor:axis:name:": lambda x, axis: x.cumsum(axis, dtype=x.dtype),
    "cumulativeProductWithTensor:axis:name:": lambda x, axis: x.cumprod(axis, dtype=x.dtype),
    "sortWithTensor:axis:name:": lambda x, axis: x.sort(dim=axis, stable=True).values,
    "argSortWithTensor:axis:name:": lambda x, axis: x.sort(dim=axis, stable=True).indices.int(),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("selector", SCANS)
def test_scans_and_sorts_along_an_axis(selector: str, dtype: torch.dtype) -> None:
    for shape, axis in [([5], 0), ([3, 4], -1), ([2, 3, 4], 1), ([0, 3], 1)]:
        x = values(shape, dtype)
        graph = Graph()
        (result,) = graph.run(graph(selector, graph.feed(x), axis, None))
        assert result.equal(SCANS[selector](x, axis))


@pytest.mark.parametrize("descending", [False, True])
def test_sorts_in_both_directions(descending: bool) -> None:
    x = values([3, 5], torch.float32)
    graph = Graph()
    nodes = [
        graph("sortWithTensor:axis:descending:name:", graph.feed(x), 1, descending, None),
        graph("argSortWithTensor:axis:descending:name:", graph.feed(x), 1, descending, None),
    ]
    ordered, places = graph.run(*nodes)
    expected = x.sort(dim=1, descending=descending, stable=True)
    assert ordered.equal(expected.values)
    assert places.equal(expected.indices.int())


def test_the_largest_elements_and_their_places() -> None:
    x = torch.randperm(20).reshape(4, 5).float()
    graph = Graph()
    source = graph.feed(x)
    last = graph.several("topKWithSourceTensor:k:name:", source, 2, None)
    first = graph.several("topKWithSourceTensor:axis:k:name:", source, 0, 3, None)
    results = graph.run(*last, *first)
    for outputs, axis, k in ((results[:2], 1, 2), (results[2:], 0, 3)):
        expected = x.topk(k, axis)
        assert outputs[0].equal(expected.values)
        assert outputs[1].equal(expected.indices.int())


def test_the_places_of_elements_that_are_not_zero_have_no_known_shape() -> None:
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    graph = Graph()
    node = graph("nonZeroIndicesOfTensor:name:", graph.feed(x), None)
    assert shape_of(node) is None
    (result,) = graph.run(node, places=[torch.empty(2, 2, dtype=torch.int32)])
    assert result.equal(x.nonzero().int())


@pytest.mark.parametrize(("lower", "upper"), [(-1, 0), (0, -1), (1, 1), (0, 0), (-1, -1)])
def test_bands_of_matrices(lower: int, upper: int) -> None:
    x = torch.randn(2, 4, 4)
    graph = Graph()
    numbers = [graph.feed(torch.tensor([number], dtype=torch.int32)) for number in (lower, upper)]
    nodes = [
        graph("bandPartWithTensor:numLower:numUpper:name:", graph.feed(x), lower, upper, None),
        graph("bandPartWithTensor:numLowerTensor:numUpperTensor:name:", graph.feed(x), *numbers, None),
    ]
    expected = x if upper < 0 else x.tril(upper)
    expected = expected if lower < 0 else expected.triu(-lower)
    for result in graph.run(*nodes):
        assert result.equal(expected)


def test_the_inverse_of_a_matrix() -> None:
    x = torch.randn(3, 3) + 3 * torch.eye(3)
    graph = Graph()
    (result,) = graph.run(graph("inverseOfTensor:name:", graph.feed(x), None))
    torch.testing.assert_close(result, torch.linalg.inv(x.double()).float())
