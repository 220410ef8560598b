"""What MPSGraph does that is written nowhere, and the errors for what ends a process on a Mac."""

from __future__ import annotations

import re
from ctypes import c_void_p
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.cache import PACKAGE
from mpsmith.simulator.objc.graphs import graphs_run, loaded
from support import graph_calls
from support.graph_calls import DATA_TYPES, Graph, buffer_of, shape_of
from support.objc_messages import MessageError, Ref, array, class_named, dictionary, made, numbers_of, send

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

RUN = "encodeToCommandBuffer:feeds:targetOperations:resultsDictionary:executionDescriptor:"
INT32, FLOAT = DATA_TYPES[torch.int32], DATA_TYPES[torch.float32]
HEADER = PACKAGE / "simulator/mpsgraph/include/MetalPerformanceShadersGraph/MPSGraphOperations.h"
OPERATIONS = HEADER.read_text()


def declared_selectors() -> set[str]:
    """The selectors of all operations, with those of the header's macros."""
    selectors = {f"{name}:name:" for name in re.findall(r"^MPSGRAPH_UNARY\((\w+)\)", OPERATIONS, re.MULTILINE)}
    binary = re.findall(r"^MPSGRAPH_BINARY\((\w+)\)", OPERATIONS, re.MULTILINE)
    selectors |= {f"{name}WithPrimaryTensor:secondaryTensor:name:" for name in binary}
    for name in re.findall(r"^MPSGRAPH_REDUCTION\((\w+)\)", OPERATIONS, re.MULTILINE):
        selectors |= {f"{name}WithTensor:{word}:name:" for word in ("axis", "axes")}
    for declaration in re.findall(r"^- \([^)]*\)([^;{]*);", OPERATIONS, re.MULTILINE):
        selectors.add("".join(re.findall(r"(\w+:)\s*\(", declaration)))
    return selectors


def test_a_test_covers_every_declared_operation() -> None:
    paths = [*sorted(Path(__file__).parent.glob("test_graph_*.py")), Path(graph_calls.__file__)]
    texts = "\n".join(path.read_text() for path in paths)
    texts = re.sub(r'"\s*f?"', "", texts)  # literals that are joined
    tables = set(re.findall(r'^ {4}"(\w+)": ', texts, re.MULTILINE))
    # Selectors that tests put together from these words.
    stems = tables | {
        "convolution2D",
        "convolution3D",
        "depthToSpace",
        "spaceToDepth",
        "resizeNearest",
        "resizeBilinear",
    }
    stems.add("sampleGrid")

    def is_covered(selector: str) -> bool:
        return selector in texts or any(selector.startswith(stem) for stem in stems)

    selectors = declared_selectors()
    assert len(selectors) > 190
    assert sorted(selector for selector in selectors if not is_covered(selector)) == []


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16, torch.int8, torch.uint8])
def test_int32_goes_into_places_of_whole_numbers_and_float_into_bfloat16_alone(dtype: torch.dtype) -> None:
    graph = Graph()
    node = graph("identityWithTensor:name:", graph.feed(torch.tensor([1, 2], dtype=torch.int32)), None)
    assert graph.run(node, places=[torch.empty(2, dtype=dtype)])[0].tolist() == [1, 2]
    exact = graph("identityWithTensor:name:", graph.feed(torch.ones(2)), None)
    assert graph.run(exact, places=[torch.empty(2, dtype=torch.bfloat16)])[0].tolist() == [1, 1]
    for other, name in ((torch.float32, "Float"), (torch.bool, "Bool")):
        with pytest.raises(MessageError, match=f"the result of identityWithTensor has type Int, and its place {name}"):
            graph.run(node, places=[torch.empty(2, dtype=other)])


def test_a_result_is_broadcast_and_reshaped_into_its_place() -> None:
    graph = Graph()
    single = graph("identityWithTensor:name:", graph.feed(torch.tensor([7.0])), None)
    six = graph("identityWithTensor:name:", graph.feed(torch.arange(6.0)), None)
    results = graph.run(single, six, places=[torch.empty(2, 3), torch.empty(3, 2)])
    assert results[0].tolist() == [[7, 7, 7], [7, 7, 7]]
    assert results[1].tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(MessageError, match=r"has shape \[6\], and its place \[4\]"):
        graph.run(six, places=[torch.empty(4)])


def reduced(size: int, axis: int, operation: str = "softMax") -> tuple[Graph, Ref]:
    graph = Graph()
    return graph, graph(f"{operation}WithTensor:axis:name:", graph.feed(torch.eye(size)), axis, None)


