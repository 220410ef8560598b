"""The stand-in's convolutions, pooling, resizing and sampling, against torch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from support.graph_calls import DATA_TYPES, Graph, described
from support.objc_messages import Ref, class_named, send

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

NCHW, NHWC, OIHW, HWIO, CHW, NCDHW, OIDHW = 0, 1, 2, 3, 4, 7, 9
INT32 = DATA_TYPES[torch.int32]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_convolutions_over_two_dimensions(groups: int, last: bool) -> None:
    x = torch.randn(2, 4, 7, 6, requires_grad=True)
    weights = torch.randn(6, 4 // groups, 3, 2, requires_grad=True)
    expected = functional.conv2d(x, weights, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=groups)
    g = torch.randn_like(expected)
    descriptor = described(
        "MPSGraphConvolution2DOpDescriptor",
        **{
            "strideInX": 1,
            "strideInY": 2,
            "dilationRateInX": 2,
            "dilationRateInY": 1,
            "paddingTop": 1,
            "paddingBottom": 1,
        },
        **{"groups": groups, "dataLayout": NHWC if last else NCHW, "weightsLayout": HWIO if last else OIHW},
    )
    _compare_convolution("convolution2D", descriptor, (x, weights, expected, g), last)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_over_three_dimensions(groups: int) -> None:
    x = torch.randn(2, 4, 5, 6, 4, requires_grad=True)
    weights = torch.randn(6, 4 // groups, 2, 3, 2, requires_grad=True)
    expected = functional.conv3d(x, weights, stride=(1, 2, 1), padding=(1, 0, 1), dilation=(2, 1, 1), groups=groups)
    descriptor = described(
        "MPSGraphConvolution3DOpDescriptor",
        **{
            "strideInX": 1,
            "strideInY": 2,
            "strideInZ": 1,
            "dilationRateInX": 1,
            "dilationRateInY": 1,
            "dilationRateInZ": 2,
        },
        **{"paddingLeft": 1, "paddingRight": 1, "paddingFront": 1, "paddingBack": 1, "groups": groups},
        **{"dataLayout": NCDHW, "weightsLayout": OIDHW},
    )
    _compare_convolution("convolution3D", descriptor, (x, weights, expected, torch.randn_like(expected)), False)


def _compare_convolution(name: str, descriptor: Ref, tensors: tuple[Tensor, ...], last: bool) -> None:
    x, weights, expected, g = tensors
    gradients = torch.autograd.grad(expected, (x, weights), g)

    def data(t: Tensor) -> Tensor:
        return t.detach().movedim(1, -1).contiguous() if last else t.detach()

    def filters(t: Tensor) -> Tensor:
        return t.detach().permute(2, 3, 1, 0).contiguous() if last else t.detach()

    graph = Graph()
    source, kernel, incoming = graph.feed(data(x)), graph.feed(filters(weights)), graph.feed(data(g))
    data_gradient = f"{name}DataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    weights_gradient = f"{name}WeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    rest = "descriptor:name:" if name.startswith("depthwise") else "forwardConvolutionDescriptor:name:"
    nodes = [
        graph(f"{name}WithSourceTensor:weightsTensor:descriptor:name:", source, kernel, descriptor, None),
        graph(data_gradient + rest, incoming, kernel, list(data(x).shape), descriptor, None),
        graph(weights_gradient + rest, incoming, source, list(filters(weights).shape), descriptor, None),
    ]
    results = graph.run(*nodes)
    close(results[0], data(expected))
    close(results[1], data(gradients[0]))
    close(results[2], filters(gradients[1]))


@pytest.mark.parametrize("channel", [-4, -3])
def test_depthwise_convolutions_over_three_dimensions(channel: int) -> None:
    x = torch.randn(1, 3, 4, 6, 5, requires_grad=True)  # batch, channels, depth, height, width
    weights = torch.randn(3, 1, 1, 3, 2, requires_grad=True)
    expected = functional.conv3d(x, weights, stride=(1, 2, 1), padding=(0, 1, 0), groups=3)
    g = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, (x, weights), g)
    descriptor = described("MPSGraphDepthwiseConvolution3DOpDescriptor", channelDimensionIndex=channel)
    from_lists: dict[str, list[int]] = {
        "Strides": [1, 2, 1],
        "DilationRates": [1, 1, 1],
        "PaddingValues": [0, 0, 1, 1, 0, 0],
    }
    for name, numbers in from_lists.items():
        send(descriptor, f"set{name}:", numbers)

    def placed(t: Tensor) -> Tensor:
        return t.detach().movedim(-4, channel).contiguous()

    data, filters = placed(x[0]), placed(weights[:, 0])
    graph = Graph()
    fed = [graph.feed(t) for t in (data, filters, placed(g[0]))]
    nodes = [
        graph(
            "depthwiseConvolution3DWithSourceTensor:weightsTensor:descriptor:name:", fed[0], fed[1], descriptor, None
        ),
        graph(
            "depthwiseConvolution3DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:descriptor:name:",
            *(fed[2], fed[1], list(data.shape), descriptor, None),
        ),
        graph(
            "depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:descriptor:name:",
            *(fed[2], fed[0], list(filters.shape), descriptor, None),
        ),
    ]
    results = graph.run(*nodes)
    close(results[0], placed(expected[0]))
    close(results[1], placed(gradients[0][0]))
    close(results[2], placed(gradients[1][:, 0]))


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_pooling(ceil: bool, last: bool) -> None:
    x = torch.randn(2, 3, 8, 6, requires_grad=True)  # limits.yaml: pooling-past-the-end
    maxima, places = functional.max_pool2d(x, (3, 2), (2, 2), (1, 1), ceil_mode=ceil, return_indices=True)
    means = functional.avg_pool2d(x, (3, 2), (2, 2), (1, 1), ceil, count_include_pad=False)
    g = torch.randn_like(maxima)
    window: dict[str, Any] = {"kernelWidth": 2, "kernelHeight": 3, "strideInX": 2, "strideInY": 2, "ceilMode": ceil}
    window |= {
        "paddingLeft": 1,
        "paddingRight": 1,
        "paddingTop": 1,
        "paddingBottom": 1,
        "dataLayout": NHWC if last else NCHW,
    }
    descriptor = described("MPSGraphPooling2DOpDescriptor", returnIndicesMode=2, returnIndicesDataType=INT32, **window)

    def data(t: Tensor) -> Tensor:
        return t.detach().movedim(1, -1).contiguous() if last else t.detach()

    graph = Graph()
    source, incoming = graph.feed(data(x)), graph.feed(data(g))
    nodes = [
        graph("maxPooling2DWithSourceTensor:descriptor:name:", source, descriptor, None),
        *graph.several("maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:", source, descriptor, None),
        graph(
            "maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:", incoming, source, descriptor, None
        ),
        graph("avgPooling2DWithSourceTensor:descriptor:name:", source, descriptor, None),
        graph(
            "avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:", incoming, source, descriptor, None
        ),
    ]
    results = graph.run(*nodes)
    close(results[0], data(maxima))
    close(results[1], data(maxima))
    assert results[2].equal(data(places).int())
    close(results[3], data(torch.autograd.grad(maxima, x, g)[0]))
    close(results[4], data(means))
    close(results[5], data(torch.autograd.grad(means, x, g)[0]))


def test_pooling_with_more_padding_below_and_at_the_right() -> None:
    x = torch.randn(2, 3, 7, 6, requires_grad=True)
    window = {"kernelWidth": 2, "kernelHeight": 3, "strideInX": 2, "strideInY": 2, "paddingLeft": 1, "paddingTop": 1}
    window |= {"paddingRight": 2, "paddingBottom": 2, "includeZeroPadToAverage": True}
    descriptor = described("MPSGraphPooling2DOpDescriptor", returnIndicesMode=2, returnIndicesDataType=INT32, **window)
    maxima = functional.max_pool2d(functional.pad(x, (1, 2, 1, 2), value=float("-inf")), (3, 2), 2)
    means = functional.avg_pool2d(functional.pad(x, (1, 2, 1, 2)), (3, 2), 2)
    g = torch.randn_like(maxima)
    graph = Graph()
    source, incoming = graph.feed(x.detach()), graph.feed(g)
    nodes = [
        *graph.several("maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:", source, descriptor, None),
        graph(
            "maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:", incoming, source, descriptor, None
        ),
        graph("avgPooling2DWithSourceTensor:descriptor:name:", source, descriptor, None),
        graph(
            "avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:", incoming, source, descriptor, None
        ),
    ]
    results = graph.run(*nodes)
    close(results[0], maxima)
    assert (
        results[1]
        .flatten(2)
        .long()
        .equal(x.detach().flatten(2).unsqueeze(-2).eq(maxima.flatten(2).unsqueeze(-1)).int().argmax(-1))
    )
    close(results[2], torch.autograd.grad(maxima, x, g)[0])
    close(results[3], means)
    close(results[4], torch.autograd.grad(means, x, g)[0])


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_padding_is_below_all_whole_numbers(dtype: torch.dtype) -> None:
    x = torch.tensor([[[[-3, -7]]]], dtype=dtype)
    window = {"kernelWidth": 2, "kernelHeight": 1, "strideInX": 1, "strideInY": 1, "paddingRight": 1}
    descriptor = described("MPSGraphPooling2DOpDescriptor", **window)
    graph = Graph()
    node = graph("maxPooling2DWithSourceTensor:descriptor:name:", graph.feed(x), descriptor, None)
    assert graph.run(node)[0].tolist() == [[[[-3, -7]]]]


def test_places_past_the_end_count_as_padding() -> None:
    x = torch.randn(1, 1, 6, 6, requires_grad=True)  # the last window begins at 4, and ends at 7
    window = {"kernelWidth": 3, "kernelHeight": 3, "strideInX": 2, "strideInY": 2, "ceilMode": True}
    descriptor = described("MPSGraphPooling2DOpDescriptor", includeZeroPadToAverage=True, **window)
    means = functional.avg_pool2d(x, 3, 2, 0, True, True, divisor_override=9)
    graph = Graph()
    fed = [graph.feed(t) for t in (torch.ones_like(means).detach(), x.detach())]
    selector = "avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:"
    nodes = (
        graph("avgPooling2DWithSourceTensor:descriptor:name:", fed[1], descriptor, None),
        graph(selector, *fed, descriptor, None),
    )
    for result, expected in zip(graph.run(*nodes), (means, torch.autograd.grad(means.sum(), x)[0]), strict=True):
        close(result, expected)


def test_a_transposed_convolution_adds_more_to_its_output_than_its_stride() -> None:
    x, weights = torch.randn(1, 2, 4, 4), torch.randn(2, 3, 2, 3)
    expected = functional.conv_transpose2d(x, weights, stride=(3, 2), output_padding=(2, 3), dilation=4)
    steps = {"strideInX": 2, "strideInY": 3, "dilationRateInX": 4, "dilationRateInY": 4, "groups": 1}
    shape = list(expected.shape), described("MPSGraphConvolution2DOpDescriptor", **steps), None
    graph = Graph()
    selector = "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    node = graph(f"{selector}forwardConvolutionDescriptor:name:", graph.feed(x), graph.feed(weights), *shape)
    close(graph.run(node)[0], expected)


def test_a_pool_is_described_at_once() -> None:
    words = (
        "descriptorWithKernelWidth",
        "kernelHeight",
        "strideInX",
        "strideInY",
        "dilationRateInX",
        "dilationRateInY",
    )
    words += ("paddingLeft", "paddingRight", "paddingTop", "paddingBottom", "paddingStyle", "dataLayout")
    selector = "".join(f"{word}:" for word in words)
    descriptor = Ref(send(class_named("MPSGraphPooling2DOpDescriptor"), selector, *range(1, 11), 0, NHWC))
    named = ("kernelWidth", *words[1:])
    assert [send(descriptor, word) for word in named] == [*range(1, 11), 0, NHWC]


# Selector and its arguments around the images and the size; the mode of torch's interpolation.
RESIZES: list[tuple[str, str, list[int], dict[str, Any]]] = [
    ("Nearest", "nearestRoundingMode:", [3, False, False], {"mode": "nearest"}),
    ("Nearest", "nearestRoundingMode:", [0, True, False], {"mode": "nearest-exact"}),
    ("Bilinear", "", [True, False], {"mode": "bilinear"}),
    ("Bilinear", "", [False, True], {"mode": "bilinear", "align_corners": True}),
]


@pytest.mark.parametrize("size", [(3, 9), (10, 4), (6, 5), (1, 1)])
@pytest.mark.parametrize(("name", "rounding", "flags", "options"), RESIZES, ids=lambda part: str(part))
def test_resizing_by_sizes(
    name: str, rounding: str, flags: list[int], options: dict[str, Any], size: tuple[int, int]
) -> None:
    x = torch.randn(2, 3, 6, 5, requires_grad=True)
    expected = functional.interpolate(x, size, **options)
    g = torch.randn_like(expected)
    graph = Graph()
    source, incoming = graph.feed(x.detach()), graph.feed(g)
    wanted = graph("shapeOfTensor:name:", graph.feed(torch.empty(size)), None)
    nodes = [
        graph(
            f"resize{name}WithTensor:sizeTensor:{rounding}centerResult:alignCorners:layout:name:",
            source,
            wanted,
            *flags,
            NCHW,
            None,
        ),
        graph(
            f"resize{name}WithGradientTensor:input:{rounding}centerResult:alignCorners:layout:name:",
            incoming,
            source,
            *flags,
            NCHW,
            None,
        ),
    ]
    resized, gradient = graph.run(*nodes)
    close(resized, expected)
    close(gradient, torch.autograd.grad(expected, x, g)[0])


@pytest.mark.parametrize(
    ("mode", "flags", "options"),
    [
        (0, [True, False], {"mode": "nearest-exact"}),
        (1, [True, False], {"mode": "bilinear"}),
        (1, [False, True], {"mode": "bilinear", "align_corners": True}),
    ],
)
def test_resizing_as_macos_12_does(mode: int, flags: list[bool], options: dict[str, Any]) -> None:
    x = torch.randn(2, 3, 6, 5, requires_grad=True)
    expected = functional.interpolate(x, (4, 9), **options)
    g = torch.randn_like(expected)
    graph = Graph()
    source, incoming = graph.feed(x.detach()), graph.feed(g)
    wanted = graph("shapeOfTensor:name:", graph.feed(torch.empty(4, 9)), None)
    rest = (mode, *flags, NCHW, None)
    nodes = [
        graph("resizeTensor:size:mode:centerResult:alignCorners:layout:name:", source, [4, 9], *rest),
        graph("resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout:name:", source, wanted, *rest),
        graph("resizeWithGradientTensor:input:mode:centerResult:alignCorners:layout:name:", incoming, source, *rest),
    ]
    by_shape, by_tensor, gradient = graph.run(*nodes)
    close(by_shape, expected)
    close(by_tensor, expected)
    close(gradient, torch.autograd.grad(expected, x, g)[0])


@pytest.mark.parametrize(("name", "rounding"), [("Nearest", "nearestRoundingMode:"), ("Bilinear", "")])
def test_resizing_by_scales_and_offsets(name: str, rounding: str) -> None:
    x = torch.randn(2, 3, 6, 5, requires_grad=True)
    options: dict[str, Any] = {"mode": name.lower(), "scale_factor": (1.5, 2.4), "recompute_scale_factor": False}
    expected = functional.interpolate(x, **options)
    g = torch.randn_like(expected)
    offsets = [0.25, 0.7] if name == "Bilinear" else [0.0, 0.0]  # the centers of both images agree
    graph = Graph()
    source, incoming, scales = graph.feed(x.detach()), graph.feed(g), graph.feed(torch.tensor([1.5, 2.4, *offsets]))
    wanted = graph("shapeOfTensor:name:", graph.feed(torch.empty(expected.shape[2:])), None)
    mode = [3] if rounding else []
    nodes = [
        graph(
            f"resize{name}WithTensor:sizeTensor:scaleOffsetTensor:{rounding}layout:name:",
            source,
            wanted,
            scales,
            *mode,
            NCHW,
            None,
        ),
        graph(
            f"resize{name}WithGradientTensor:input:scaleOffsetTensor:{rounding}layout:name:",
            incoming,
            source,
            scales,
            *mode,
            NCHW,
            None,
        ),
    ]
    resized, gradient = graph.run(*nodes)
    close(resized, expected)
    close(gradient, torch.autograd.grad(expected, x, g)[0])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(("padding", "named"), [(4, "zeros"), (3, "border")])
def test_sampling_at_a_grid(padding: int, named: str, corners: bool) -> None:
    x, grid = torch.randn(2, 3, 5, 4), torch.rand(2, 4, 6, 2) * 3 - 1.5
    graph = Graph()
    fed = graph.feed(x), graph.feed(grid)
    words = "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners:"
    nodes = [
        graph(
            f"{words}paddingMode:samplingMode:constantValue:name:",
            *fed,
            NCHW,
            True,
            False,
            corners,
            padding,
            1,
            0.0,
            None,
        ),
        graph(
            f"{words}paddingMode:nearestRoundingMode:constantValue:name:",
            *fed,
            NCHW,
            True,
            False,
            corners,
            padding,
            4,
            0.0,
            None,
        ),
    ]
    smooth, nearest = graph.run(*nodes)
    close(smooth, functional.grid_sample(x, grid, "bilinear", named, corners))
    close(nearest, functional.grid_sample(x, grid, "nearest", named, corners))
