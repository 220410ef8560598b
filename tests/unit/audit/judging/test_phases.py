"""Vectors of other phases are the CPU's, whatever wraps the call; left and right ones are turned together."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.phases import with_cpu_phases
from mpsmith.audit.model.case import Case

MATRIX = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.complex64)
VALUES, VECTORS = torch.linalg.eigh(MATRIX + MATRIX.mH)
LEFT, SINGULAR, RIGHT = torch.linalg.svd(MATRIX)
TURNS = torch.polar(torch.ones(5), torch.arange(5.0))
OTHER = [LEFT * TURNS, SINGULAR, RIGHT * TURNS.conj()[:, None]]
CPUS = [LEFT, SINGULAR, RIGHT]


def turned(entry: str, position: int, mine: list[Any], cpus: list[Any]) -> list[Tensor]:
    return list(with_cpu_phases(Case(lambda: None, entry=entry), position, mine, cpus))


@pytest.mark.parametrize("entry", ["linalg.eigh", "_linalg_eigh", "_linalg_eigh.eigenvalues"])
def test_eigenvectors_get_the_cpus_phases(entry: str) -> None:
    (actual,) = turned(entry, 1, [VALUES, VECTORS * TURNS], [VALUES, VECTORS])
    torch.testing.assert_close(actual, VECTORS, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("entry", ["linalg.svd", "linalg_svd.U", "_linalg_svd"])
def test_singular_vectors_get_the_cpus_phases(entry: str) -> None:
    columns, _ = turned(entry, 0, OTHER, CPUS)
    _, rows = turned(entry, 2, OTHER, CPUS)
    torch.testing.assert_close(columns, LEFT, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(rows, RIGHT, rtol=1e-5, atol=1e-5)


def test_left_vectors_are_not_turned_without_the_right_ones() -> None:
    assert turned("linalg.svd", 0, [LEFT * TURNS, SINGULAR, RIGHT], CPUS) == []
    assert turned("linalg.svd", 2, [LEFT, SINGULAR, -RIGHT], CPUS) == []


@pytest.mark.parametrize(
    ("entry", "position", "mine"),
    [
        ("linalg.eig", 1, [VALUES, VECTORS]),
        ("linalg.eigh", 0, [VALUES[0], VECTORS]),
        ("linalg.eigh", 0, [VALUES[0, 0], VECTORS]),
        ("linalg.eigh", 1, [VALUES, None]),
        ("linalg.eigh", 1, [VALUES, VECTORS[0]]),
    ],
)
def test_other_outputs_than_eigenvectors_are_not_changed(entry: str, position: int, mine: list[Any]) -> None:
    assert turned(entry, position, mine, [VALUES, VECTORS]) == []
