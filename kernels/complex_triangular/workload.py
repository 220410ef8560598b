"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.solve_triangular(a, b, upper=True)
    return solution


def _system(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = max(2, math.isqrt(elements))
    return torch.randn(n, n, dtype=torch.complex64) / n + 3 * torch.eye(n), torch.randn(n, 32, dtype=torch.complex64)


WORKLOAD = Workload("aten::linalg_solve_triangular", _solve, _system)