@pytest.mark.parametrize(
    ("wanted", "difference"),
    [
        ((3, 0), "softMax with other arguments"),
        ((4, 1), "another type, shape or value of placeholder"),
        ((3, 1, "reductionSum"), "reductionSum in place of softMax"),
    ],
)
def test_a_graph_that_two_different_calls_share_is_an_error(wanted: tuple[Any, ...], difference: str) -> None:
    compare = loaded().mpsgraph_simulator_compare
    graph, node = reduced(3, 1)
    expected = torch.softmax(torch.eye(3), 1)
    compare(c_void_p(graph.ref.address), c_void_p(reduced(3, 1)[0].ref.address))
    assert torch.allclose(graph.run(node)[0], expected)
    compare(c_void_p(graph.ref.address), c_void_p(reduced(*wanted)[0].ref.address))
    with pytest.raises(MessageError, match=f"got the graph of another call out of the cache.*: {difference}"):
        graph.run(node)
    assert torch.allclose(graph.run(node)[0], expected)  # each call is compared with its own graph


def test_a_cast_to_the_same_type_makes_no_other_graph() -> None:
    graph, node = reduced(3, 1)
    fresh = Graph()
    source = fresh("castTensor:toType:name:", fresh.feed(torch.eye(3)), FLOAT, None)
    fresh("castTensor:toType:name:", fresh("softMaxWithTensor:axis:name:", source, 1, None), FLOAT, None)
    loaded().mpsgraph_simulator_compare(c_void_p(graph.ref.address), c_void_p(fresh.ref.address))
    torch.testing.assert_close(graph.run(node)[0], torch.softmax(torch.eye(3), 1))


def test_a_graph_that_is_used_often_is_compared_now_and_then() -> None:
    graph, _ = reduced(3, 1)
    address = c_void_p(graph.ref.address)
    assert not loaded().mpsgraph_simulator_compares(address)  # caches are not checked
    loaded().mpsgraph_simulator_check_caches(1)
    try:
        compared = [use for use in range(2, 300) if loaded().mpsgraph_simulator_compares(address) & 1]
    finally:
        loaded().mpsgraph_simulator_check_caches(0)
    assert compared == [*range(2, 65), 128, 256]


def test_a_result_in_a_gathered_copy_of_a_view_counts_as_lost() -> None:
    library = loaded()
    lost = library.mpsgraph_simulator_results_lost
    before = lost()
    graph, node = reduced(3, 1)
    place, copy = torch.empty(3, 3), torch.empty(3, 3)
    graph.run(node, places=[place])
    assert lost() == before
    # Host code's placeholder says so when it gathers a view; the data that it makes next are that copy.
    library.mpsgraph_simulator_note_gathered(c_void_p(copy.data_ptr()))
    results = dictionary([(node, graph_calls.data_of(copy))])
    send(graph.ref, RUN, None, dictionary([(n, graph_calls.data_of(t)) for n, t in graph.fed]), None, results, None)
    assert lost() == before + 1
    library.mpsgraph_simulator_note_gathered(c_void_p(copy.data_ptr()))
    graph.run(node, places=[place])  # the copy was fed, or dropped
    graph.run(node, places=[copy])  # its memory came again
    assert lost() == before + 1


def test_a_result_may_lie_where_an_input_was_fed() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    graph = Graph()
    source = graph.feed(x)
    reversed_, doubled = (
        graph("reverseTensor:axes:name:", source, [0], None),
        graph("additionWithPrimaryTensor:secondaryTensor:name:", source, source, None),
    )
    results = graph.run(reversed_, doubled, places=[x, torch.empty(3)])
    assert x.tolist() == [3, 2, 1]
    assert results[1].tolist() == [2, 4, 6]


def test_a_placeholder_takes_only_its_shape_and_type() -> None:
    graph = Graph()
    node = graph("identityWithTensor:name:", graph.feed(torch.ones(2), shape=[3]), None)
    with pytest.raises(MessageError, match=r"a placeholder of shape \[3\] was fed with data of shape \[2\]"):
        graph.run(node)
    graph = Graph()
    node = graph("identityWithTensor:name:", graph.feed(torch.ones(2)), None)
    graph.fed[0] = (graph.fed[0][0], torch.ones(2, dtype=torch.int32))
    with pytest.raises(MessageError, match="a placeholder of type Float was fed with Int"):
        graph.run(node)
    graph.fed.clear()
    with pytest.raises(MessageError, match=r"a placeholder of shape \[2\] was not fed"):
        graph.run(node)


