"""Our kernels beside shipped ones: calls that the shipped kernels answer, dtype by dtype."""

from __future__ import annotations

from typing import Any

import pytest

from mpsmith.kernels.verification import shipped
from mpsmith.kernels.verification.accuracy import Accuracy
from mpsmith.kernels.verification.source import calls_of

SHRINK, HEAVISIDE = (calls_of(family)[0].label for family in ("shrink", "heaviside"))


def accuracy(call: str, dtype: str, cases: int) -> Accuracy:
    return Accuracy(call, dtype, cases, 0, 1.0, 1.0, False)


def test_only_what_both_answered_stands_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = [accuracy(SHRINK, "float32", 3), accuracy(SHRINK, "float16", 2)]
    asked: list[Any] = []
    ours = [accuracy(SHRINK, "float32", 7), accuracy(SHRINK, "bfloat16", 7)]

    def in_a_process(families: object, release: str) -> list[Accuracy]:
        asked.append((families, release))
        return theirs

    def accuracy_of(family: str) -> list[Accuracy]:
        asked.append(family)
        return ours

    monkeypatch.setattr(shipped, "_in_a_process", in_a_process)
    monkeypatch.setattr(shipped, "accuracy_of", accuracy_of)
    (both,) = shipped.beside(["heaviside", "shrink"], "2.15.0")
    assert (both.ours, both.theirs) == (ours[0], theirs[0])
    assert asked == [(["heaviside", "shrink"], "2.15.0"), "shrink"]  # a family that they do not answer is not measured
    assert HEAVISIDE != SHRINK
