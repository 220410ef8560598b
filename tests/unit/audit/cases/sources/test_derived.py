"""What is varied of another source's cases: which groups, which of their cases, and under which name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.derived import BaseGroup, Factor, VariedSource, distinct, in_each_case, representative
from mpsmith.audit.cases.sources.forms import FORM_FACTOR
from mpsmith.audit.cases.sources.layouts import LAYOUT_FACTOR
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.case import Case, CaseSource, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


def doubled(group: BaseGroup, case: Case) -> Iterator[Case]:
    yield replace(case, title=f"{group.key.source} once")
    yield replace(case, title=f"{group.key.source} again")


DOUBLED = Factor("doubled", in_each_case(doubled))


def titles(source: CaseSource, operator: str, variant: str = "") -> list[str]:
    key = GroupKey(source.name, operator, variant, "float32", "fallback")
    assert key in set(source.groups())
    return [case.title for case in make_cases(source, key, Samples.DEFAULT, 0).values()]


def test_cases_of_every_base_are_varied_under_their_own_name() -> None:
    opinfos, modules, schemas = (VariedSource(DOUBLED, base()) for base in (OpInfoSource, ModuleSource, SchemaSource))
    assert [source.name for source in (opinfos, modules, schemas)] == ["doubled", "module doubled", "schema doubled"]
    assert titles(opinfos, "cummax") == ["opinfo once", "opinfo again"]
    assert titles(modules, "nn.BatchNorm2d", "eval") == ["modules once", "modules again"]
    assert titles(schemas, "cummax.out") == ["schema once", "schema again"]


def test_groups_of_an_audit_are_unique_and_those_of_a_few_operators_the_same() -> None:
    sources = case_sources(()).values()
    groups = [list(source.groups()) for source in sources]
    labels = [key.label for of_source in groups for key in of_source]
    assert len(labels) == len(set(labels))
    few = {"softshrink", "nn.functional.pad", "median", "median.dim", "nn.Linear", "rand"}
    for source, every in zip(sources, groups, strict=True):
        assert list(source.groups_of(few)) == [key for key in every if key.operator in few]
        assert source.operators() >= {key.operator for key in every}


@pytest.mark.parametrize(
    ("source", "varied", "left_out"),
    [
        (
            "sizes",
            ("nn.functional.scaled_dot_product_attention", "exp", "sort"),
            ("bernoulli", "nn.functional.dropout2d"),
        ),
        (
            "schema sizes",
            ("add.Tensor", "cummax", "_foreach_add.Scalar"),
            ("add.out", "add_.Tensor", "mode.values", "native_batch_norm", "glu_backward"),
        ),
        ("schema tensor layouts", ("add.Tensor",), ("add.out", "add_.Tensor", "_weight_int8pack_mm")),
        ("schema targets", ("add.out", "add_.Tensor"), ("add.Tensor", "narrow_copy.out")),
        ("gradients", ("exp",), ("argmax",)),
    ],
)
def test_source_varies_operators(source: str, varied: tuple[str, ...], left_out: tuple[str, ...]) -> None:
    groups = case_sources(())[source].groups_of({*varied, *left_out})
    assert {key.operator for key in groups} == set(varied)


def test_the_label_of_a_derived_group_stays() -> None:
    labels = {key.label for key in VariedSource(LAYOUT_FACTOR, OpInfoSource()).groups()}
    assert "layouts:exp:float32" in labels
    assert not [label for label in labels if "/" in label]


def test_cases_of_other_kinds_are_varied_too() -> None:
    several = replace(DOUBLED, choose=lambda group, cases: distinct(cases, 3))
    assert len(titles(VariedSource(several, OpInfoSource()), "nn.functional.pad", "constant")) == 6


def call(*args: object, **kwargs: object) -> None:
    """Stands for an operator."""


def test_a_kind_depends_on_the_arguments_and_not_on_their_size_or_value() -> None:
    wide, narrow = torch.ones(4, 3), torch.ones(2, 2)
    cases = [
        Case(call, (narrow, 1)),
        Case(call, (wide, 2)),  # larger: it represents its kind
        Case(call, (wide, 2.0)),
        Case(call, (wide, 2), {"largest": True}),
        Case(call, (wide, 2), {"largest": False}),
        Case(call, (wide, None)),
        Case(call, (torch.ones(5), 1)),
        Case(call, (wide.int(), 1)),
    ]
    places = {id(case): place for place, case in enumerate(cases)}
    assert [places[id(case)] for case in distinct(cases, 9)] == [1, 2, 3, 4, 5, 6, 7]
    assert [places[id(case)] for case in distinct(cases, 2)] == [1, 2]


def test_skipped_refused_and_empty_cases_are_not_varied() -> None:
    x = torch.ones(2)
    cases = [Case(call, (x,), skipped="so"), Case(call, (x,), errors_count=True), Case(call, (torch.ones(0, 2),))]
    assert distinct([*cases[:2], Case(call, (1,))], 9) == []
    varied = Case(call, (x, x))
    (kept,) = distinct([*cases, varied], 9)
    assert kept is varied


def test_forms_are_declared() -> None:
    source = VariedSource(FORM_FACTOR, OpInfoSource())
    made = make_cases(source, GroupKey("forms", "add", "", "float32", "fallback"), Samples.DEFAULT, 0)
    assert {case.form for case in made.values()} == {case.title for case in made.values()}


def test_of_cases_that_are_as_large_one_without_a_factor_of_zero_is_varied() -> None:
    ones, mask = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)
    backward = SchemaCall("aten::native_dropout_backward")
    scaled = [Case(backward, (ones, mask, scale)) for scale in (0.0, 2.0)]
    assert representative(scaled) is scaled[1]
    assert representative([*scaled, Case(torch.neg, (torch.ones(2, 3, 4),))]) not in scaled
    # A probability of zero is what makes the values of dropout defined.
    dropped = [Case(torch.dropout, (ones, probability, True)) for probability in (0.0, 0.5)]
    assert representative(dropped) is dropped[0]
