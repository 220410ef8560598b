"""The cases that a source makes for one group."""

from __future__ import annotations

from mpsmith.audit.model.case import Case, CaseSource, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


def cases_of_group(source: CaseSource, operator: str, dtype: str = "float32", variant: str = "") -> list[Case]:
    """The cases of a group at the default level; the source must have the group."""
    key = GroupKey(source.name, operator, variant, dtype, "fallback")
    assert key in set(source.groups_of({operator}))
    return list(make_cases(source, key, Samples.DEFAULT, 0).values())


def cases_by_title(source: CaseSource, operator: str, dtype: str = "float32", variant: str = "") -> dict[str, Case]:
    """The same by their titles."""
    return {case.title: case for case in cases_of_group(source, operator, dtype, variant)}
