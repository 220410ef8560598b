"""The stand-in's operations on each element, against torch on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.graph_calls import DATA_TYPES, Graph, dtype_of
from support.objc_messages import MessageError, Ref, Single, class_named, send

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SHAPES = ([5], [2, 3], [2, 1, 3, 2], [0, 3], [])
SPECIAL = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, -0.5, 1.5, 2.5, -2.5])

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "identityWithTensor:name:": lambda x: x,
    "exponentWithTensor:name:": torch.exp,
    "exponentBase2WithTensor:name:": torch.exp2,
    "exponentBase10WithTensor:name:": lambda x: 10**x,
    "logarithmWithTensor:name:": torch.log,
    "logarithmBase2WithTensor:name:": torch.log2,
    "logarithmBase10WithTensor:name:": torch.log10,
    "squareWithTensor:name:": torch.square,
    "squareRootWithTensor:name:": torch.sqrt,
    "reciprocalSquareRootWithTensor:name:": torch.rsqrt,
    "reverseSquareRootWithTensor:name:": torch.rsqrt,
    "reciprocalWithTensor:name:": torch.reciprocal,
    "absoluteWithTensor:name:": torch.abs,
    "absoluteSquareWithTensor:name:": lambda x: x.abs() ** 2,
    "negativeWithTensor:name:": torch.neg,
    "signWithTensor:name:": torch.sign,
    "signbitWithTensor:name:": torch.signbit,
    "ceilWithTensor:name:": torch.ceil,
    "floorWithTensor:name:": torch.floor,
    "roundWithTensor:name:": lambda x: torch.sign(x) * torch.floor(x.abs() + 0.5),
    "rintWithTensor:name:": torch.round,
    "sinWithTensor:name:": torch.sin,
    "cosWithTensor:name:": torch.cos,
    "tanWithTensor:name:": torch.tan,
    "sinhWithTensor:name:": torch.sinh,
    "coshWithTensor:name:": torch.cosh,
    "tanhWithTensor:name:": torch.tanh,
    "asinWithTensor:name:": torch.asin,
    "acosWithTensor:name:": torch.acos,
    "atanWithTensor:name:": torch.atan,
    "asinhWithTensor:name:": torch.asinh,
    "acoshWithTensor:name:": torch.acosh,
    "atanhWithTensor:name:": torch.atanh,
    "notWithTensor:name:": torch.logical_not,
    "isInfiniteWithTensor:name:": torch.isinf,
    "isFiniteWithTensor:name:": torch.isfinite,
    "isNaNWithTensor:name:": torch.isnan,
    "erfWithTensor:name:": torch.erf,
    "truncateWithTensor:name:": torch.trunc,
    "reLUWithTensor:name:": torch.relu,
    "sigmoidWithTensor:name:": torch.sigmoid,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "addition": torch.add,
    "subtraction": torch.sub,
    "multiplication": torch.mul,
    "division": torch.div,
    "modulo": torch.fmod,
    "floorModulo": torch.remainder,
    "divisionNoNaN": lambda x, y: torch.where(y == 0, torch.zeros_like(y), x / y),
    "power": torch.pow,
    "minimum": torch.fmin,
    "maximum": torch.fmax,
    "minimumWithNaNPropagation": torch.minimum,
    "maximumWithNaNPropagation": torch.maximum,
    "equal": torch.eq,
    "notEqual": torch.ne,
    "lessThan": torch.lt,
    "lessThanOrEqualTo": torch.le,
    "greaterThan": torch.gt,
    "greaterThanOrEqualTo": torch.ge,
    "atan2": torch.atan2,
}
ON_BOOL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "logicalAND": lambda x, y: x & y,
    "logicalOR": lambda x, y: x | y,
    "logicalXOR": lambda x, y: x ^ y,
    "logicalNAND": lambda x, y: ~(x & y),
    "logicalNOR": lambda x, y: ~(x | y),
    "logicalXNOR": lambda x, y: ~(x ^ y),
    "subtraction": lambda x, y: x ^ y,
}
ON_WHOLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "bitwiseAND": torch.bitwise_and,
    "bitwiseOR": torch.bitwise_or,
    "bitwiseXOR": torch.bitwise_xor,
    "bitwiseLeftShift": torch.bitwise_left_shift,
    "bitwiseRightShift": torch.bitwise_right_shift,
}


def binary(name: str) -> str:
    return f"{name}WithPrimaryTensor:secondaryTensor:name:"


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("selector", UNARY)
def test_unary_operations_agree_with_torch(selector: str, dtype: torch.dtype) -> None:
    for x in [SPECIAL.to(dtype), *(torch.randn(shape, dtype=dtype) for shape in SHAPES)]:
        graph = Graph()
        (result,) = graph.run(graph(selector, graph.feed(x), None))
        close(result, UNARY[selector](x))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_broadcast_and_agree_with_torch(name: str, dtype: torch.dtype) -> None:
    pairs = [(SPECIAL.to(dtype), SPECIAL.flip(0).to(dtype))]
    pairs += [
        (torch.randn([2, 3], dtype=dtype), torch.randn(shape, dtype=dtype)) for shape in ([2, 3], [3], [2, 1], [1])
    ]
    for x, y in pairs:
        graph = Graph()
        (result,) = graph.run(graph(binary(name), graph.feed(x), graph.feed(y), None))
        close(result, BINARY[name](x, y))


@pytest.mark.parametrize("name", ON_BOOL)
def test_logical_operations_on_all_pairs(name: str) -> None:
    x, y = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    graph = Graph()
    (result,) = graph.run(graph(binary(name), graph.feed(x), graph.feed(y), None))
    assert result.equal(ON_BOOL[name](x, y))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("name", ON_WHOLE)
def test_bitwise_operations(name: str, dtype: torch.dtype) -> None:
    x, y = torch.tensor([1, 5, 12, 100], dtype=dtype), torch.tensor([1, 3, 0, 2], dtype=dtype)
    graph = Graph()
    complement = graph("bitwiseNOTWithTensor:name:", graph.feed(x), None)
    result, inverted = graph.run(graph(binary(name), graph.feed(x), graph.feed(y), None), complement)
    assert result.equal(ON_WHOLE[name](x, y))
    assert inverted.equal(~x)


def test_a_division_of_whole_numbers_truncates() -> None:
    x, y = torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])
    graph = Graph()
    (result,) = graph.run(graph("divisionWithPrimaryTensor:secondaryTensor:name:", graph.feed(x), graph.feed(y), None))
    assert result.tolist() == [3, -3, -3, 3]
    assert result.dtype == torch.int64


def test_complex_numbers() -> None:
    real, imaginary = torch.randn(2, 3), torch.randn(2, 3)
    graph = Graph()
    z = graph("complexTensorWithRealTensor:imaginaryTensor:name:", graph.feed(real), graph.feed(imaginary), None)
    conjugate = graph("conjugateWithTensor:name:", z, None)
    parts = graph("realPartOfTensor:name:", conjugate, None), graph("imaginaryPartOfTensor:name:", conjugate, None)
    number = DATA_TYPES[torch.complex64]
    constant = graph("constantWithRealPart:imaginaryPart:dataType:", 1.5, -2.0, number)
    wide = graph("constantWithRealPart:imaginaryPart:shape:dataType:", 0.5, 2.0, [2, 2], number)
    results = graph.run(z, *parts, constant, wide)
    assert results[0].equal(torch.complex(real, imaginary))
    assert results[1].equal(real)
    assert results[2].equal(-imaginary)
    assert results[3].tolist() == [1.5 - 2j]
    assert results[4].tolist() == [[0.5 + 2j] * 2] * 2


def test_selection_and_clamping() -> None:
    x, y, low, high = torch.randn(2, 3), torch.randn(3), torch.tensor([-0.5]), torch.tensor([0.5])
    predicate = torch.tensor([[True], [False]])
    graph = Graph()
    chosen = graph(
        "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:",
        *(graph.feed(predicate), graph.feed(x), graph.feed(y), None),
    )
    clamped = graph(
        "clampWithTensor:minValueTensor:maxValueTensor:name:", graph.feed(x), graph.feed(low), graph.feed(high), None
    )
    results = graph.run(chosen, clamped)
    assert results[0].equal(torch.where(predicate, x, y))
    assert results[1].equal(x.clamp(-0.5, 0.5))


@pytest.mark.parametrize("dtype", DATA_TYPES, ids=str)
def test_constants_and_casts_have_every_type(dtype: torch.dtype) -> None:
    graph = Graph()
    scalar = graph("constantWithScalar:dataType:", 1.0, DATA_TYPES[dtype])
    wide = graph("constantWithScalar:shape:dataType:", 1.0, [2, 0], DATA_TYPES[dtype])
    cast = graph("castTensor:toType:name:", graph.feed(torch.tensor([0.0, 1.0, 1.0])), DATA_TYPES[dtype], None)
    assert [dtype_of(node) for node in (scalar, wide, cast)] == [dtype] * 3
    results = graph.run(scalar, wide, cast)
    assert results[0].tolist() == [1]
    assert results[1].shape == (2, 0)
    assert results[2].equal(torch.tensor([0.0, 1.0, 1.0]).to(dtype))


def test_a_constant_of_bytes_has_as_many_as_its_shape_takes() -> None:
    numbers = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    data = Ref(send(class_named("NSData"), "dataWithBytes:length:", Ref(numbers.data_ptr()), numbers.nbytes))
    graph = Graph()
    node = graph("constantWithData:shape:dataType:", data, [2, 2], DATA_TYPES[torch.float32])
    assert graph.run(node)[0].equal(numbers)
    with pytest.raises(MessageError, match=r"a constant of shape \[3\] was given 16 bytes"):
        graph("constantWithData:shape:dataType:", data, [3], DATA_TYPES[torch.float32])


def test_a_placeholder_without_a_type_holds_floats() -> None:
    graph = Graph()
    assert dtype_of(graph("placeholderWithShape:name:", [2], None)) == torch.float32


ACTIVATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "reLUGradientWithIncomingGradient:sourceTensor:name:": lambda g, x: torch.where(x > 0, g, 0.0),
    "sigmoidGradientWithIncomingGradient:sourceTensor:name:": lambda g, x: g * x.sigmoid() * (1 - x.sigmoid()),
    "leakyReLUWithTensor:alphaTensor:name:": lambda x, alpha: torch.where(x > 0, x, x * alpha),
}


@pytest.mark.parametrize("selector", ACTIVATIONS)
def test_gradients_of_activations(selector: str) -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    graph = Graph()
    (result,) = graph.run(graph(selector, graph.feed(x), graph.feed(y), None))
    close(result, ACTIVATIONS[selector](x, y))


def test_softmax_and_leaky_relu_with_their_gradients() -> None:
    g, x = torch.randn(2, 3), torch.randn(2, 3, requires_grad=True)
    alpha = torch.tensor([0.25])
    graph = Graph()
    gradient, source = graph.feed(g), graph.feed(x.detach())
    nodes = [
        graph("softMaxWithTensor:axis:name:", source, -1, None),
        graph("softMaxGradientWithIncomingGradient:sourceTensor:axis:name:", gradient, source, 0, None),
        graph("leakyReLUWithTensor:alpha:name:", source, 0.25, None),
        graph(
            "leakyReLUGradientWithIncomingGradient:sourceTensor:alphaTensor:name:",
            *(gradient, source, graph.feed(alpha), None),
        ),
    ]
    results = graph.run(*nodes)
    close(results[0], x.detach().softmax(-1))
    close(results[1], torch.autograd.grad(x.softmax(0), x, g)[0])
    leaky = torch.nn.functional.leaky_relu(x, 0.25)
    close(results[2], leaky.detach())
    close(results[3], torch.autograd.grad(leaky, x, g)[0])


@pytest.mark.parametrize("shape", [[2, 3, 4], [1, 3, 1]])
def test_normalization_and_its_gradients(shape: list[int]) -> None:
    x = torch.randn(shape, dtype=torch.float32, requires_grad=True)
    gamma, beta = torch.randn(1, 3, 1, requires_grad=True), torch.randn(1, 3, 1, requires_grad=True)
    g, epsilon = torch.randn(shape), 1e-3
    mean, variance = x.mean((0, 2), keepdim=True), x.var((0, 2), correction=0, keepdim=True)
    expected = (x - mean) / (variance + epsilon).sqrt() * gamma + beta
    gradients = torch.autograd.grad(expected, (x, gamma, beta), g)
    graph = Graph()
    fed = [graph.feed(t.detach()) for t in (g, x, mean, variance, gamma, beta)]
    nodes = [
        graph(
            "normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon:name:",
            *(*fed[1:], Single(epsilon), None),
        ),
        graph(
            "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:gammaTensor:"
            "gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon:name:",
            *(*fed[:5], None, None, [0, 2], Single(epsilon), None),
        ),
        graph(
            "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
            "reductionAxes:epsilon:name:",
            *(*fed[:4], [0, 2], Single(epsilon), None),
        ),
        graph(
            "normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes:name:",
            *(fed[0], fed[1], [0, 2], None),
        ),
    ]
    for result, wanted in zip(graph.run(*nodes), (expected.detach(), *gradients), strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("left", "right"), [([2, 3], [3, 4]), ([5, 2, 3], [5, 3, 4]), ([5, 2, 3], [3, 4])])
def test_matrix_multiplication(left: list[int], right: list[int]) -> None:
    x, y = torch.randn(left), torch.randn(right)
    graph = Graph()
    selector = "matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:"
    (result,) = graph.run(graph(selector, graph.feed(x), graph.feed(y), None))
    close(result, x @ y)


def test_a_matrix_of_floats_times_one_of_halves() -> None:
    x, y, selector = (
        torch.randn(2, 3),
        torch.randn(3, 4).half(),
        "matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:",
    )
    graph = Graph()
    (result,) = graph.run(graph(selector, graph.feed(x), graph.feed(y), None))
    close(result, x @ y.float())
    with pytest.raises(MessageError, match="requires the same element type"):
        graph(selector, graph.feed(y.T), graph.feed(x.T), None)


def test_operands_of_two_types_are_an_error_that_names_both() -> None:
    graph = Graph()
    x, y = graph.feed(torch.ones(2)), graph.feed(torch.ones(2, dtype=torch.int32))
    with pytest.raises(MessageError, match=r"'addition' op requires the same element type .* not Float and Int"):
        graph("additionWithPrimaryTensor:secondaryTensor:name:", x, y, None)
