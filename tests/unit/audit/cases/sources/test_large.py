"""Large tensors run only where they are asked for, and only where there is the memory that they state."""

from __future__ import annotations

import resource
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources, large
from mpsmith.audit.cases.sources import memory as available
from mpsmith.audit.cases.sources.known_wrong import KnownWrongSource
from mpsmith.audit.cases.sources.large import CALLS, LargeSource
from mpsmith.audit.cases.sources.memory import GIB, lacking_memory
from mpsmith.audit.model.case import is_wanted
from mpsmith.audit.model.selection import Samples, Settings


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    def have(gib: float, limit: float | None = None) -> None:
        soft = resource.RLIM_INFINITY if limit is None else int(limit * GIB)
        monkeypatch.setattr(available, "available_bytes", lambda: int(gib * GIB))
        monkeypatch.setattr(available.resource, "getrlimit", lambda kind: (soft, soft))
        # Among all that the tests of a process hold, a collection takes a second.
        monkeypatch.setattr(available.gc, "collect", lambda: 0)

    return have


def wanted(**settings: Any) -> set[str]:
    sources = case_sources(())
    return {name for name, source in sources.items() if is_wanted(source, Settings(**settings))}


def test_large_cases_are_not_among_the_default_ones() -> None:
    default = wanted()
    assert {"opinfo", "known wrong", "schema"} <= default
    assert default.isdisjoint({"large", "large known wrong"})
    assert wanted(large=True) == default | {"large", "large known wrong"}
    assert wanted(sources=("large",)) == {"large"}
    assert wanted(sources=("opinfo",), large=True) == {"opinfo", "large", "large known wrong"}


def test_the_known_wrong_cases_come_first() -> None:
    assert next(iter(case_sources(()))) == "known wrong"


def test_a_recorded_run_remembers_that_it_was_large() -> None:
    assert Settings.from_recorded(Settings(large=True).recorded()).large
    older = Settings().recorded()
    del older["large"]
    assert not Settings.from_recorded(older).large


def test_each_large_tensor_has_its_own_group() -> None:
    keys = list(LargeSource().groups())
    assert len(keys) == len(set(keys)) == len(CALLS) > 15


@pytest.mark.parametrize(
    ("gib", "limit", "expected"),
    [
        (20, None, ""),
        (20, 14, ""),
        (20, 8, "needs 13 GiB, a worker may hold 8 (--memory-limit 14)"),
        (6, None, "needs 13 GiB of memory, this machine has 6 to spare"),
    ],
)
def test_too_little_memory_is_said_with_the_need(memory: Any, gib: float, limit: float | None, expected: str) -> None:
    memory(gib, limit)
    assert lacking_memory(13) == expected


def test_nothing_is_made_where_memory_does_not_suffice(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory(1)
    monkeypatch.setattr(large, "_periodic", lambda flat: pytest.fail("a tensor was made"))
    for source in (LargeSource(), KnownWrongSource(large=True)):
        for key in source.groups():
            assert all("GiB" in case.skipped for case in source.cases(key, Samples.FULL))


def test_large_values_repeat_with_a_prime_period() -> None:
    values = large._periodic(torch.empty(1000, dtype=torch.int8))
    assert values.tolist() == [i % 113 for i in range(1000)]
    assert set(large._periodic(torch.empty(300, dtype=torch.bool)).tolist()) == {True, False}
    assert large.ELEMENTS > 2**31
    assert large.ROWS * large.COLUMNS > 2**31
