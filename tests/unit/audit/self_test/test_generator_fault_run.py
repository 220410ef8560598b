from __future__ import annotations

from typing import Any

import pytest
from pebble import ProcessExpired

from mpsmith.audit.self_test.compiled import run
from mpsmith.audit.self_test.compiled.faults import Found, GeneratorFault

FAULT = GeneratorFault("a test", "none", "min", "max", ("opinfo:minimum:float32", "opinfo:amin:float32"))


class _Pool:
    """A pool of processes whose answer is known."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, **options: Any) -> _Pool:
        return self

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def schedule(self, function: Any, args: tuple[Any, ...], timeout: float) -> _Pool:
        return self

    def result(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "verdict", "printed"),
    [
        (Found("opinfo:minimum:float32:0", "wrong", "it differs"), "wrong", "found by opinfo:minimum:float32:0"),
        (ProcessExpired("Abnormal termination", 134), "crash", "found by opinfo:minimum:float32"),
        (TimeoutError(), "timeout", "found by opinfo:minimum:float32"),
        (None, None, "NOT FOUND"),
    ],
)
def test_a_fault_that_ends_its_process_is_found_and_one_that_shows_nowhere_is_not(
    answer: Any, verdict: str | None, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "ProcessPool", _Pool(answer))
    lines: list[str] = []
    (tried,) = run.try_all([FAULT], lines.append)
    assert (tried.found.verdict if tried.found else None) == verdict
    assert lines == [f"1 of 1: a test: {printed}"]
