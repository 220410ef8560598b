"""The stand-in's operations on shapes, gathers and scatters, against torch on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.graph_calls import DATA_TYPES, Graph, shape_of
from support.objc_messages import Argument, MessageError

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

DTYPES = (torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64)

# Selector, its arguments behind the tensor, and what torch makes of a tensor of shape [2, 3, 4].
VIEWS: list[tuple[str, list[Argument], Callable[[Tensor], Tensor]]] = [
    ("reshapeTensor:withShape:name:", [[4, -1]], lambda x: x.reshape(4, -1)),
    ("transposeTensor:dimension:withDimension:name:", [0, 2], lambda x: x.transpose(0, 2)),
    ("transposeTensor:dimension:withDimension:name:", [-1, -2], lambda x: x.transpose(-1, -2)),
    ("transposeTensor:permutation:name:", [[2, 0, 1]], lambda x: x.permute(2, 0, 1)),
    ("sliceTensor:dimension:start:length:name:", [1, 1, 2], lambda x: x.narrow(1, 1, 2)),
    ("sliceTensor:dimension:start:length:name:", [-1, -2, 2], lambda x: x.narrow(-1, -2, 2)),
    ("sliceTensor:starts:ends:strides:name:", [[0, 1, 0], [2, 3, 4], [1, 1, 2]], lambda x: x[0:2, 1:3, 0:4:2]),
    (
        "sliceTensor:starts:ends:strides:name:",
        [[-1, 0, 3], [2, -1, 0], [1, 1, -2]],
        lambda x: x[-1:, :-1].flip(2)[..., :3:2],
    ),
    (
        "sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:",
        [[1, 1, 1], [1, 1, 2], [1, 1, 1], 0b001, 0b010, 0b100],
        lambda x: x[:1, 1:, 1],
    ),
    ("squeezeTensor:name:", [], lambda x: x.squeeze()),
    ("squeezeTensor:axis:name:", [1], lambda x: x.squeeze(1)),
    ("squeezeTensor:axes:name:", [[0, 1]], lambda x: x.squeeze((0, 1))),
    ("expandDimsOfTensor:axis:name:", [-1], lambda x: x.unsqueeze(-1)),
    ("expandDimsOfTensor:axes:name:", [[0, -1]], lambda x: x[None, ..., None]),
    ("flatten2DTensor:axis:name:", [1], lambda x: x.flatten(1)),
    ("flatten2DTensor:axis:name:", [-1], lambda x: x.flatten(0, 1)),
    ("broadcastTensor:toShape:name:", [[5, 2, 3, 4]], lambda x: x.expand(5, 2, 3, 4)),
    ("tileTensor:withMultiplier:name:", [[1, 2, 3]], lambda x: x.repeat(1, 2, 3)),
    ("reverseTensor:axes:name:", [[0, 2]], lambda x: x.flip(0, 2)),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("selector", "arguments", "expected"), VIEWS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_views(
    selector: str, arguments: list[Argument], expected: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    x = torch.randint(0, 2, (2, 3, 4)).to(dtype)
    if selector.startswith("squeeze"):
        x = x[:1, :1]
    graph = Graph()
    (result,) = graph.run(graph(selector, graph.feed(x), *arguments, None))
    assert result.equal(expected(x))


def test_joins_and_splits() -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    graph = Graph()
    pair = [graph.feed(x), graph.feed(y)]
    joins = [
        graph("concatTensor:withTensor:dimension:name:", *pair, 1, None),
        graph("concatTensors:dimension:name:", pair, 0, None),
        graph("concatTensors:dimension:interleave:name:", pair, 1, True, None),
        graph("concatTensors:dimension:interleave:name:", pair, 1, False, None),
        graph("stackTensors:axis:name:", pair, -1, None),
    ]
    splits = graph.several("splitTensor:numSplits:axis:name:", pair[0], 3, 1, None)
    uneven = graph.several("splitTensor:splitSizes:axis:name:", pair[0], [1, 2], 1, None)
    results = graph.run(*joins, *splits, *uneven)
    expected = [torch.cat((x, y), 1), torch.cat((x, y)), torch.stack((x, y), 2).flatten(1), torch.cat((x, y), 1)]
    expected += [torch.stack((x, y), -1), *x.split(1, 1), *x.split([1, 2], 1)]
    for result, wanted in zip(results, expected, strict=True):
        assert result.equal(wanted)


def test_shapes_that_values_decide_are_known_for_constants_only() -> None:
    x = torch.randn(2, 6)
    graph = Graph()
    source = graph.feed(x)
    constant = graph("shapeOfTensor:name:", graph.feed(torch.empty(3, 4)), None)
    fed = graph.feed(torch.tensor([4, 3], dtype=torch.int32))
    static = graph("reshapeTensor:withShapeTensor:name:", source, constant, None)
    dynamic = graph("reshapeTensor:withShapeTensor:name:", source, fed, None)
    assert shape_of(static) == [3, 4]
    assert shape_of(dynamic) is None
    results = graph.run(static, dynamic, places=[torch.empty(3, 4), torch.empty(4, 3)])
    assert results[0].equal(x.reshape(3, 4))
    assert results[1].equal(x.reshape(4, 3))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_coordinates(axis: int) -> None:
    graph = Graph()
    shape = graph.feed(torch.tensor([2, 3], dtype=torch.int32))
    place = graph.feed(torch.tensor([axis], dtype=torch.int32))
    nodes = [
        graph("coordinateAlongAxis:withShape:name:", axis, [2, 3], None),
        graph("coordinateAlongAxis:withShapeTensor:name:", axis, shape, None),
        graph("coordinateAlongAxisTensor:withShapeTensor:name:", place, shape, None),
    ]
    expected = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[axis].int()
    for result in graph.run(*nodes, places=[torch.empty(2, 3, dtype=torch.int32) for _ in nodes]):
        assert result.equal(expected)


PADDING_MODES = {0: "constant", 1: "reflect", 3: "replicate", 5: "circular"}


@pytest.mark.parametrize("mode", PADDING_MODES)
def test_padding_and_its_gradient(mode: int) -> None:
    x = torch.randn(2, 4, 5, requires_grad=True)
    value = 0.5 if mode == 0 else 0.0
    expected = torch.nn.functional.pad(x, (1, 2), PADDING_MODES[mode], value)
    g = torch.randn_like(expected)
    graph = Graph()
    source = graph.feed(x.detach())
    pads = [0, 0, 1], [0, 0, 2]
    nodes = [
        graph(
            "padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:", source, mode, *pads, value, None
        ),
        graph(
            "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding:name:",
            *(graph.feed(g), source, mode, *pads, None),
        ),
    ]
    padded, gradient = graph.run(*nodes)
    assert padded.equal(expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, x, g)[0])


def test_symmetric_padding_repeats_the_edge() -> None:
    graph = Graph()
    selector = "padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:"
    node = graph(selector, graph.feed(torch.tensor([1.0, 2.0, 3.0])), 2, [2], [1], 0.0, None)
    assert graph.run(node)[0].tolist() == [2, 1, 1, 2, 3, 3]


def test_the_gradient_of_padding_has_the_unpadded_shape() -> None:
    graph = Graph()
    g, source = torch.randn(1, 3), torch.randn(1, 5)  # host code cuts the source, and names the whole one
    selector = "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding:name:"
    node = graph(selector, graph.feed(g), graph.feed(source), 3, [0, 0], [0, 1], None)
    expected = torch.stack([g[:, 0], g[:, 1] + g[:, 2]], 1)
    torch.testing.assert_close(graph.run(node, places=[torch.empty(1, 2)])[0], expected)
    with pytest.raises(MessageError, match="the padding is not smaller than the gradient"):
        graph(selector, graph.feed(g), graph.feed(source), 3, [0, 0], [0, 3], None)


@pytest.mark.parametrize(("starts", "ends", "strides"), [([0, 1], [2, 4], [1, 2]), ([1, 3], [2, 0], [1, -1])])
def test_the_gradient_of_a_slice(starts: list[int], ends: list[int], strides: list[int]) -> None:
    graph = Graph()
    places = torch.arange(8).reshape(2, 4)
    for axis, (start, end, step) in enumerate(zip(starts, ends, strides, strict=True)):
        places = places.index_select(axis, torch.arange(start, end, step))
    g = torch.randn(places.shape)
    shape = graph("shapeOfTensor:name:", graph.feed(torch.empty(2, 4)), None)
    selector = "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:"
    node = graph(selector, graph.feed(g), shape, starts, ends, strides, 0, 0, 0, None)
    expected = torch.zeros(8).index_put((places,), g).reshape(2, 4)
    assert graph.run(node)[0].equal(expected)


@pytest.mark.parametrize("block", [1, 2])
def test_pixel_shuffles(block: int) -> None:
    x = torch.randn(2, 4, 6, 8)
    graph = Graph()
    axes = 3, 2, 1, block, True, None
    nodes = [
        graph(
            f"{name}2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:", graph.feed(x), *axes
        )
        for name in ("depthToSpace", "spaceToDepth")
    ]
    shuffled, unshuffled = graph.run(*nodes)
    assert shuffled.equal(torch.pixel_shuffle(x, block))
    assert unshuffled.equal(torch.pixel_unshuffle(x, block))
    # The names as literals, for the list of tested selectors:
    # "depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"
    # "spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"


@pytest.mark.parametrize("axis", [0, -1])
def test_one_hot_tensors(axis: int) -> None:
    x = torch.tensor([2, 0, 1])
    graph = Graph()
    selector = "oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue:name:"
    node = graph(selector, graph.feed(x), 4, axis, DATA_TYPES[torch.float32], 2.0, -1.0, None)
    hot = torch.nn.functional.one_hot(x, 4).float() * 3 - 1
    assert graph.run(node)[0].equal(hot.movedim(-1, axis))


@pytest.mark.parametrize(("axis", "batches"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2)])
def test_gathers_of_rows(axis: int, batches: int) -> None:
    x = torch.randn(2, 3, 4)
    indices = torch.randint(0, 2, (*x.shape[:batches], 2, 2), dtype=torch.int32)
    graph = Graph()
    selector = "gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:"
    node = graph(selector, graph.feed(x), graph.feed(indices), axis, batches, None)

    def gathered(rows: Tensor, places: Tensor, at: int) -> Tensor:
        shape = (*rows.shape[:at], *places.shape, *rows.shape[at + 1 :])
        return rows.index_select(at, places.flatten().long()).reshape(shape)

    def batched(rows: Tensor, places: Tensor, depth: int) -> Tensor:
        if depth == 0:
            return gathered(rows, places, axis - batches)
        return torch.stack([batched(r, p, depth - 1) for r, p in zip(rows, places, strict=True)])

    assert graph.run(node)[0].equal(batched(x, indices, batches))


def test_gathers_in_batches_of_nothing_and_of_rows_that_do_not_exist() -> None:
    graph = Graph()
    selector = "gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:"
    x, places = torch.randn(2, 3, 4), torch.tensor([[2, 3], [-1, 0]], dtype=torch.int32)
    rows, none = (graph(selector, graph.feed(x), graph.feed(which), 1, 1, None) for which in (places, places[:, :0]))
    gathered, nothing = graph.run(rows, none)
    assert gathered.equal(torch.stack([torch.stack([x[0, 2], x[0, 2] * 0]), torch.stack([x[1, 0] * 0, x[1, 0]])]))
    assert nothing.shape == (2, 0, 4)


def test_gathers_along_an_axis() -> None:
    x, indices = torch.randn(3, 4), torch.randint(0, 3, (2, 4), dtype=torch.int32)
    graph = Graph()
    selector = "gatherAlongAxis:withUpdatesTensor:indicesTensor:name:"
    node = graph(selector, 0, graph.feed(x), graph.feed(indices), None)
    assert graph.run(node)[0].equal(x.gather(0, indices.long()))


@pytest.mark.parametrize("outside", [-1, 3])
def test_out_of_bounds_reads_are_zero_and_writes_are_dropped(outside: int) -> None:
    x, updates = torch.randn(3, 2), torch.randn(2, 2)
    rows = torch.tensor([outside, 1], dtype=torch.int32)
    graph = Graph()
    fed = graph.feed(x), graph.feed(rows)
    along = graph.feed(rows[:, None].expand(2, 2).contiguous())
    nodes = [
        graph("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:", *fed, 0, 0, None),
        graph("gatherAlongAxis:withUpdatesTensor:indicesTensor:name:", 0, fed[0], along, None),
    ]
    selector = "scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode:name:"
    nodes += [graph(selector, fed[0], graph.feed(updates), fed[1], 0, mode, None) for mode in (0, 6)]
    gathered, along_axis, added, replaced = graph.run(*nodes)
    assert gathered.equal(torch.stack([torch.zeros(2), x[1]]))
    assert along_axis.equal(gathered)
    assert added.equal(torch.stack([x[0], x[1] + updates[1], x[2]]))
    assert replaced.equal(torch.stack([x[0], updates[1], x[2]]))


# MPSGraphScatterMode, and the name of what torch's scatter_reduce does.
SCATTERS = {0: "sum", 2: "prod", 4: "amin", 5: "amax"}


@pytest.mark.parametrize("mode", SCATTERS)
def test_scatters_with_a_reduction(mode: int) -> None:
    data, updates = torch.randn(4, 3), torch.randn(2, 3)
    indices, rows = torch.randint(0, 4, (2, 3), dtype=torch.int32), torch.tensor([1, 1], dtype=torch.int32)
    graph = Graph()
    fed = [graph.feed(t) for t in (data, updates)]
    nodes = [
        graph(
            "scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:",
            0,
            *fed,
            graph.feed(indices),
            mode,
            None,
        ),
        graph(
            "scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode:name:", *fed, graph.feed(rows), 0, mode, None
        ),
        graph(
            "scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode:name:",
            *(*fed, graph.feed(rows.unsqueeze(1)), 0, mode, None),
        ),
    ]
    results = graph.run(*nodes)
    whole = rows.long().unsqueeze(1).expand(2, 3)
    torch.testing.assert_close(results[0], data.scatter_reduce(0, indices.long(), updates, SCATTERS[mode]))
    torch.testing.assert_close(results[1], data.scatter_reduce(0, whole, updates, SCATTERS[mode]))
    torch.testing.assert_close(results[2], results[1])


def test_scatters_that_subtract_or_replace() -> None:
    data, updates = torch.randn(4), torch.randn(2)
    indices = torch.tensor([3, 1], dtype=torch.int32)
    graph = Graph()
    fed = graph.feed(data), graph.feed(updates), graph.feed(indices)
    selector = "scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:"
    results = graph.run(*(graph(selector, 0, *fed, mode, None) for mode in (1, 6)))
    torch.testing.assert_close(results[0], data.index_add(0, indices.long(), -updates))
    assert results[1].equal(data.index_copy(0, indices.long(), updates))


def test_scatters_into_zeros() -> None:
    updates, rows = torch.randn(3, 2), torch.tensor([2, 0, 2], dtype=torch.int32)
    places = torch.tensor([[0, 1], [1, 2]], dtype=torch.int32)
    graph = Graph()
    nodes = [
        graph(
            "scatterWithUpdatesTensor:indicesTensor:shape:axis:mode:name:",
            *(graph.feed(updates), graph.feed(rows), [4, 2], 0, 0, None),
        ),
        graph(
            "scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode:name:",
            *(graph.feed(torch.tensor([5.0, 6.0])), graph.feed(places), [2, 3], 0, 6, None),
        ),
    ]
    results = graph.run(*nodes)
    assert results[0].equal(torch.zeros(4, 2).index_add(0, rows.long(), updates))
    assert results[1].tolist() == [[0, 5, 0], [0, 0, 6]]


def test_an_operation_that_fails_is_named_with_its_reason() -> None:
    graph = Graph()
    with pytest.raises(MessageError, match=r"MPSGraph, simulated: reshape: shape '\[5\]' is invalid"):
        graph("reshapeTensor:withShape:name:", graph.feed(torch.ones(2, 3)), [5], None)
    with pytest.raises(MessageError, match="'concat' op requires the same element type"):
        graph(
            "concatTensor:withTensor:dimension:name:",
            graph.feed(torch.ones(2)),
            graph.feed(torch.ones(2).int()),
            0,
            None,
        )
