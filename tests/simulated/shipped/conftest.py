"""The kernels of each release that conventions are tried on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.shipped_kernels import RELEASES, Shipped, shipped_kernels


@pytest.fixture(params=RELEASES)
def shipped(request: pytest.FixtureRequest) -> Iterator[Shipped]:
    """The kernels of a release under the device, for one test."""
    with shipped_kernels(request.param) as kernels:
        yield kernels
