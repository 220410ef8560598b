"""Plans of calls, kept by their signatures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from mpsmith.kernels.runtime import signatures
from mpsmith.kernels.runtime.signatures import planned


def _counting() -> tuple[list[int], Callable[..., int]]:
    made: list[int] = []

    def make(x: torch.Tensor, bias: torch.Tensor | None, *numbers: object) -> int:
        if x.dtype == torch.bool:
            raise RuntimeError("refused")
        made.append(len(made))
        return made[-1]

    return made, make


def test_a_signature_is_planned_once() -> None:
    made, make = _counting()
    assert [planned(make, (torch.ones(2, 3), None), 1) for _ in range(3)] == [0, 0, 0]
    assert planned(make, (torch.ones(3, 3)[1:], None), 1) == 0  # it may begin elsewhere in its storage
    assert made == [0]


def test_a_signature_has_all_that_checks_read() -> None:
    made, make = _counting()
    x = torch.ones(2, 3)
    others = [x.half(), torch.ones(3, 2), torch.ones(3, 2).t(), torch.ones(2, 1).expand(2, 3)]
    for tensors in [(x, None), (x, x), *((other, None) for other in others)]:
        planned(make, tensors, 1)
    planned(make, (x, None), 2)
    assert len(made) == len(others) + 3


def test_a_refusal_is_not_kept() -> None:
    _, make = _counting()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused"):
            planned(make, (torch.ones(2, dtype=torch.bool), None))


def test_old_plans_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_MOST_PLANS", 2)
    monkeypatch.setattr(signatures, "plans", {})
    made, make = _counting()
    for number in (1, 2, 3, 1):
        planned(make, (torch.ones(2), None), number)
    assert len(made) == 4
