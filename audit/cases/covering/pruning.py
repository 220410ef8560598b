"""Leaves out samples that repeat others: those that add no pair of levels to the group's kept cases.

Some samplers go through a full product of their arguments and give thousands of cases for one group. A case keeps the
position that the sampler gave it, so that its name is the same whatever else is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ...model.case import Case, CaseSource, make_cases
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import Samples
from .levels import levels_of
from .pairs import Levels, pairs_of

# Samplers put the plain cases first, and the odd ones last; they stay whatever they are at.
FIRST_KEPT = 20
LAST_KEPT = 3
# Of what repeats others, one in so many stays: levels are not all that a fault may depend on.
SPREAD = 16
# Elements of a case's inputs beyond which it is expensive: it stays only for a pair that no cheaper case brings.
EXPENSIVE = 100_000


@dataclass(frozen=True)
class Chosen:
    """The cases of a group that are worth executing, by position.

    Attributes:
        cases: the cases.
        levels: what each of them is at.
        repeating: how many cases repeat these and are left out.
    """

    cases: dict[int, Case]
    levels: dict[int, Levels]
    repeating: int = 0


def choose_cases(source: CaseSource, key: GroupKey, samples: Samples, seed: int) -> Chosen:
    """The group's cases at a sample level, without repeating ones if the source says that it has some.

    The level `full` executes them all; at `quick` there are too few to repeat each other.
    """
    cases = make_cases(source, key, samples, seed)
    levels = {position: levels_of(case) for position, case in cases.items()}
    if samples is not Samples.DEFAULT or not source.repeats or len(cases) <= FIRST_KEPT:
        return Chosen(cases, levels)
    positions = list(cases)
    kept = cases_to_keep(list(levels.values()), [elements(case) for case in cases.values()])
    chosen = [positions[i] for i in sorted(kept)]
    return Chosen({p: cases[p] for p in chosen}, {p: levels[p] for p in chosen}, len(cases) - len(chosen))


def cases_to_keep(levels: Sequence[Levels], costs: Sequence[int]) -> set[int]:
    """The indices of the cases to keep: they cover every pair of levels that all cases cover.

    Args:
        levels: of each case, in the order of the sampler.
        costs: the elements of each case's inputs.
    """
    covered: set[object] = set()
    kept = {i for i in _ends(len(levels)) if costs[i] <= EXPENSIVE}
    for i in kept:
        covered.update(pairs_of(levels[i]))
    seen: set[Levels] = set()
    repeating = 0
    for i in sorted(range(len(levels)), key=lambda i: (max(costs[i], EXPENSIVE), i)):
        if i in kept:
            continue
        if levels[i] not in seen:
            seen.add(levels[i])
            before = len(covered)
            covered.update(pairs_of(levels[i]))
            if len(covered) > before:
                kept.add(i)
                continue
        if costs[i] <= EXPENSIVE:
            repeating += 1
            if repeating % SPREAD == 0:
                kept.add(i)
    return kept


def _ends(cases: int) -> set[int]:
    return {*range(min(FIRST_KEPT, cases)), *range(max(0, cases - LAST_KEPT), cases)}


def elements(case: Case) -> int:
    """The number of elements in the case's inputs, an estimate of its cost."""
    return sum(leaf.numel() for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor))
