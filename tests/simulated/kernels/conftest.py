"""The kernels that the tests of a module are about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mpsmith.audit.running.processor_independence import without_onednn


@pytest.fixture(scope="module", autouse=True)
def same_on_any_processor() -> Iterator[None]:
    """The CPU computes as in an audit, whatever this processor has."""
    with without_onednn():
        yield


@pytest.fixture(scope="module", autouse=True)
def registered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Those that the module names in `REGISTERED` answer; where it has no such name, it registers its own."""
    names = getattr(request.module, "REGISTERED", None)
    if names is None:
        yield
        return
    from mpsmith import kernels
    from mpsmith.simulator import metal

    metal.install()
    with kernels.use(*names):
        yield
