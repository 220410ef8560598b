"""The cases that one recorded call becomes when its arguments are changed."""

from __future__ import annotations

import math

import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources.arguments import (
    ARGUMENT_FACTOR,
    UNRELATED_REFUSALS,
    ArgumentChanges,
    chosen_dtypes,
    is_varied,
    may_vary,
    with_nan,
)
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.case import Case

X = torch.arange(6.0).reshape(2, 3)


def variations(name: str, *args: object) -> ArgumentChanges:
    return ArgumentChanges(f"aten::{name}", Case(SchemaCall(f"aten::{name}"), args))


def test_each_argument_of_topk_has_its_own_cases() -> None:
    titles = [case.title for case in variations("topk", X, 2).all()]
    assert titles[:11] == [
        "k=0",
        "k=1",
        "k=3",
        "k=-1",
        "dim=0",
        "dim=1",
        "dim=-2",
        "dim=2",
        "largest=False",
        "sorted=False",
        "largest=False, sorted=False",
    ]
    assert titles[-1] == "in a row: k=0, k=1, k=3, dim=0, dim=1, dim=-2, largest=False, sorted=False"


def test_only_calls_that_the_cpu_refuses_must_raise() -> None:
    expected = {case.title: case.errors_count for case in variations("topk", X, 2).all()}
    assert [title for title, refused in expected.items() if refused] == ["k=-1", "dim=2"]


def test_a_refusal_before_any_operator_says_nothing() -> None:
    assert UNRELATED_REFUSALS.search("\"cumsum\" not implemented for 'Half'")
    assert UNRELATED_REFUSALS.search(
        "aten::topk() Expected a value of type 'int' for argument 'k' but instead found type"
    )
    assert not UNRELATED_REFUSALS.search("Dimension out of range (expected to be in range of [-1, 0], but got 2)")


def test_calls_in_a_row_hold_the_base_call_at_both_ends_and_another_dtype() -> None:
    (case,) = variations("cumprod", X, 0).in_a_row()
    results = [result for result, _ in case.call(*case.args, **case.kwargs)]
    assert torch.equal(results[0], results[-1])
    assert results[-2].dtype is torch.bfloat16
    assert case.form == "in a row"


def test_numbers_near_each_other_follow_each_other() -> None:
    near = [case for case in variations("addcmul", X, X, X).all() if case.title.startswith("numbers near")]
    (case,) = near
    results = [result for result, _ in case.call(*case.args, **case.kwargs)]
    assert len(results) == 11
    assert [float(result[0, 1]) for result in results[:3]] == [1.5, 1.50048828125, 1.500030517578125]
    scaled = [float(result[1, 2]) for result in results[6:9]]
    assert scaled[0] != scaled[1] != scaled[2]


def test_a_factor_of_zero_meets_nan() -> None:
    batch = torch.ones(2, 2, 2)
    (case,) = [c for c in variations("baddbmm", batch, batch, batch).all() if c.title == "beta=0, NaN in self"]
    assert case.kwargs["beta"] == 0
    assert math.isnan(case.args[0][0, 0, 0])
    poisoned = with_nan(torch.ones(3))
    assert poisoned is not None
    assert poisoned.isnan().tolist() == [True, False, False]
    assert poisoned.isinf().tolist() == [False, False, True]
    assert with_nan(torch.ones(3, dtype=torch.int64)) is None


def test_overloads_that_draw_or_do_not_check_arguments_are_left_out() -> None:
    assert is_varied("topk")
    assert is_varied("addcmul.out")
    assert not is_varied("exp")
    assert not is_varied("bernoulli_.float")
    assert not is_varied("resize_")
    assert not is_varied("_cummax_helper")
    assert not is_varied("linalg_lstsq.out")
    assert not is_varied("_weight_norm_interface")


def test_of_some_overloads_harmless_flags_alone_vary() -> None:
    assert is_varied("embedding_dense_backward")
    assert may_vary("embedding_dense_backward", "scale_grad_by_freq")
    assert not may_vary("embedding_dense_backward", "num_weights")
    assert may_vary("batch_norm_backward", "update")
    assert not may_vary("_upsample_bilinear2d_aa", "scales_h")
    assert not may_vary("upsample_nearest3d_backward.grad_input", "scales_d")
    assert may_vary("topk", "k")


def test_one_dtype_gets_all_and_two_others_the_series() -> None:
    assert chosen_dtypes("mul", ["bool", "float16", "float32", "int64", "uint8"]) == ("float32", "float16", "int64")
    assert chosen_dtypes("gcd", ["int32", "int64", "uint8"]) == ("int64", "uint8")
    assert chosen_dtypes("avg_pool2d", ["float32", "int64", "uint8", "bfloat16"]) == ("float32", "bfloat16")


def test_hundreds_of_overloads_are_varied() -> None:
    keys = list(VariedSource(ARGUMENT_FACTOR, SchemaSource()).groups())
    assert len({key.operator for key in keys}) > 500
    assert ("topk", "float32") in {(key.operator, key.dtype) for key in keys}