def test_a_placeholder_of_unknown_length_takes_any() -> None:
    graph = Graph()
    source = graph.feed(torch.ones(2, 3), shape=[-1, 3])
    node = graph("reductionSumWithTensor:axis:name:", source, 1, None)
    assert shape_of(node) is None
    assert graph.run(node, places=[torch.empty(2, 1)])[0].tolist() == [[3], [3]]


def test_data_larger_than_its_buffer_is_an_error() -> None:
    x = torch.ones(3)
    buffer = buffer_of(x)
    with pytest.raises(MessageError, match=r"data of shape \[4\] and type Float takes 16 bytes, and its buffer has 12"):
        made("MPSGraphTensorData", "initWithMTLBuffer:shape:dataType:", buffer, [4], FLOAT)


# ------------------------------------------------------------------------------------------ arrays
def array_over(x: torch.Tensor, offset: int = 0) -> Ref:
    shape = [x.numel()]
    descriptor = Ref(send(class_named("MPSNDArrayDescriptor"), "descriptorWithDataType:shape:", FLOAT, shape))
    return made("MPSNDArray", "initWithBuffer:offset:descriptor:", buffer_of(x), offset, descriptor)


def test_a_view_of_an_array_has_strides_and_an_offset() -> None:
    storage = torch.arange(12.0)
    view = Ref(send(array_over(storage, offset=8), "arrayViewWithShape:strides:", [2, 3], [4, 1]))
    data = made("MPSGraphTensorData", "initWithMPSNDArray:", view)
    assert numbers_of(Ref(send(data, "shape"))) == [2, 3]
    back = torch.zeros(2, 3)
    send(view, "readBytes:strideBytes:", Ref(back.data_ptr()), None)
    assert back.equal(storage.as_strided((2, 3), (4, 1), 2))


def test_a_transposed_view_of_an_array() -> None:
    storage = torch.arange(6.0)
    view = Ref(send(array_over(storage), "arrayViewWithShape:strides:", [2, 3], [3, 1]))
    descriptor = Ref(send(view, "descriptor"))
    send(descriptor, "transposeDimension:withDimension:", 0, 1)
    turned = Ref(send(view, "arrayViewWithCommandBuffer:descriptor:aliasing:", None, descriptor, 1))
    assert [send(turned, "lengthOfDimension:", d) for d in (0, 1, 5)] == [2, 3, 1]
    back = torch.zeros(3, 2)
    send(turned, "readBytes:strideBytes:", Ref(back.data_ptr()), None)
    assert back.equal(storage.reshape(2, 3).t())


def test_a_slice_of_an_array() -> None:
    storage = torch.arange(12.0)
    view = Ref(send(array_over(storage), "arrayViewWithShape:strides:", [3, 4], [4, 1]))
    descriptor = Ref(send(view, "descriptor"))
    send(descriptor, "sliceDimension:withSubrange:", 0, 1, 2)  # the fields of the structure are passed like numbers
    send(descriptor, "sliceDimension:withSubrange:", 1, 2, 1)
    assert [send(descriptor, "lengthOfDimension:", d) for d in (0, 1)] == [2, 1]
    part = Ref(send(view, "arrayViewWithCommandBuffer:descriptor:aliasing:", None, descriptor, 1))
    back = torch.zeros(1, 2)
    send(part, "readBytes:strideBytes:", Ref(back.data_ptr()), None)
    assert back.equal(storage.reshape(3, 4)[2:3, 1:3])


def test_sets_and_removal_from_arrays() -> None:
    items = Ref(send(class_named("NSMutableArray"), "arrayWithArray:", array([3, 4, 3])))
    send(items, "removeObject:", Ref(number(3)))
    assert numbers_of(items) == [4]
    unique = Ref(send(class_named("NSMutableSet"), "new"))
    for _ in range(2):
        send(unique, "addObject:", Ref(number(4)))
    assert send(unique, "count") == 1
    assert send(unique, "containsObject:", Ref(number(4))) & 1
    assert not send(unique, "containsObject:", Ref(number(5))) & 1


def number(value: int) -> int:
    return int(send(class_named("NSNumber"), "numberWithLong:", value))


