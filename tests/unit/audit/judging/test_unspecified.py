"""What `cholesky_ex` leaves of a factor that does not exist is not compared; factors that exist are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.unspecified import is_factor_of_infinite, is_unspecified_factor, is_unspecified_mode
from mpsmith.audit.model.case import Case

FACTORS = torch.tensor([[[2.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.5, -4.0]]])
INFO = torch.tensor([0, 2], dtype=torch.int32)
OTHER_REST = FACTORS.index_put([torch.tensor(1), torch.tensor(1)], torch.tensor([7.0, torch.nan]))
OTHER_FACTOR = FACTORS.index_put([torch.tensor(0), torch.tensor(1)], torch.tensor([1.0, 1.5]))


@pytest.mark.parametrize(
    ("call", "factor", "info", "unspecified"),
    [
        (torch.linalg.cholesky_ex, OTHER_REST, INFO, True),
        (torch.linalg.cholesky_ex, OTHER_FACTOR, INFO, False),
        (torch.linalg.cholesky_ex, OTHER_REST, INFO - 1, False),
        (torch.linalg.cholesky_ex, OTHER_REST, INFO[:1], False),
        (torch.linalg.cholesky_ex, OTHER_REST, 2, False),
        (torch.linalg.eigh, OTHER_REST, INFO, False),
    ],
)
def test_a_factor_that_does_not_exist(call: Any, factor: Tensor, info: Any, unspecified: bool) -> None:
    assert is_unspecified_factor(Case(call, (FACTORS,)), 0, [factor, info], [FACTORS, INFO]) is unspecified


def test_info_itself_is_compared() -> None:
    case = Case(torch.linalg.cholesky_ex, (FACTORS,))
    assert not is_unspecified_factor(case, 1, [OTHER_REST, INFO], [FACTORS, INFO])


NAN = torch.nan
ROWS = torch.tensor([[1.0, 2.0, 2.0, 5.0], [3.0, NAN, 1.0, 3.0], [4.0, NAN, 7.0, 6.0]])
MODES, PLACES = torch.tensor([2.0, NAN, NAN]), torch.tensor([2, 1, 1])


@pytest.mark.parametrize(
    ("values", "places", "unspecified"),
    [
        ([2.0, 3.0, 4.0], [2, 3, 0], True),
        ([2.0, 3.0, NAN], [2, 0, 1], True),
        ([2.0, 1.0, 4.0], [2, 2, 0], False),  # 3 is there twice
        ([2.0, 3.0, 4.0], [2, 2, 0], False),  # that is where 1 stands
        ([5.0, 3.0, 4.0], [3, 3, 0], False),  # of a row without NaN there is one mode
        ([2.0, 3.0, 4.0], [2, 9, 0], False),
    ],
)
def test_modes_of_rows_with_nan(values: list[float], places: list[int], unspecified: bool) -> None:
    mine, cpus = [torch.tensor(values), torch.tensor(places)], [MODES, PLACES]
    assert is_unspecified_mode(Case(torch.mode, (ROWS,)), 0, mine, cpus) is unspecified
    assert is_unspecified_mode(Case(torch.mode, (ROWS.t(), 0)), 0, mine, cpus) is unspecified
    assert not is_unspecified_mode(Case(torch.median, (ROWS,)), 0, mine, cpus)


def test_places_of_modes_of_rows_with_nan() -> None:
    case, cpus = Case(torch.mode, (ROWS,)), [MODES, PLACES]
    assert is_unspecified_mode(case, 1, [MODES, torch.tensor([2, 1, 1])], cpus)
    assert is_unspecified_mode(case, 1, [torch.tensor([2.0, 3.0, 4.0]), torch.tensor([2, 3, 0])], cpus)
    assert not is_unspecified_mode(case, 1, [MODES, torch.tensor([1, 3, 1])], cpus)


SYMMETRIC = torch.stack([torch.eye(3), torch.full((3, 3), NAN)])
LD = torch.linalg.ldl_factor_ex(torch.eye(3).expand(2, 3, 3)).LD
PIVOTS = torch.tensor([[1, 2, 3], [1, 2, 3]], dtype=torch.int32)
INFOS = torch.tensor([0, 1], dtype=torch.int32)
OF_NAN = torch.stack([LD[0], torch.full((3, 3), NAN)])


@pytest.mark.parametrize(
    ("position", "mine", "unspecified"),
    [
        (0, [OF_NAN, PIVOTS, INFOS], True),
        (1, [OF_NAN, PIVOTS + torch.tensor([[0], [1]], dtype=torch.int32), INFOS], True),
        (2, [OF_NAN, PIVOTS, INFOS * 2], True),
        (0, [LD, PIVOTS, INFOS], False),  # NaN has vanished
        (0, [OF_NAN * 2, PIVOTS, INFOS], False),
        (1, [OF_NAN, PIVOTS + 1, INFOS], False),
        (2, [OF_NAN, PIVOTS, INFOS + 1], False),
    ],
)
def test_factors_of_matrices_that_are_not_finite(position: int, mine: list[Tensor], unspecified: bool) -> None:
    cpus = [torch.where(OF_NAN.isnan(), 3.0, OF_NAN), PIVOTS, INFOS]
    case = Case(torch.linalg.ldl_factor_ex, (SYMMETRIC,))
    assert is_factor_of_infinite(case, position, mine, cpus) is unspecified
    assert not is_factor_of_infinite(Case(torch.linalg.eigh, (SYMMETRIC,)), position, mine, cpus)


def test_elements_above_the_diagonal_do_not_count() -> None:
    case = Case(torch.linalg.ldl_factor_ex, (torch.eye(3) + torch.tensor([[0, NAN, 0], [0, 0, 0], [0, 0, 0]]),))
    outputs = [OF_NAN[1], PIVOTS[1], INFOS[1]]
    assert not is_factor_of_infinite(case, 0, outputs, [LD[0], PIVOTS[0], INFOS[0]])
