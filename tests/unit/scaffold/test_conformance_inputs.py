"""The inputs of generated tests: layouts need more than one dimension to differ in."""

from __future__ import annotations

from typing import Any

import torch

from mpsmith.audit.calls.invocation import SchemaCall
from mpsmith.audit.cases import Case
from mpsmith.scaffold.conformance import with_a_dimension_more


def case_of(overload: str, *args: Any) -> Case:
    return Case(SchemaCall(f"aten::{overload}"), args, {}, title="a call")


class TestADimensionMore:
    def test_flat_tensors_become_two_different_rows(self) -> None:
        wider = with_a_dimension_more(case_of("frexp.Tensor", torch.tensor([1.0, 2.0, 3.0])))
        assert wider is not None
        assert wider.args[0].tolist() == [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]

    def test_what_the_cpu_refuses_is_not_made(self) -> None:
        assert with_a_dimension_more(case_of("dot", torch.ones(3), torch.ones(3))) is None

    def test_a_number_has_no_dimension_to_stack(self) -> None:
        assert with_a_dimension_more(case_of("frexp.Tensor", torch.tensor(1.0))) is None
