"""Kinds of matrices, and the residuals that decide whether a kernel's factors are as good as LAPACK's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from mpsmith.kernels.runtime.convergence import warn_of_the_cpu
from mpsmith.kernels.verification.matrix_kinds import (
    eig_residuals,
    eigh_residuals,
    kinds,
    median_residuals_of_lapack,
    residuals_on,
    svd_residuals,
    within_lapack_residuals,
)

DTYPES = (torch.float32, torch.complex64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_24_finite_kinds_that_are_the_same_each_time(n: int, dtype: torch.dtype) -> None:
    matrices = kinds(n, dtype)
    assert len(matrices) == 24
    assert {matrix.shape for matrix in matrices.values()} == {(n, n)}
    assert {matrix.dtype for matrix in matrices.values()} == {dtype}
    assert all(bool(matrix.isfinite().all()) for matrix in matrices.values())
    assert all(torch.equal(matrix, kinds(n, dtype)[name]) for name, matrix in matrices.items())


@pytest.mark.parametrize("dtype", DTYPES)
def test_lapacks_factors_are_within_its_residuals(dtype: torch.dtype) -> None:
    size = torch.tensor(6)
    for decompose, residuals, hermitian in (
        (torch.linalg.svd, svd_residuals, False),
        (torch.linalg.eigh, eigh_residuals, True),
        (torch.linalg.eig, eig_residuals, False),
    ):
        assert within_lapack_residuals(decompose, residuals, hermitian=hermitian)(size, dtype).all()
        lapacks = residuals_on("cpu", 6, dtype, decompose, residuals, hermitian=hermitian)
        assert lapacks.isfinite().all()
        # In epsilons. Balancing makes those of LAPACK's eig large for graded columns.
        assert residuals is eig_residuals or lapacks.max() < 40


def test_an_error_of_a_thousandth_is_not() -> None:
    calls = 0

    def wrong_once(x: torch.Tensor) -> Sequence[torch.Tensor]:
        nonlocal calls
        calls += 1
        u, s, vh = torch.linalg.svd(x)
        return (u, s * 1.001, vh) if calls == 1 else (u, s, vh)

    answers = within_lapack_residuals(wrong_once, svd_residuals)(torch.tensor(6), torch.float32)
    assert answers.shape == (3, 24)
    assert answers[1:].all()
    assert not answers[0][list(kinds(6, torch.float32)).index("random")]


def test_a_size_at_which_lapack_has_a_much_smaller_error_does_not_count() -> None:
    def better_at_six(x: torch.Tensor) -> Sequence[torch.Tensor]:
        u, s, vh = torch.linalg.svd(x)
        return u, s * (1 if x.shape[-1] == 6 else 1.001), vh

    place = list(kinds(6, torch.float32)).index("random")
    assert median_residuals_of_lapack(6, torch.float32, better_at_six, svd_residuals)[0, place] > 1000


def test_a_factor_that_is_not_finite_is_not() -> None:
    def broken(x: torch.Tensor) -> Sequence[torch.Tensor]:
        w, v = torch.linalg.eig(x)
        return w, v * torch.nan

    assert not within_lapack_residuals(broken, eig_residuals)(torch.tensor(3), torch.complex64).any()


def test_a_call_that_the_cpu_computed_is_not() -> None:
    def without_convergence(x: torch.Tensor) -> Sequence[torch.Tensor]:
        warn_of_the_cpu("linalg.eig", "for the test")
        return torch.linalg.eig(x)

    with pytest.warns(UserWarning, match="for the test"):
        assert not within_lapack_residuals(without_convergence, eig_residuals)(torch.tensor(3), torch.float32).any()
