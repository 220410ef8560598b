"""The limits of MPSGraph: each rule of limits.yaml holds on its versions of macOS, and on no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional

from mpsmith.simulator.mpsgraph.limits import Limit, limits
from support.graph_calls import DATA_TYPES, Graph, buffer_of, described
from support.objc_messages import MessageError, Ref, array, class_named, frameworks, made, send

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

FLOAT, INT32 = DATA_TYPES[torch.float32], DATA_TYPES[torch.int32]
ARRAY = "descriptorWithDataType:shape:"
Answer = tuple[Tensor, Tensor]
"""What MPSGraph answers, and what is right."""


@pytest.fixture(autouse=True)
def newest_macos() -> Iterator[None]:
    yield
    set_macos("26.0")


def set_macos(version: str) -> None:
    frameworks().foundation_simulator_set_macos(*map(int, version.split(".")))


def run(selector: str, x: Tensor, *arguments: object) -> Tensor:
    graph = Graph()
    return graph.run(graph(selector, graph.feed(x), *arguments, None))[0]  # type: ignore[arg-type]


def scan() -> Answer:
    x = torch.arange(32.0).reshape(2, 2, 2, 2, 2)
    return run("cumulativeSumWithTensor:axis:name:", x, 0), x.cumsum(0)


def sort() -> Answer:
    x = torch.arange(32.0).reshape(2, 2, 2, 2, 2)
    return run("argSortWithTensor:axis:descending:name:", x, -5, True), (-x).argsort(0).int()


def truth() -> Answer:
    x = torch.arange(6).reshape(1, 3, 2, 1, 1, 1) > 3
    return run("reductionOrWithTensor:axis:name:", x, 1), x.any(1, keepdim=True)


def outer_transform() -> Answer:
    x = torch.randn(2, 1, 1, 1, 2, 2, dtype=torch.complex64)
    fft = Ref(send(class_named("MPSGraphFFTDescriptor"), "descriptor"))
    return run("fastFourierTransformWithTensor:axes:descriptor:name:", x, [1, 2], fft), torch.fft.fftn(x, dim=(1, 2))


def product(*shapes: tuple[int, ...]) -> Answer:
    x, y = (torch.ones(shape) for shape in shapes)
    graph = Graph()
    node = graph("matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:", graph.feed(x), graph.feed(y), None)
    return graph.run(node)[0], x @ y


def product_and_sum() -> Answer:
    x, y, added = torch.arange(65_537.0).reshape(-1, 1, 1), torch.ones(1, 1, 1), torch.zeros(1, 1, 1)
    place = torch.full((65_537, 1, 1), -1.0)
    arrays = []
    for tensor in (x, y, added, place):
        descriptor = Ref(send(class_named("MPSNDArrayDescriptor"), ARRAY, FLOAT, list(tensor.shape)))
        arrays.append(made("MPSNDArray", "initWithBuffer:offset:descriptor:", buffer_of(tensor), 0, descriptor))
    kernel = made("MPSNDArrayMatrixMultiplication", "initWithDevice:sourceCount:", None, 3)
    selector = "encodeToCommandEncoder:commandBuffer:sourceArrays:destinationArray:"
    send(kernel, selector, None, None, array(arrays[:3]), arrays[3])
    return place.flatten()[[0, 1, 65_536]], torch.tensor([0.0, 1.0, 65_536.0])


CONVOLUTION = {"strideInX": 1, "strideInY": 1, "dilationRateInX": 1, "dilationRateInY": 1, "groups": 1}


def convolution() -> Answer:
    x, weights = torch.ones(1, 1, 1, 1), torch.arange(65_538.0).reshape(-1, 1, 1, 1)
    graph = Graph()
    window = described("MPSGraphConvolution2DOpDescriptor", **CONVOLUTION, weightsLayout=2)
    selector = "convolution2DWithSourceTensor:weightsTensor:descriptor:name:"
    y = graph.run(graph(selector, graph.feed(x), graph.feed(weights), window, None))[0]
    return y.flatten()[[0, 1, 2, 65_536, 65_537]], torch.tensor([0.0, 1, 2, 65_536, 65_537])


def gradient_of_filters() -> Answer:
    x = g = torch.ones(65_538, 1, 1, 1)
    graph = Graph()
    window = described("MPSGraphConvolution2DOpDescriptor", **CONVOLUTION, weightsLayout=2)
    selector = "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    shape = [1, 1, 1, 1]
    node = graph(selector + "forwardConvolutionDescriptor:name:", graph.feed(g), graph.feed(x), shape, window, None)
    return graph.run(node)[0], torch.full((1, 1, 1, 1), 65_538.0)


def maximum() -> Answer:
    x = torch.tensor([1.0, float("nan"), 3.0])
    return run("reductionArgMaximumWithTensor:axis:name:", x, 0), torch.tensor([1], dtype=torch.int32)


def odd_transform() -> Answer:
    signal = torch.linspace(0, 1, 5)
    descriptor = described("MPSGraphFFTDescriptor", inverse=1, scalingMode=1, roundToOddHermitean=1)
    return run("HermiteanToRealFFTWithTensor:axes:descriptor:name:", torch.fft.rfft(signal), [0], descriptor), signal


def corners() -> Answer:
    x = torch.full((1, 1, 1, 2), 4.0)
    graph = Graph()
    size = graph("constantWithData:shape:dataType:", data_of_whole_numbers(3, 2), [2], INT32)
    selector = "resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout:name:"
    node = graph(selector, graph.feed(x), size, 0, 1, 0, None)
    return graph.run(node)[0], functional.interpolate(x, (3, 2), mode="bilinear", align_corners=True)


def data_of_whole_numbers(*values: int) -> Ref:
    tensor = torch.tensor(values, dtype=torch.int32)
    return Ref(send(class_named("NSData"), "dataWithBytes:length:", Ref(tensor.data_ptr()), tensor.nbytes))


def truth_values() -> Answer:
    x = torch.ones(130, dtype=torch.bool)
    graph = Graph()
    sums = graph("cumulativeSumWithTensor:axis:name:", graph.feed(x), 0, None)
    wide = graph("castTensor:toType:name:", sums, INT32, None)
    return graph.run(wide)[0][125:], x.cumsum(0).int()[125:]


def scatter() -> Answer:
    x, places = torch.zeros(2, 3, 1), torch.tensor([2, 0]).reshape(2, 1, 1)
    graph = Graph()
    inputs = graph.feed(x), graph.feed(torch.ones(2, 1, 1)), graph.feed(places.int())
    selector = "scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:"
    return graph.run(graph(selector, 1, *inputs, 6, None))[0], x.scatter(1, places, 1.0)


def large_strides(*shape: int) -> Answer:
    storage = torch.arange(2.0)
    descriptor = Ref(send(class_named("MPSNDArrayDescriptor"), ARRAY, FLOAT, list(shape)))
    whole = made("MPSNDArray", "initWithBuffer:offset:descriptor:", buffer_of(storage), 0, descriptor)
    view = Ref(send(whole, "arrayViewWithShape:strides:", [1, 1, 2], [65_537, 32_769, 1]))
    back = torch.zeros(1, 1, 2)
    send(view, "readBytes:strideBytes:", Ref(back.data_ptr()), None)
    return back, storage.reshape(1, 1, 2)


def pooling() -> Answer:
    x = torch.arange(24.0).reshape(1, 1, 4, 6)
    window = {"kernelWidth": 1, "kernelHeight": 1, "strideInX": 2, "strideInY": 2, "ceilMode": 1}
    window |= {"dilationRateInX": 1, "dilationRateInY": 1, "returnIndicesMode": 2, "returnIndicesDataType": INT32}
    descriptor = described("MPSGraphPooling2DOpDescriptor", **window)
    graph = Graph()
    selector = "maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:"
    nodes = graph.several(selector, graph.feed(x), descriptor, None)
    return graph.run(*nodes)[0], functional.max_pool2d(x, 1, 2, ceil_mode=True)


def elements() -> Answer:
    graph = Graph()
    x = graph("placeholderWithShape:dataType:name:", [1 << 16, (1 << 15) + 1], FLOAT, None)
    return torch.tensor(bool(graph("identityWithTensor:name:", x, None).address)), torch.tensor(True)


def conjugate() -> Answer:
    x = torch.tensor([1 + 2j])
    return run("conjugateWithTensor:name:", x), x.conj().resolve_conj()


def strided_view() -> Answer:
    x = torch.arange(6.0)
    descriptor = Ref(send(class_named("MPSNDArrayDescriptor"), ARRAY, FLOAT, [6]))
    whole = made("MPSNDArray", "initWithBuffer:offset:descriptor:", buffer_of(x), 0, descriptor)
    view = Ref(send(whole, "arrayViewWithShape:strides:", array([3, 1]), array([2, 1])))
    return torch.tensor(send(view, "numberOfDimensions")), torch.tensor(2)


NAN = float("nan")
CALLS: dict[str, tuple[Callable[[], Answer], list[object] | str]] = {
    "scan-of-an-outer-axis": (scan, "cumulativeSum, axis from the end 5: MPSNDArrayScan only"),
    "sort-of-an-outer-axis": (sort, "argSort, axis from the end 5: MPSNDArraySort only"),
    "truth-of-an-outer-axis": (truth, "reductionOr, axis from the end 5: runtime canonicalization"),
    "transform-of-an-outer-axis": (outer_transform, "fastFourierTransform, axis from the end 5: original module"),
    "product-of-five-dimensions": (
        lambda: product((1, 1, 2, 2, 3), (3, 2)),
        "matrixMultiplication, rank 5: New volume",
    ),
    "product-of-long-rows": (lambda: product((16, 32_767), (32_767, 16)), [[NAN] * 16] * 16),
    "product-and-sum-of-many-matrices": (product_and_sum, [65_536.0, 1.0, 0.0]),
    "convolution-to-many-channels": (convolution, [65_536.0, 65_537.0, 2.0, 0.0, 0.0]),
    "gradient-of-filters-over-many-images": (gradient_of_filters, [[[[2.0]]]]),
    "maximum-passes-over-nan": (maximum, [2]),
    "transform-to-odd-length": (odd_transform, [0.0, 1.0, 0.75, 0.5, 0.25]),
    "corners-of-one-element": (corners, [[[[NAN] * 2] * 3]]),
    "pooling-past-the-end": (pooling, "windows that begin past the end 1: destination values"),
    "scan-of-truth-values": (truth_values, [126, 127, -128, -127, -126]),
    "scatter-before-one-element": (scatter, "axis before one element 1: Rank of destination array"),
    "view-of-large-strides": (
        lambda: large_strides(1, 2),
        "product of two strides 2147581953: .*sliceDimension:withSubrange:",
    ),
    "tensor-of-many-elements": (elements, "identityWithTensor, elements 2147549184: product of dimension sizes"),
    "selectors-of-macos-14": (conjugate, "conjugateWithTensor, use 1: unrecognized selector"),
    "selectors-of-macos-15": (strided_view, "initWithBuffer:offset:descriptor:, use 1: unrecognized selector"),
}


def test_every_limit_has_a_call() -> None:
    assert list(limits()) == list(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_limit_holds_on_its_versions_of_macos_alone(name: str) -> None:
    limit = limits()[name]
    call, effect = CALLS[name]
    for version in ("12.9", *([limit.before] if limit.before else [])):
        set_macos(version)
        torch.testing.assert_close(*call())
    set_macos(limit.first)
    if isinstance(effect, str):
        with pytest.raises(MessageError, match=f"{effect}.*{limit.reports[0] if limit.reports else limit.header}"):
            call()
    else:
        answer = call()[0]
        expected = torch.tensor(effect, dtype=answer.dtype)
        torch.testing.assert_close(answer, expected, equal_nan=True)


def test_within_its_limits_an_operation_is_right() -> None:
    x = torch.arange(32.0).reshape(2, 2, 2, 2, 2)
    assert run("cumulativeSumWithTensor:axis:name:", x, 1).equal(x.cumsum(1))
    torch.testing.assert_close(*product((15, 32_767), (32_767, 16)))
    torch.testing.assert_close(*product((16, 32_766), (32_766, 16)))
    torch.testing.assert_close(*large_strides(2))


def test_a_limit_has_one_effect_and_known_fields() -> None:
    fields = {"operations": ["sort"], "measure": "rank", "above": 4, "from": "13.0", "reports": [1]}
    assert Limit.model_validate({**fields, "ends": "no"}).text == "no (macOS 13.0 and later: pytorch/pytorch #1)"
    for more in (
        {},
        {"ends": "no", "gives": "zeros"},
        {"ends": "no", "until": "14.0"},
        {"ends": "no", "measure": "size"},
        {"ends": "no", "reports": []},
        {"ends": "no", "header": "MPSGraphSonomaOps.h"},
    ):
        with pytest.raises(ValidationError):
            Limit.model_validate({**fields, **more})
