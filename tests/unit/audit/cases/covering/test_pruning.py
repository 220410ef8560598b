"""Leaving out cases that repeat others loses no pair of levels, no first case and no position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpsmith.audit.cases.covering.pairs import Levels, pairs_of
from mpsmith.audit.cases.covering.pruning import EXPENSIVE, cases_to_keep, choose_cases
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


def pairs(levels: Iterable[Levels]) -> set[object]:
    return {pair for of_case in levels for pair in pairs_of(of_case)}


one_case = st.tuples(
    st.fixed_dictionaries({name: st.sampled_from("xyz") for name in "abcd"}),
    st.sampled_from([1, EXPENSIVE, EXPENSIVE + 1, 10 * EXPENSIVE]),
)


@given(st.lists(one_case, max_size=120))
def test_no_pair_is_lost(made: list[tuple[dict[str, str], int]]) -> None:
    levels = [tuple(of_case.items()) for of_case, _ in made]
    kept = cases_to_keep(levels, [cost for _, cost in made])
    assert kept <= set(range(len(made)))
    assert pairs(levels[i] for i in kept) == pairs(levels)


def test_of_similar_cases_the_first_the_last_and_some_between_are_kept() -> None:
    alike: Levels = (("a", "x"), ("b", "y"))
    assert cases_to_keep([alike] * 100, [1] * 100) == {*range(20), 35, 51, 67, 83, 97, 98, 99}


def test_of_expensive_cases_only_the_cheapest_with_a_new_pair_is_kept() -> None:
    levels: list[Levels] = [(("a", "x"), ("b", "y")), (("a", "x"), ("b", "z")), (("a", "x"), ("b", "z"))]
    assert cases_to_keep(levels, [9 * EXPENSIVE, 8 * EXPENSIVE, 7 * EXPENSIVE]) == {0, 2}
    assert cases_to_keep([*levels, levels[0]], [9 * EXPENSIVE, 8 * EXPENSIVE, 7 * EXPENSIVE, 5]) == {2, 3}


class Product(CaseSource):
    """A sampler that goes through a full product of five flags."""

    name = "product"

    def groups(self) -> Iterable[GroupKey]:
        return [GROUP]

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        for flags in product((True, False), (0, 1, 2), ("a", "b", "c"), (None, 0.5), (1, 2)):
            yield Case(torch.add, (torch.rand(2), *flags))


GROUP = GroupKey("product", "add", "", "float32", "fallback")


class Repeating(Product):
    repeats = True


def test_a_case_keeps_its_position_and_inputs() -> None:
    everything = choose_cases(Product(), GROUP, Samples.DEFAULT, 0)
    chosen = choose_cases(Repeating(), GROUP, Samples.DEFAULT, 0)
    assert len(everything.cases) == 72
    assert everything.repeating == 0
    assert chosen.repeating == 72 - len(chosen.cases) >= 30
    assert pairs(chosen.levels.values()) == pairs(everything.levels.values())
    for position, case in chosen.cases.items():
        assert torch.equal(case.args[0], everything.cases[position].args[0])
        assert case.args[1:] == everything.cases[position].args[1:]


@pytest.mark.parametrize("samples", [Samples.FULL, Samples.QUICK])
def test_other_levels_of_sampling_leave_nothing_out_as_repeating(samples: Samples) -> None:
    assert choose_cases(Repeating(), GROUP, samples, 0).repeating == 0
    assert (
        choose_cases(Repeating(), GROUP, samples, 0).cases.keys()
        == choose_cases(Product(), GROUP, samples, 0).cases.keys()
    )


@pytest.mark.parametrize(
    ("source", "operator", "variant", "most"),
    [
        (OpInfoSource(), "nn.functional.max_pool2d", "", 200),
        (OpInfoSource(), "unique", "", 130),
        (ModuleSource(), "nn.LinearCrossEntropyLoss", "train", 160),
    ],
)
def test_samplers_of_torch_that_go_through_a_product(
    source: CaseSource, operator: str, variant: str, most: int
) -> None:
    key = GroupKey(source.name, operator, variant, "float32", "fallback")
    assert 20 < len(choose_cases(source, key, Samples.DEFAULT, 0).cases) < most
    # The arguments of a module's constructor are flags of its cases.
    flags = {factor for levels in choose_cases(source, key, Samples.DEFAULT, 0).levels.values() for factor, _ in levels}
    assert "built with reduction" in flags or source.name != "modules"
