"""The engine of sources that vary the cases of another source: OpInfos, modules, schemas."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from torch import Tensor

from ....registry.files import full_name
from ...judging.randomness import never_draws
from ...model.case import Case, CaseSource, QuickShare
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import DTYPES, Samples
from ..calls.invocation import SchemaCall
from .opinfo import OpInfoSource

# A sampler puts its plain cases first; among so many there is one to vary.
LOOKED_AT = 8
LARGEST_TO_VARY = 100_000
# Cases of another kind come later: a sampler goes through one argument after the other.
LOOKED_AT_FOR_KINDS = 64

# A source that costs much in every dtype goes through all of its variations in these alone, where not asked for full
# samples: in the others the covering arrays combine its variations with everything else.
MAIN_DTYPES = ("float32", "float16", "complex64", "int64", "bool")

# What the name of a derived source starts with, by what it varies: "layouts", "module layouts", "schema layouts".
PREFIXES = {"opinfo": "", "modules": "module ", "schema": "schema "}


# The dtype in which most is varied; others are tried in a few of the variations, in turn.
THOROUGH = "float32"

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class BaseGroup:
    """A group of a base source.

    Attributes:
        base: the source.
        key: the base's own key of the group.
        samples: the level of sampling of the audit.
    """

    base: CaseSource
    key: GroupKey
    samples: Samples = Samples.DEFAULT

    @property
    def opinfo(self) -> Any:
        """The OpInfo behind the group, or None if the base has none."""
        return self.base.opinfo(self.key) if isinstance(self.base, OpInfoSource) else None

    @property
    def dtypes(self) -> tuple[str, ...]:
        """All dtypes in which the base has groups of the operator and variant, in the base's order."""
        return _dtypes_by_entry(self.base)[self.key.operator, self.key.variant]

    @property
    def first_variation(self) -> int:
        """Which variation comes first, where the group is tried in a few of several."""
        return first_variation_of(self.key)

    @property
    def writes(self) -> bool:
        """Whether the calls of the group are schema calls that write into their arguments."""
        return self.key.source == "schema" and SchemaCall(full_name(self.key.operator)).writes

    def cases(self, samples: Samples = Samples.DEFAULT) -> Iterator[Case]:
        """The cases that the base makes of the group."""
        return self.base.cases(self.key, samples)


@cache
def _dtypes_by_entry(base: CaseSource) -> dict[tuple[str, str], tuple[str, ...]]:
    dtypes: dict[tuple[str, str], tuple[str, ...]] = {}
    for key in base.groups():
        entry = key.operator, key.variant
        dtypes[entry] = (*dtypes.get(entry, ()), key.dtype)
    return dtypes


def one_representative(group: BaseGroup, cases: Iterable[Case]) -> list[Case]:
    """The representative case of a group, if it has one."""
    case = representative(cases)
    return [] if case is None else [case]


@dataclass(frozen=True)
class Factor:
    """A property that a source varies in the cases of another source.

    Attributes:
        name: the name of the source, without the prefix for its base.
        vary: gives the variations of the chosen cases, the same ones in the same order for the same inputs.
        applies: whether there is anything to vary for a group.
        choose: which cases of a group are varied.
        dtypes: in which of them anything is varied below the level `full`.
        quick: how much of the source the level `quick` takes.
        repeats: whether many of its cases may be at the same levels.
    """

    name: str
    vary: Callable[[BaseGroup, Sequence[Case]], Iterator[Case]]
    applies: Callable[[BaseGroup], bool] = lambda group: True
    choose: Callable[[BaseGroup, Iterable[Case]], list[Case]] = one_representative
    dtypes: tuple[str, ...] = DTYPES
    quick: QuickShare = QuickShare.ONE_DTYPE
    repeats: bool = False


class VariedSource(CaseSource):
    """Varies one factor in the cases of each group of another source.

    Args:
        factor: what is varied.
        base: whose cases are varied.
        name: of the source, where it is not that of the factor behind a prefix for the base.
    """

    def __init__(self, factor: Factor, base: CaseSource, name: str = "") -> None:
        self.name = name or PREFIXES.get(base.name, f"{base.name} ") + factor.name
        self.quick, self.repeats = factor.quick, factor.repeats
        self._factor = factor
        self.base = base

    def groups(self) -> Iterable[GroupKey]:
        """Those of the base's groups that the factor applies to; none of the OpInfos' sparse ones."""
        return self._own(self.base.groups())

    def groups_of(self, operators: Collection[str]) -> Iterable[GroupKey]:
        """The same of some operators."""
        return self._own(self.base.groups_of(operators))

    def operators(self) -> frozenset[str]:
        """The operators of the base, whether or not groups of theirs are varied: to know that may take seconds."""
        return self.base.operators()

    def varies(self, key: GroupKey) -> bool:
        """Whether this source has anything to vary for a group of the base."""
        return "/" not in key.variant and self._factor.applies(BaseGroup(self.base, key))

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The variations of the group's chosen cases."""
        if self.has_cases_in(key.dtype, samples):
            group = BaseGroup(self.base, replace(key, source=self.base.name), samples)
            yield from self._factor.vary(group, self._factor.choose(group, group.cases()))

    def has_cases_in(self, dtype: str, samples: Samples) -> bool:
        """Whether groups of a dtype have cases at a level of sampling."""
        return samples is Samples.FULL or dtype in self._factor.dtypes

    def _own(self, keys: Iterable[GroupKey]) -> Iterator[GroupKey]:
        return (replace(key, source=self.name) for key in keys if self.varies(key))


