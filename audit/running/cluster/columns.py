"""Rows of many groups as they cross the network: by table and column, since columns are read faster than rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from types import GenericAlias
from typing import Annotated, Any, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from ...model.group import GroupKey
from ...store.group_rows import VERDICTS, GroupRows, Tables
from .errors import ClusterError

_Count = Annotated[int, Field(ge=0)]
# In the list of a table's columns, the place of the verdicts: behind the numbers of rows, and the positions.
_VERDICTS_AT = 2


@cache
def columns_model() -> type[BaseModel]:
    """What is held against an answer: of each table how many rows each group has, then the columns."""
    fields: dict[str, Any] = {}
    for table, rows in get_type_hints(Tables).items():
        types = get_args(get_args(rows)[0])
        fields[table] = (GenericAlias(tuple, (list[_Count], *(GenericAlias(list, (each,)) for each in types))), None)
    model: type[BaseModel] = create_model("Columns", __config__=ConfigDict(extra="forbid"), **fields)
    return model


def by_column(groups: Sequence[GroupRows]) -> dict[str, Any]:
    """The rows of groups, each table's together."""
    tables = dict.fromkeys(chain.from_iterable(group.tables for group in groups))
    return {
        table: [
            [len(group.of(table)) for group in groups],
            *zip(*chain.from_iterable(group.of(table) for group in groups), strict=True),
        ]
        for table in tables
    }


def by_group(keys: Sequence[GroupKey], columns: BaseModel) -> tuple[GroupRows, ...]:
    """The rows of each group again. Raises ClusterError where they do not fit together."""
    tables: list[dict[str, Any]] = [{} for _ in keys]
    for table, found in columns:
        if found is None:
            continue
        if table == "cases" and (unknown := set(found[_VERDICTS_AT]) - VERDICTS):
            raise ClusterError(f"no such verdict as {min(unknown)!r}")
        counts, *values = found
        if len(counts) != len(keys) or {sum(counts)} != set(map(len, values)):
            raise ClusterError(f"a damaged answer: columns of {table} that do not fit together")
        rows = list(zip(*values, strict=True))
        end = 0
        for of_group, number in zip(tables, counts, strict=True):
            if number:
                of_group[table] = rows[end : end + number]
                end += number
    return tuple(GroupRows(key, cast("Tables", each)) for key, each in zip(keys, tables, strict=True))
