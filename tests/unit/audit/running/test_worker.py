"""What a worker does beside executing cases."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from mpsmith.audit.running.worker import freeze_once


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
