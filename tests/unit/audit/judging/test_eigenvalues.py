"""Eigenvalues in another order, with vectors of other phases, are the CPU's; other eigenvalues are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.eigenvalues import in_cpu_order, order_of_outputs
from mpsmith.audit.model.case import Case

MATRICES = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(1))
VALUES, VECTORS = torch.linalg.eig(MATRICES)
PLACES = torch.tensor([3, 0, 4, 2, 1])
TURNS = torch.polar(torch.ones(5), torch.arange(5.0))
SHUFFLED = [VALUES[..., PLACES], (VECTORS * TURNS)[..., PLACES]]
EIG = Case(torch.linalg.eig, (MATRICES,))


def ordered(position: int, mine: list[Any], cpus: list[Any], case: Case = EIG) -> Tensor | None:
    return in_cpu_order(case, position, mine, cpus)


def test_values_and_vectors_come_into_the_cpus_order_and_phases() -> None:
    for position, expected in enumerate((VALUES, VECTORS)):
        actual = ordered(position, SHUFFLED, [VALUES, VECTORS])
        assert actual is not None
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


def test_results_returned_twice_are_ordered_twice() -> None:
    actual = ordered(3, [*SHUFFLED, *SHUFFLED], [VALUES, VECTORS] * 2)
    assert actual is not None
    torch.testing.assert_close(actual, VECTORS, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("entry", ["linalg.eigvals", "linalg_eigvals", "linalg_eigvals.out", "_linalg_eigvals"])
def test_wrapped_calls_of_eigenvalues_alone(entry: str) -> None:
    square = torch.complex(torch.arange(25.0).view(5, 5), torch.ones(5, 5))
    actual = ordered(1, [square, square[:, PLACES]], [square, square], Case(lambda: None, entry=entry))
    assert actual is not None
    assert torch.equal(actual, square)


def test_another_value_stays_another_one() -> None:
    wrong = [SHUFFLED[0] + torch.tensor([0, 0, 0, 0, 0.5]), SHUFFLED[1]]
    actual = ordered(0, wrong, [VALUES, VECTORS])
    assert actual is not None
    assert not torch.allclose(actual, VALUES, atol=1e-3)


@pytest.mark.parametrize(
    ("case", "mine"),
    [
        (Case(torch.linalg.eigh, (MATRICES,)), SHUFFLED),
        (Case(torch.linalg.eig, (MATRICES,), entry="linalg.eigh"), SHUFFLED),
        (EIG, [VALUES[0], VECTORS]),
        (EIG, [VALUES.real, VECTORS]),
        (EIG, [VALUES * torch.nan, VECTORS]),
        (EIG, [None, VECTORS]),
    ],
)
def test_only_unordered_eigenvalues_are_put_in_order(case: Case, mine: list[Any]) -> None:
    assert ordered(0, mine, [VALUES, VECTORS], case) is None


def test_cotangents_follow_the_eigenvalues() -> None:
    order = order_of_outputs(EIG, SHUFFLED, [VALUES, VECTORS])
    assert order is not None
    weights = torch.randn(3, 5, generator=torch.Generator().manual_seed(2))
    mine, cpus = (order.to_device_order(weights) * SHUFFLED[0]).sum(), (weights * VALUES).sum()
    torch.testing.assert_close(mine, cpus)
    assert torch.equal(order.to_cpu_order(order.to_device_order(weights)), weights)
    columns = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(2))
    assert torch.equal(order.to_device_order(columns), columns[..., PLACES])
    assert [order.fits(x) for x in (weights, columns, weights[:2], torch.ones(()))] == [True, True, False, False]


def test_eigenvalues_in_cpu_order_have_no_other_one() -> None:
    assert order_of_outputs(EIG, [VALUES, VECTORS], [VALUES, VECTORS]) is None
    assert order_of_outputs(Case(torch.linalg.eigh, (MATRICES,)), SHUFFLED, [VALUES, VECTORS]) is None
    assert order_of_outputs(EIG, [], []) is None
