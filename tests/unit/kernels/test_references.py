"""How far results are said to be from a reference."""

from __future__ import annotations

import math
import sys

import pytest
import torch

from mpsmith.errors import MpsmithError
from mpsmith.kernels.eig.eig import MOST_ROWS
from mpsmith.kernels.verification.matrix_kinds import Residuals, svd_residuals
from mpsmith.kernels.verification.references import systems
from mpsmith.kernels.verification.references.measured import largest, library, spacing


def test_units_are_those_of_float32_at_the_exact_result() -> None:
    exact = torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    assert spacing(exact).tolist() == [2.0**-23, 2.0**-22, 2.0**-149]
    assert spacing(exact, 4.0).tolist() == [2.0**-21] * 3
    result = torch.tensor([1.0 + 2.0**-22, 3.0, 0.0])
    assert largest(result, exact, spacing(exact)) == 2.0
    assert largest(result, exact, 1.0) == 2.0**-22


def test_infinity_on_one_side_is_an_infinite_error() -> None:
    infinite, exact = torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert largest(infinite, exact, 1.0) == math.inf
    assert largest(torch.tensor([math.inf, 1.5]), torch.tensor([math.inf, 1.0], dtype=torch.float64), 1.0) == 0.5


def test_a_reference_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MpsmithError, match="scipy is not installed, which our kernels are compared with: pip install"):
        library("scipy.special")


def test_no_row_has_a_size_that_a_kernel_leaves_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def ours(_: str, n: int, __: object, decompose: object, residuals: Residuals, *, hermitian: bool) -> torch.Tensor:
        on_cpu = decompose is torch.linalg.eig and n > MOST_ROWS
        return lapacks(n, None, decompose, residuals) * (math.nan if on_cpu else 1.0)

    def lapacks(_: int, __: object, ___: object, residuals: Residuals, **____: bool) -> torch.Tensor:
        return torch.ones(3 if residuals is svd_residuals else 2, 24)

    monkeypatch.setattr(systems, "residuals_on", ours)
    monkeypatch.setattr(systems, "median_residuals_of_lapack", lapacks)
    monkeypatch.setattr(systems, "kinds", lambda n, dtype: range(24))
    rows = list(systems.of_all_kinds())
    assert len(rows) == 14
    assert [row.what for row in rows if math.isnan(row.ours)] == []