def test_views_beyond_the_buffer_or_without_a_last_stride_of_one_are_errors() -> None:
    storage = torch.arange(12.0)
    whole = array_over(storage, offset=8)
    with pytest.raises(MessageError, match=r"strides \[4, 1\] reaches beyond the 40 bytes of its array"):
        send(whole, "arrayViewWithShape:strides:", [3, 3], [4, 1])
    with pytest.raises(MessageError, match=r"takes strides that end with 1, not \[1, 4\]"):
        send(whole, "arrayViewWithShape:strides:", [3, 2], [1, 4])


@pytest.mark.parametrize("scales", [(1.0, 1.0), (2.0, 0.5)])
def test_the_product_of_arrays(scales: tuple[float, float]) -> None:
    x, y, z, product = torch.randn(2, 3), torch.randn(3, 4), torch.randn(2, 4), torch.empty(2, 4)
    sources = []
    for tensor in (x, y, z, product):
        shape = list(tensor.shape)
        descriptor = Ref(send(class_named("MPSNDArrayDescriptor"), "descriptorWithDataType:shape:", FLOAT, shape))
        sources.append(made("MPSNDArray", "initWithBuffer:offset:descriptor:", buffer_of(tensor), 0, descriptor))
    kernel = made("MPSNDArrayMatrixMultiplication", "initWithDevice:sourceCount:", None, 3)
    send(kernel, "setAlpha:", scales[0])
    send(kernel, "setBeta:", scales[1])
    selector = "encodeToCommandEncoder:commandBuffer:sourceArrays:destinationArray:"
    before = graphs_run()
    send(kernel, selector, None, None, array(sources[:3]), sources[3])
    assert graphs_run() == before + 1  # so that a case with it counts as host code
    torch.testing.assert_close(product, scales[0] * (x @ y) + scales[1] * z)


# ------------------------------------------------------------------------------------------ matrices
def matrix_over(x: torch.Tensor, data_type: int = FLOAT) -> Ref:
    matrices, rows, columns = x.shape
    size = x.element_size()
    selector = "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:"
    words = rows, columns, matrices, columns * size, rows * columns * size, data_type
    descriptor = Ref(send(class_named("MPSMatrixDescriptor"), selector, *words))
    return made("MPSMatrix", "initWithBuffer:descriptor:", buffer_of(x), descriptor)


def test_a_decomposition_and_its_solve() -> None:
    x, sides = torch.randn(2, 3, 3), torch.randn(2, 3, 2)
    factors, pivots, solution = torch.empty(2, 3, 3), torch.empty(2, 1, 3, dtype=torch.int32), torch.empty(2, 3, 2)
    status = torch.full((1,), 9, dtype=torch.int32)
    unsigned = DATA_TYPES[torch.int32]
    kernel = made("MPSMatrixDecompositionLU", "initWithDevice:rows:columns:", None, 3, 3)
    selector = "encodeToCommandBuffer:sourceMatrix:resultMatrix:pivotIndices:status:"
    places = matrix_over(factors), matrix_over(pivots, unsigned)
    send(kernel, selector, None, matrix_over(x), *places, buffer_of(status))
    expected = torch.linalg.lu_factor(x)
    torch.testing.assert_close(factors, expected.LU)
    assert pivots.squeeze(1).equal(expected.pivots - 1)
    assert status.tolist() == [0]
    solver = made("MPSMatrixSolveLU", "initWithDevice:transpose:order:numberOfRightHandSides:", None, False, 3, 2)
    selector = "encodeToCommandBuffer:sourceMatrix:rightHandSideMatrix:pivotIndices:solutionMatrix:"
    send(solver, selector, None, places[0], matrix_over(sides), places[1], matrix_over(solution))
    torch.testing.assert_close(solution, torch.linalg.solve(x, sides), rtol=1e-3, atol=1e-4)


def test_a_kernel_works_on_as_many_matrices_as_all_of_its_operands_have() -> None:
    x, factors, pivots = torch.randn(3, 2, 2), torch.zeros(3, 2, 2), torch.empty(1, 1, 2, dtype=torch.int32)
    kernel = made("MPSMatrixDecompositionLU", "initWithDevice:rows:columns:", None, 2, 2)
    selector = "encodeToCommandBuffer:sourceMatrix:resultMatrix:pivotIndices:status:"
    send(kernel, selector, None, matrix_over(x), matrix_over(factors), matrix_over(pivots, INT32), None)
    torch.testing.assert_close(factors[0], torch.linalg.lu_factor(x[0]).LU)
    assert not factors[1:].any()


