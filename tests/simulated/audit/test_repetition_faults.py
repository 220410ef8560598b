"""Faults of state and of threads, put into operators that no list names: each is seen in the cases about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.repetition import RepetitionSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from support.judged_groups import found

SCHEMAS = RepetitionSource(SchemaSource())
OPINFOS = RepetitionSource(OpInfoSource())


class CachedByShape:
    """Gives the result of the last call when the shape is the same again."""

    def __init__(self) -> None:
        self._results: dict[Any, Any] = {}

    def __call__(self, kernel: Any, x: Any, *rest: Any, **named: Any) -> Any:
        if x.shape not in self._results:
            self._results[x.shape] = kernel(x, *rest, **named)
        return self._results[x.shape]


class CachedByPlace:
    """Gives the result of the last call with a tensor at the same place in memory."""

    def __init__(self) -> None:
        self._results: dict[Any, Any] = {}

    def __call__(self, kernel: Any, x: Any, *rest: Any, **named: Any) -> Any:
        key = (x.data_ptr(), x.shape)
        if key not in self._results:
            self._results[key] = kernel(x, *rest, **named)
        return self._results[key]


class SometimesWrong:
    """One call in a hundred gives another result."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, kernel: Any, x: Any, *rest: Any, **named: Any) -> Any:
        self._calls += 1
        result = kernel(x, *rest, **named)
        return result + 1 if self._calls % 100 == 0 else result


class SharedScratch:
    """Keeps its input where the other thread keeps its own."""

    def __init__(self) -> None:
        self._scratch: Any = None

    def __call__(self, kernel: Any, x: Any, *rest: Any, **named: Any) -> Any:
        self._scratch = x
        kernel(x, *rest, **named)
        return kernel(self._scratch, *rest, **named)


FAULTS: dict[str, tuple[str, Callable[[], Any], str]] = {
    "a result kept by shape": ("logcumsumexp", CachedByShape, "with other values"),
    "a result kept by its place": ("softplus", CachedByPlace, "with other values"),
    "one call in a hundred": ("erfinv", SometimesWrong, "200 times"),
    "a scratch that threads share": ("hardswish", SharedScratch, "from two threads"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_in_the_case_that_is_about_it(fault: str) -> None:
    operator, faulty, title = FAULTS[fault]
    assert title in found(SCHEMAS, operator, operator, faulty())


def test_an_operator_of_an_opinfo_is_called_with_other_values() -> None:
    assert found(OPINFOS, "asinh", "asinh", CachedByShape()) == ["with other values"]
