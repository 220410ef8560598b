"""Samples that a sampler makes only where no gradient is wanted."""

from __future__ import annotations

import pytest

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.without_gradients import WITHOUT_GRADIENT_FACTOR, asks_for_gradients
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples

OPINFOS = OpInfoSource()
SOURCE = VariedSource(WITHOUT_GRADIENT_FACTOR, OPINFOS)
NAME = "samples without gradients"


@pytest.mark.parametrize(
    ("operator", "argument"),
    [("nn.functional.embedding", "max_norm"), ("nn.functional.embedding", "padding_idx"), ("scatter", "reduce")],
)
def test_samples_made_only_without_gradients_are_included(operator: str, argument: str) -> None:
    key = GroupKey(NAME, operator, "", "float32", "fallback")
    cases = make_cases(SOURCE, key, Samples.DEFAULT, 0).values()
    given = [case.kwargs[argument] for case in cases if argument in case.kwargs]
    assert given
    assert not any(case.differentiable for case in cases)


def test_only_samplers_that_ask_are_asked_again() -> None:
    operators = {key.operator for key in SOURCE.groups()}
    assert {"nn.functional.embedding", "nn.functional.embedding_bag", "var"} <= operators
    assert {"nn.functional.multi_head_attention_forward"} <= operators
    assert not {"add", "argmax", "nn.functional.layer_norm"} & operators
    assert {key.dtype for key in SOURCE.groups()} <= {"float32", "float16", "bfloat16", "complex64"}


def test_a_sampler_of_another_package_is_not_looked_into() -> None:
    def sampler(requires_grad: bool) -> int:
        return 1 if requires_grad else 2

    assert not asks_for_gradients(sampler)


def test_samples_that_are_made_both_ways_are_left_out() -> None:
    key = GroupKey("opinfo", "nn.functional.embedding", "", "float32", "fallback")
    with_gradients = len(make_cases(OPINFOS, key, Samples.DEFAULT, 0))
    without = len(list(OPINFOS.samples(key, Samples.DEFAULT, differentiable=False)))
    extra = make_cases(SOURCE, GroupKey(NAME, key.operator, "", "float32", "fallback"), Samples.DEFAULT, 0)
    assert len(extra) == without - with_gradients == 7
