"""Calls for each kind of kernel of an element-wise operator: shapes and dtypes of the operands decide."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.sources.case_tensors import tensors_of
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.elementwise_kernels import ELEMENTWISE_KERNEL_FACTOR, with_shape
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.case import Case
from support.source_cases import cases_of_group

SOURCE = VariedSource(ELEMENTWISE_KERNEL_FACTOR, SchemaSource())


def cases(operator: str, dtype: str) -> dict[str, Case]:
    return {case.title: case for case in cases_of_group(SOURCE, operator, dtype)}


def operands(case: Case) -> list[tuple[torch.dtype, tuple[int, ...]]]:
    return [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors_of(case)]


def test_either_operand_is_repeated_or_of_one_element() -> None:
    made = cases("eq.Tensor", "int32")
    assert operands(made["left repeated"]) == [(torch.int32, (20,)), (torch.int32, (3, 20))]
    assert operands(made["right of one element int16"]) == [(torch.int32, (3, 20)), (torch.int16, (1,))]
    assert operands(made["right int16"]) == [(torch.int32, (3, 20)), (torch.int16, (3, 20))]
    assert tensors_of(made["left transposed, right int16"])[0].stride() == (1, 3)


def test_floating_point_has_kernels_of_several_elements_a_thread() -> None:
    made = cases("exp", "float32")
    assert operands(made["262,147 elements"]) == [(torch.float32, (262_147,))]
    assert "262,147 elements" in cases("exp", "int64")  # whose results are floating point
    assert "262,147 elements" not in cases("neg", "int64")


def test_main_dtypes_have_further_matrices_whose_other_side_is_narrower() -> None:
    made = cases_of_group(SOURCE, "mul.Tensor", "float32")
    pairs = [operands(case) for case in made if case.title == "left repeated float16"]
    assert [[dtype for dtype, _ in pair] for pair in pairs] == [
        [torch.float16, torch.float32],
        *[[torch.float32, torch.float16]] * 3,
    ]
    assert pairs[0][1][1] == (3, 20)
    assert pairs[1] == [(torch.float32, (8,)), (torch.float16, (5, 8))]


def test_words_and_untagged_gradients_have_kernels_too() -> None:
    assert {"rounding_mode trunc, right repeated", "rounding_mode floor, right repeated"} & set(
        cases("div.Tensor_mode", "float32")
    )
    assert "approximate tanh, transposed" in cases("gelu", "float16")
    assert "left repeated" in cases("hardswish_backward", "float16")


def test_a_result_of_another_dtype_is_contiguous_and_transposed() -> None:
    made = cases("exp", "float32")
    assert made["out= float16"].kwargs["out"].dtype is torch.float16
    assert made["out= float16 transposed"].kwargs["out"].stride() == (1, 3)


def test_calls_that_the_cpu_refuses_are_not_tried() -> None:
    assert cases("neg", "int32") == {}  # takes no out= of another dtype


def test_a_factor_has_its_own_kernels() -> None:
    assert cases("add.Tensor", "float32")["alpha 2, left repeated"].kwargs["alpha"] == 2


def test_only_pointwise_functional_overloads_are_varied() -> None:
    operators = {key.operator for key in SOURCE.groups()}
    assert {"exp", "add.Tensor"} <= operators
    assert not {"exp_", "exp.out", "mm", "sum"} & operators


def test_a_shape_is_filled_with_the_values_in_their_order() -> None:
    assert with_shape(torch.tensor([1, 2, 3]).expand(2, 3), (4,)).tolist() == [1, 2, 3, 1]


def test_torch_keeps_its_overloads() -> None:
    """torch's C++ code holds them without a reference; a second object in place of the first frees that one."""
    packet = torch.ops.aten.special_hermite_polynomial_h
    before = [getattr(packet, name) for name in packet.overloads()]
    assert any("out= float16" in title for title in cases("special_hermite_polynomial_h.x_scalar", "int8"))
    assert all(getattr(packet, overload._overloadname) is overload for overload in before)
