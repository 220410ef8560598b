"""Cholesky factors and products of reflectors by the shipped kernels of each release."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, on_both, overload_of

pytestmark = pytest.mark.network


def positive_definite(*shape: int) -> Tensor:
    x = torch.randn(*shape, shape[-1], generator=torch.Generator().manual_seed(0))
    return x @ x.mT + shape[-1] * torch.eye(shape[-1])


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(1,), (33,), (2, 70)], ids=str)
def test_cholesky(shipped: Shipped, shape: tuple[int, ...], upper: bool) -> None:
    x = positive_definite(*shape)
    factorize = overload_of("linalg_cholesky_ex")
    if shipped.release != "2.13.0":
        assert shipped.reasons(factorize, x) == {"no kernel factorDiagonalBlockL"}
        return
    for a in (x, x.mT, x.repeat_interleave(2, -1)[..., ::2]):
        pair = on_both(shipped, "linalg_cholesky_ex", a, upper=upper)
        for actual, expected in zip(*pair, strict=True):
            assert_near(actual, expected, 10)


def test_a_factor_goes_into_out_of_any_layout(shipped: Shipped) -> None:
    if shipped.release != "2.13.0":
        pytest.skip("the panels of this release are not planned")
    x = positive_definite(2, 5)
    info = torch.empty(2, dtype=torch.int32, device="mps")
    for factor in (torch.empty(2, 5, 5), torch.empty(2, 5, 5).mT, torch.empty(2, 5, 10)[..., ::2]):
        out = factor.to("mps")
        shipped.run(torch.ops.aten.linalg_cholesky_ex.L, x, upper=True, L=out, info=info)
        assert_near(out, torch.linalg.cholesky_ex(x, upper=True).L, 10)


def test_info_of_an_indefinite_matrix_counts_within_its_block(shipped: Shipped) -> None:
    """The CPU says 41, for the leading minor that is not positive."""
    if shipped.release != "2.13.0":
        pytest.skip("the panels of this release are not planned")
    x = torch.eye(70)
    x[40, 40] = -1
    assert shipped.run(overload_of("linalg_cholesky_ex"), x)[1].item() == 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize(("rows", "columns", "reflectors"), [(5, 5, 5), (7, 4, 2), (33, 20, 10)])
def test_reflectors(shipped: Shipped, dtype: torch.dtype, rows: int, columns: int, reflectors: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x, tau = torch.geqrf(torch.randn(2, rows, columns, dtype=dtype, generator=generator))
    for a in (x, x.mT.contiguous().mT):
        pair = on_both(shipped, "linalg_householder_product", a, tau[..., :reflectors])
        assert_near(*pair, 50)
