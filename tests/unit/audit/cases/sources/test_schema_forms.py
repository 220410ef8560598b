"""Calls of overloads by name, varied as their functional forms are: which overloads, and in what."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.schema_forms import SCHEMA_FORM_FACTOR, functional_form, is_varied
from mpsmith.audit.model.case import Case
from support.source_cases import cases_of_group

VARIANTS = VariedSource(SCHEMA_FORM_FACTOR, SchemaSource())


def varied(operator: str, dtype: str = "float32") -> dict[str, Case]:
    return {case.title.removesuffix(", out= resized"): case for case in cases_of_group(VARIANTS, operator, dtype)}


@pytest.mark.parametrize(
    ("operator", "functional"),
    [
        ("topk.values", "aten::topk"),
        ("min.dim_min", "aten::min.dim"),
        ("bitwise_or.Tensor_out", "aten::bitwise_or.Tensor"),
        ("gelu_backward.grad_input", "aten::gelu_backward"),
        ("asinh_", None),
        ("topk", None),
    ],
)
def test_the_functional_form(operator: str, functional: str | None) -> None:
    assert functional_form(operator) == functional


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        ("tan.out", True),
        ("neg_", True),
        ("gelu_backward", True),
        ("topk", False),  # its cases are those of OpInfos
        ("geometric_", False),  # it draws
        ("_cummax_helper", False),  # it trusts what it gets
        ("sum.out", False),  # composed of sum.IntList_out
        ("resize_", False),
    ],
)
def test_which_overloads_are_varied(operator: str, wanted: bool) -> None:
    assert is_varied(operator) is wanted


def test_outs_are_fresh_and_fit_or_are_empty() -> None:
    cases = cases_of_group(VARIANTS, "topk.values")
    for case in cases:
        if case.title.startswith(("one element", "no dimension")):
            continue  # the CPU refuses them, as k is 3
        values, indices = case.kwargs["values"], case.kwargs["indices"]
        assert values.dtype in (case.args[0].dtype, torch.float32)  # the CPU refuses complex numbers
        assert indices.dtype is torch.int64
        assert values.shape == indices.shape
        assert values.numel() == 0 if "resized" in case.title else values.dim() == case.args[0].dim()
        assert case.errors_count
    assert any("resized" in case.title for case in cases)


def test_a_tensor_without_dimensions_is_tried_in_layouts_too() -> None:
    """The recorded call of logaddexp2.out has a number first: an expanded tensor there is a separate case."""
    expanded_first = [case for title, case in varied("logaddexp2.out").items() if title.startswith("tensor 0 expanded")]
    assert [0 in case.args[0].stride() and case.args[1].is_contiguous() for case in expanded_first] == [True]


def test_sizes_that_16_bits_do_not_count() -> None:
    cases = varied("tan.out")
    assert cases["empty"].args[0].shape[0] == 0
    assert cases["2,050 in the first dimension"].args[0].shape[0] == 2_050
    longest = max(case.args[0].numel() for case in cases.values())
    assert 131_073 <= longest <= 140_000


def test_small_values_in_turn() -> None:
    small = varied("tan.out")["near zero"].args[0].abs()
    assert bool((small[small != 0] < 1e-5).any())
    assert float(small.max()) < 2e-2


def test_a_backward_keeps_its_shapes_equal() -> None:
    cases = varied("gelu_backward.grad_input")
    sizes = {tuple(t.shape for t in case.args): title for title, case in cases.items() if ": (" in title}
    assert len(sizes) == 3
    assert all(first == second for first, second in sizes)


def test_views_of_complex_numbers() -> None:
    cases = varied("baddbmm_", "complex64")
    assert cases["tensor 0 conjugate view"].args[0].is_conj()
    assert cases["tensor 2 negative complex view"].args[2].is_neg()


def test_nothing_that_is_written_is_twice_in_memory() -> None:
    assert not any(0 in case.args[0].stride() for case in varied("baddbmm_").values() if case.args[0].numel() > 1)


def test_a_padding_index_among_the_indices() -> None:
    for title, case in varied("embedding_dense_backward").items():
        if title.startswith("padding index"):
            assert case.args[3] in case.args[1].flatten().tolist() or case.args[3] == 0
            break
    else:
        pytest.fail("no padding index")


def test_few_elements_are_made_more() -> None:
    assert varied("expm1.out")["nan"].args[0].shape == (2, 3, 4)


def test_one_element_with_dimensions_and_without() -> None:
    cases = varied("addcdiv.out")
    assert cases["one element"].args[0].numel() == 1
    assert cases["one element"].args[0].dim() > 0
    assert all(tensor.dim() == 0 for tensor in cases["no dimension"].args[:3])
    assert cases["5 dimensions"].args[1].dim() == 5
    mixed = next(case for title, case in cases.items() if title.startswith("no dimension, "))
    assert len({tensor.dtype for tensor in mixed.args[:3]}) == 2


def test_remembered_numbers_point_in_all_directions() -> None:
    turned = varied("angle.out", "complex64")["2,050 in the first dimension"].args[0]
    assert (turned.imag != 0).any()
    assert (turned.angle() > 0).any()
    assert (turned.angle() < 0).any()
    signed = varied("angle.out")["2,050 in the first dimension"].args[0]
    assert (signed < 0).any()
    assert (signed > 0).any()


def test_numbers_without_a_result_are_not_changed() -> None:
    assert (varied("sqrt.out")["2,050 in the first dimension"].args[0] >= 0).all()


def test_tensors_that_require_gradients_under_no_grad() -> None:
    case = varied("tan.out")["wanting gradients"]
    assert case.args[0].requires_grad
    assert case.call.__name__ == "aten::tan.out"
    result, _ = case.call(*case.args, **case.kwargs)  # refused where gradients are recorded
    assert not result.requires_grad


def test_tensors_of_a_call_together() -> None:
    cases = varied("addcmul_")
    together = cases["all in one storage"].args
    assert len({tensor.untyped_storage().data_ptr() for tensor in together[:3]}) == 1
    assert cases["all the same tensor"].args[0] is cases["all the same tensor"].args[2]  # torch allows it there
    alone = varied("put_").get("all the same tensor")
    assert alone is None or alone.args[0] is not alone.args[2]


def test_a_part_over_many_rows() -> None:
    cases = varied("reflection_pad3d_backward").items()
    (rows,) = [case.args[0] for title, case in cases if title.endswith(" rows") and title[0].isdigit()]
    assert rows.shape[0] > 1_024
    assert rows.numel() > 131_072


def test_the_sixth_tensor_in_layouts_and_dtypes() -> None:
    titles = varied("_native_batch_norm_legit")
    assert {"tensor 3 offset", "tensor 4 offset"} <= set(titles)
    assert any(
        title.startswith("tensor 3 float") or title.startswith("tensor 3 int") for title in varied("nll_loss_backward")
    )


def test_lists_that_are_written_are_nowhere_twice_in_memory() -> None:
    assert not any("expanded" in title and "tensor 4" in title for title in varied("_fused_adagrad_"))


def test_rows_with_gaps_between_them() -> None:
    padded = varied("gcd_", "int64")["tensor 0 padded rows"].args[0]
    assert padded.stride(-1) == 1
    assert not padded.is_contiguous()
