"""The inputs of generated tests: layouts need more than one dimension to differ in."""

from __future__ import annotations

from typing import Any

import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.model.case import Case
from mpsmith.kernels.verification.conformance import Subject
from mpsmith.kernels.verification.drawn_inputs import redrawn, runs_on_cpu, with_added_dimension


def case_of(overload: str, *args: Any) -> Case:
    return Case(SchemaCall(f"aten::{overload}"), args, {}, title="a call")


class TestADimensionMore:
    def test_flat_tensors_become_two_different_rows(self) -> None:
        wider = with_added_dimension(case_of("frexp.Tensor", torch.tensor([1.0, 2.0, 3.0])))
        assert wider is not None
        assert wider.args[0].tolist() == [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]

    def test_calls_that_the_cpu_refuses_are_not_made(self) -> None:
        assert with_added_dimension(case_of("dot", torch.ones(3), torch.ones(3))) is None

    def test_a_number_has_no_dimension_to_stack(self) -> None:
        assert with_added_dimension(case_of("frexp.Tensor", torch.tensor(1.0))) is None


class TestDrawnInputs:
    CASE = case_of("fake_quantize_per_channel_affine", torch.ones(3), torch.ones(3), torch.ones(3), 0, 0, 9)

    def test_the_same_seed_draws_the_same_values_in_any_shape(self) -> None:
        first, other = redrawn(self.CASE, 5, (2, 2)), redrawn(self.CASE, 5, (2, 2))
        assert [tuple(tensor.shape) for tensor in first.args[:3]] == [(2, 2)] * 3
        assert torch.equal(first.args[2], other.args[2])
        assert not torch.equal(first.args[0], redrawn(self.CASE, 6, (2, 2)).args[0])
        assert redrawn(self.CASE, 5).args[0].shape == (3,)

    def test_whether_the_cpu_accepts_a_case_is_asked_of_copies(self) -> None:
        assert runs_on_cpu(self.CASE)
        assert not runs_on_cpu(redrawn(self.CASE, 5, (2, 2)))
        case = case_of("logit_", torch.tensor([0.5, 0.25]), 0.1)
        assert runs_on_cpu(case)
        assert case.args[0].tolist() == [0.5, 0.25]


def test_a_floating_kernel_is_not_called_with_complex_tensors() -> None:
    # One of the recorded calls of float32 has a tensor of complex64.
    cases = Subject("aten::embedding_renorm_", ("embedding_renorm_",))._recorded("float32")
    assert len(cases) > 1
    assert not any(isinstance(x, torch.Tensor) and x.is_complex() for case in cases for x in case.args)
