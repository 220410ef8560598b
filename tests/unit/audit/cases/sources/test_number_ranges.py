"""Numbers of recorded calls in ranges where a fault shows."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources.number_ranges import (
    far_from_zero,
    partly_near_zero,
    with_both_signs,
    with_distinguishable_results,
    with_unequal_elements,
)
from mpsmith.audit.model.case import Case


def test_equal_elements_are_made_different() -> None:
    made = with_unequal_elements(Case(SchemaCall("aten::exp"), (torch.full((2, 4), 3.0),)))
    assert len(made.args[0].unique()) == 8
    assert float(made.args[0].min()) > 0


def test_numbers_of_either_sign_alone_get_both() -> None:
    for sign in (1, -1):
        made = with_both_signs(Case(SchemaCall("aten::exp"), (sign * torch.ones(4),)))
        assert made.args[0].sign().unique().tolist() == [-1.0, 1.0]


def test_complex_numbers_without_imaginary_parts_get_some() -> None:
    made = with_both_signs(Case(SchemaCall("aten::exp"), (torch.tensor([1, -2, 3, -4], dtype=torch.complex64),)))
    assert (made.args[0].imag != 0).any()


def test_numbers_below_a_threshold_are_made_larger() -> None:
    call = SchemaCall("aten::threshold_backward")
    x = torch.linspace(-1, 1, 24)
    made = with_distinguishable_results(Case(call, (x, x, 2.0)))
    assert made.args[0] is made.args[1]
    assert (call(*made.args)[0] != 0).any()
    distinct = Case(call, (x, x, 0.0))
    assert with_distinguishable_results(distinct) is distinct


def test_complex_results_are_compared_by_both_parts() -> None:
    few = Case(SchemaCall("aten::angle"), (torch.ones(24, dtype=torch.complex64),))
    assert with_distinguishable_results(few) is few
    called = Case(SchemaCall("aten::complex"), (torch.ones(24), torch.linspace(0, 1, 24)))
    assert with_distinguishable_results(called) is called


def test_each_set_of_tensors_is_small_in_some_element() -> None:
    (case,) = partly_near_zero(Case(torch.addcdiv, tuple(torch.ones(24) for _ in range(3))))
    small = {tuple(bool(tensor[i] < 0.5) for tensor in case.args) for i in range(24)}
    assert len(small) == 8
    assert not list(partly_near_zero(Case(torch.exp, (torch.ones(24),))))


def test_the_last_of_hundreds_of_tensors_is_small_everywhere() -> None:
    (case,) = partly_near_zero(Case(torch._foreach_abs, ([torch.ones(3) for _ in range(100)],)))
    assert (case.args[0][-1] < 0.5).all()


def test_statistics_get_a_large_mean_and_gradients_do_not() -> None:
    x = torch.tensor([[0.5, 1.5]])
    (case,) = far_from_zero(Case(SchemaCall("aten::var"), (x,)), "var.correction_out")
    assert case.args[0].tolist() == [[2000.5, 2001.5]]
    assert not list(far_from_zero(Case(SchemaCall("aten::exp"), (x,)), "exp.out"))
    assert not list(far_from_zero(Case(SchemaCall("aten::exp"), (x,)), "native_layer_norm_backward"))
