from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpsmith.audit.store.store import Store
from support.stores import new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with new_store(tmp_path) as store:
        yield store