def in_each_case(
    vary: Callable[[BaseGroup, Case], Iterator[Case]],
) -> Callable[[BaseGroup, Sequence[Case]], Iterator[Case]]:
    """Varies each of the chosen cases in the same way."""
    return lambda group, cases: (varied for case in cases for varied in vary(group, case))


def first_variation_of(key: GroupKey) -> int:
    """The variation with which a group begins if it is tried in one of several; it depends on operator and dtype."""
    return zlib.crc32(f"{key.operator}:{key.dtype}".encode())


def rotated(choices: Sequence[Choice], turn: int) -> tuple[Choice, ...]:
    """The choices, rotated by `turn`."""
    start = turn % len(choices) if choices else 0
    return (*choices[start:], *choices[:start])


def representative(cases: Iterable[Case]) -> Case | None:
    """Of the first cases, the one whose largest tensor has the most dimensions, then the most elements.

    Among equals, a case without a number 0.0 comes first: a scale of zero hides every other input. Skipped cases, and
    those without tensors or with very large ones, do not count. Cases with an empty tensor count only if there are no
    others, because they have no values that could be wrong. None if no case is left.
    """
    following = iter(cases)
    candidates = [case for case in islice(following, LOOKED_AT) if not case.skipped]
    if not any(map(_has_elements, candidates)):  # samplers of matrices begin with all that are empty
        further = (case for case in islice(following, LOOKED_AT_FOR_KINDS) if not case.skipped)
        candidates += [case for case in further if _has_elements(case)][:1]
    shapes = [(shape, i) for i, case in enumerate(candidates) if (shape := _largest(case)) is not None]
    if not shapes:
        return None
    largest = max(shape for shape, _ in shapes)
    equal = [candidates[i] for shape, i in shapes if shape == largest]
    return next((case for case in equal if not _has_a_zero(case)), equal[0])


def _has_a_zero(case: Case) -> bool:
    """Whether a number of a call that draws nothing is 0.0; a probability of zero makes others defined."""
    numbers = (leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, float))
    name = getattr(case.call, "__name__", "").removeprefix("aten::").partition(".")[0]
    return any(number == 0.0 for number in numbers) and never_draws(name)


def distinct(cases: Iterable[Case], most: int) -> list[Case]:
    """The representative case and the first case of each other kind among the first cases; at most `most` in all.

    Two cases are of the same kind if they pass the same arguments: tensors with as many dimensions, the same flags and
    strings, numbers of the same type whatever their value. A call that the base expects to be refused is not varied.
    """
    looked_at = [case for case in islice(cases, LOOKED_AT_FOR_KINDS) if not case.skipped and not case.errors_count]
    first = representative(filter(_has_elements, looked_at))
    by_kind: dict[Hashable, Case] = {} if first is None else {kind(first): first}
    for case in looked_at:
        if _has_elements(case) and len(by_kind) < most:
            by_kind.setdefault(kind(case), case)
    return list(by_kind.values())


def kind(case: Case) -> Hashable:
    """A key that is equal for two cases which differ only in sizes and values of tensors and numbers."""
    return case.call, _kind(case.args), _kind(case.kwargs)


def _kind(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return value.dtype, value.layout, value.dim()
    if isinstance(value, (tuple, list)):
        return tuple(map(_kind, value))
    if isinstance(value, dict):
        return tuple((name, _kind(branch)) for name, branch in value.items())
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return type(value).__name__
    return repr(value)


def _has_elements(case: Case) -> bool:
    largest = _largest(case)
    return largest is not None and largest[0]


def _largest(case: Case) -> tuple[bool, bool, int, int] | None:
    tensors = [t for t in leaves((case.args, case.kwargs)) if isinstance(t, Tensor)]
    if not tensors or max(t.numel() for t in tensors) > LARGEST_TO_VARY:
        return None
    none_is_empty = all(t.numel() for t in tensors)
    return max((t.numel() > 0, none_is_empty, t.dim(), t.numel()) for t in tensors)
