"""A source that stands over another one: its groups are some of the other's, under a name of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from ...model.case import CaseSource
from ...model.group import GroupKey

Base = TypeVar("Base", bound=CaseSource)


class SourceOverAnother(CaseSource, Generic[Base]):
    """Makes further cases of groups that another source knows.

    Args:
        base: the other source.
    """

    def __init__(self, base: Base) -> None:
        self._base = base

    def groups(self) -> Iterable[GroupKey]:
        """Those of the base's groups that are `taken`."""
        return self._own(self._base.groups())

    def operators(self) -> frozenset[str]:
        """Those of the base, whether a group of theirs is taken or not: telling that may cost seconds."""
        return self._base.operators()

    def groups_of(self, operators: Collection[str]) -> Iterable[GroupKey]:
        """The same of some operators."""
        return self._own(self._base.groups_of(operators))

    @abstractmethod
    def taken(self, keys: Iterable[GroupKey]) -> Iterator[GroupKey]:
        """Those of the base's groups `keys` that this source has cases of, in their order."""

    def base_key(self, key: GroupKey) -> GroupKey:
        """The base's own group to one of this source."""
        return replace(key, source=self._base.name)

    def _own(self, keys: Iterable[GroupKey]) -> Iterator[GroupKey]:
        return (replace(key, source=self.name) for key in self.taken(keys))
