"""What a worker does beside executing cases."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from mpsmith.audit.running import worker, worker_limits
from mpsmith.audit.running.device_health import RECYCLED
from mpsmith.audit.running.worker import freeze_once
from mpsmith.audit.running.worker_limits import resident_bytes


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_freezes_the_objects_of_a_source_once() -> None:
    frozen: set[str] = set()
    freeze_once(frozen, "opinfo")
    loaded = gc.get_freeze_count()
    later = [[] for _ in range(1000)]
    freeze_once(frozen, "opinfo")
    assert 0 < gc.get_freeze_count() <= loaded
    freeze_once(frozen, "modules")
    assert gc.get_freeze_count() > loaded + len(later) // 2


def test_garbage_is_collected_before_it_would_be_kept_for_ever() -> None:
    class Node:
        gone: list[str] = []  # noqa: RUF012

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            Node.gone.append("gone")

    gc.disable()
    Node()
    freeze_once(set(), "opinfo")
    gc.enable()
    assert Node.gone == ["gone"]


@pytest.mark.parametrize(
    ("resident", "executed"), [([9, 9, 9, 9], 2), ([12, 9, 12, 9], 2), ([9, 9, 12, 11], 2), ([12, 11], 1)]
)
def test_a_worker_with_much_memory_trims_it_or_ends_after_each_group(
    monkeypatch: pytest.MonkeyPatch, resident: list[int], executed: int
) -> None:
    ends, groups = resident[-1] > 10, []
    monkeypatch.setattr(worker, "current_worker", lambda: SimpleNamespace(health=None))
    monkeypatch.setattr(worker, "run_group", lambda task: groups.append(task) or 1)
    monkeypatch.setattr(worker_limits, "MOST_RESIDENT", 10)
    monkeypatch.setattr(worker_limits, "resident_bytes", lambda: resident.pop(0))
    monkeypatch.setattr(worker.os, "_exit", sys.exit)
    with pytest.raises(SystemExit, match=str(RECYCLED)) if ends else nullcontext():
        assert worker.run_groups(["first", "second"]) == [1, 1]  # type: ignore[list-item]
    assert len(groups) == executed
    assert not resident


@pytest.mark.skipif(sys.platform == "darwin", reason="its allocator gives memory back by itself")
def test_free_memory_of_the_allocator_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_limits, "MOST_RESIDENT", 0)
    blocks = [b"x" * 60_000 for _ in range(2000)]  # below the size that glibc maps alone
    last = b"x" * 60_000  # keeps the heap from shrinking by itself
    before = resident_bytes()
    del blocks
    assert worker_limits.exceeds_memory_limit()
    assert before - resident_bytes() > 60 << 20
    del last


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not say it cheaply")
def test_the_memory_of_a_process_is_in_bytes() -> None:
    before = resident_bytes()
    held = b"x" * (64 << 20)
    assert 60 << 20 < resident_bytes() - before < 200 << 20
    del held
