"""`pytest --mps-no-fallback`: a test in which an operator falls back to the CPU fails, unless it is marked.

`@pytest.mark.mps_allow_fallback("aten::foo")` allows fallbacks of these operators or overloads; without arguments, of
all. Fallbacks in a fixture count for the tests that use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ..errors import MpsmithError

MARKER = "mps_allow_fallback"
OPTION = "--mps-no-fallback"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("mpsmith").addoption(
        OPTION,
        action="store_true",
        help=f"fail a test in which an operator on mps falls back to the CPU; marker {MARKER} allows it",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Enable fallbacks before a conftest imports torch, because an allowed fallback would raise otherwise."""
    if early_config.known_args_namespace.mps_no_fallback:
        os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{MARKER}(*operators): these, or all, may fall back to the CPU on mps")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a marker that names something other than an operator."""
    if not config.getoption(OPTION):
        return
    from ..audit.answers.answer import require_operators

    for item in items:
        for marker in item.iter_markers(MARKER):
            try:
                require_operators(map(str, marker.args))
            except MpsmithError as error:
                raise pytest.UsageError(f"{item.nodeid}: {MARKER}: {error}") from error


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Trace the fixtures of the test."""
    yield from _traced(item, "fell back to the CPU on mps in a fixture")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Trace what fixtures do after the test."""
    yield from _traced(item, "fell back to the CPU on mps in a fixture, after the test")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Trace the test."""
    yield from _traced(item, "fell back to the CPU on mps")


def _traced(item: pytest.Item, what: str) -> Iterator[None]:
    """Trace one phase of a test, and make it fail if it passes although something fell back."""
    if not item.config.getoption(OPTION):
        yield
        return
    import mpsmith

    with mpsmith.trace() as seen:
        outcome = yield
    allowed = [marker.args for marker in item.iter_markers(MARKER)]
    forbidden = () if () in allowed else seen.forbidden([name for names in allowed for name in names])
    if forbidden and outcome.excinfo is None:  # type: ignore[attr-defined]
        places = [f"  {at.overload} at {at.site}" for at in seen.fallbacks if at.overload in forbidden]
        lines = [f"{', '.join(forbidden)} {what}", *(places or [f"  {name}" for name in forbidden])]
        outcome.force_exception(pytest.fail.Exception("\n".join(lines), pytrace=False))  # type: ignore[attr-defined]
