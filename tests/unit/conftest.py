"""What all unit tests have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support import mac_lines

mac_lines.record()


@pytest.fixture(autouse=True)
def _environment_as_it_was() -> Iterator[None]:
    """Commands run in the tests' own process may set variables for what they import: they end with the test."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