def test_a_triangular_solve_takes_one_matrix_of_a_batch() -> None:
    x, sides = torch.eye(2) * 4 + torch.randn(3, 2, 2).tril(), torch.randn(3, 2, 1)
    selector = "initWithDevice:right:upper:transpose:unit:order:numberOfRightHandSides:alpha:"
    kernel = made("MPSMatrixSolveTriangular", selector, None, False, False, False, False, 2, 1, 1.0)
    selector = "encodeToCommandBuffer:sourceMatrix:rightHandSideMatrix:solutionMatrix:"
    expected = torch.linalg.solve_triangular(x, sides, upper=False)
    elsewhere, at_place = torch.zeros(3, 2, 1), sides.clone()
    send(kernel, selector, None, matrix_over(x), matrix_over(sides), matrix_over(elsewhere))
    send(kernel, selector, None, matrix_over(x), matrix_over(at_place), matrix_over(at_place))
    torch.testing.assert_close(elsewhere, torch.cat([expected[:1], torch.zeros(2, 2, 1)]))
    torch.testing.assert_close(at_place, torch.cat([expected[:1], sides[1:]]))


def test_a_matrix_beyond_its_buffer_is_an_error_and_a_batch_beyond_it_is_shortened() -> None:
    x = torch.randn(3, 2, 2)
    selector = "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:"
    descriptor = Ref(send(class_named("MPSMatrixDescriptor"), selector, 2, 2, 3, 8, 16, FLOAT))
    last = made("MPSMatrix", "initWithBuffer:offset:descriptor:", buffer_of(x), 32, descriptor)
    factors, pivots = torch.empty(1, 2, 2), torch.empty(1, 1, 2, dtype=torch.int32)
    kernel = made("MPSMatrixDecompositionLU", "initWithDevice:rows:columns:", None, 2, 2)
    selector = "encodeToCommandBuffer:sourceMatrix:resultMatrix:pivotIndices:status:"
    send(kernel, selector, None, last, matrix_over(factors), matrix_over(pivots, INT32), None)
    torch.testing.assert_close(factors[0], torch.linalg.lu_factor(x[2]).LU)
    with pytest.raises(MessageError, match="a matrix of 2 rows and 2 columns at byte 36 reaches beyond the 48 bytes"):
        made("MPSMatrix", "initWithBuffer:offset:descriptor:", buffer_of(x), 36, descriptor)


def test_a_singular_matrix_has_its_own_status() -> None:
    x, factors, pivots = torch.zeros(1, 2, 2), torch.empty(1, 2, 2), torch.empty(1, 1, 2, dtype=torch.int32)
    status = torch.zeros(1, dtype=torch.int32)
    kernel = made("MPSMatrixDecompositionLU", "initWithDevice:rows:columns:", None, 2, 2)
    selector = "encodeToCommandBuffer:sourceMatrix:resultMatrix:pivotIndices:status:"
    places = matrix_over(factors), matrix_over(pivots, INT32)
    send(kernel, selector, None, matrix_over(x), *places, buffer_of(status))
    assert status.tolist() == [-2]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_triangular_systems(upper: bool, transposed: bool, right: bool) -> None:
    x = torch.randn(2, 3, 3) + 4 * torch.eye(3)
    a = x.triu() if upper else x.tril()
    sides, solution = torch.randn(2, 3, 3), torch.empty(2, 3, 3)
    selector = "initWithDevice:right:upper:transpose:unit:order:numberOfRightHandSides:alpha:"
    kernel = made("MPSMatrixSolveTriangular", selector, None, right, upper, transposed, False, 3, 3, 2.0)
    send(kernel, "setBatchSize:", 2)
    selector = "encodeToCommandBuffer:sourceMatrix:rightHandSideMatrix:solutionMatrix:"
    send(kernel, selector, None, matrix_over(a), matrix_over(sides), matrix_over(solution))
    system = a.mT if transposed else a
    product = solution @ system if right else system @ solution
    torch.testing.assert_close(product, 2 * sides, rtol=1e-4, atol=1e-4)


def test_a_kernel_keeps_its_device_beside_the_fields_of_its_class() -> None:
    device = Ref(send(class_named("NSMutableArray"), "array"))
    for name in ("MPSMatrixDecompositionLU", "MPSMatrixSolveTriangular", "MPSNDArrayMatrixMultiplication"):
        kernel = made(name, "initWithDevice:", device)
        if name.startswith("MPSMatrix"):
            send(kernel, "setBatchStart:", 7)
            assert send(kernel, "batchStart") == 7
        assert send(kernel, "device") == device.address
        send(kernel, "release")
