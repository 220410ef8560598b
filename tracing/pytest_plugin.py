"""`pytest --mps-no-fallback`: a test in which an operator falls back to the CPU fails, unless it is marked.

`@pytest.mark.mps_allow_fallback("aten::foo")` allows fallbacks of these operators or overloads, without names of all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

MARKER = "mps_allow_fallback"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.getgroup("mpsmith").addoption(
        "--mps-no-fallback",
        action="store_true",
        help=f"fail a test in which an operator on mps falls back to the CPU; marker {MARKER} allows it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line("markers", f"{MARKER}(*operators): these, or all, may fall back to the CPU on mps")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Trace the test, and fail a passing test in which something fell back."""
    if not item.config.getoption("--mps-no-fallback"):
        yield
        return
    import mpsmith

    with mpsmith.trace() as seen:
        outcome = yield
    allowed = [marker.args for marker in item.iter_markers(MARKER)]
    forbidden = () if () in allowed else seen.forbidden([name for names in allowed for name in names])
    if forbidden and outcome.excinfo is None:  # type: ignore[attr-defined]
        places = [f"  {at.overload} at {at.site}" for at in seen.fallbacks if at.overload in forbidden]
        text = "\n".join(["fell back to the CPU on mps:", *(places or [f"  {name}" for name in forbidden])])
        outcome.force_exception(pytest.fail.Exception(text, pytrace=False))  # type: ignore[attr-defined]
