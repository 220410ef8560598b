"""What `cholesky_ex` leaves of a factor that does not exist is not compared; factors that exist are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases import Case
from mpsmith.audit.judging.unspecified import is_unspecified_factor

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
