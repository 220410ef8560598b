"""Factors and least squares of matrices at the ends of float32, of zeros, and of nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from mpsmith import kernels
from mpsmith.simulator import metal

DTYPES = (torch.float32, torch.complex64)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    metal.install()
    with kernels.use("linalg_lstsq", "_linalg_svd", "linalg_svd", "_linalg_eigh", "geqrf"):
        yield


def matrices(*shape: int, dtype: torch.dtype, scale: float) -> Tensor:
    """Parts between a half and one, times `scale`."""
    parts = torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(7)) / 2
    return (parts + (0.5 + 0.5j if dtype.is_complex else 0.5)) * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("of_matrix", "of_side"), [(3e38, 1.0), (3e38, 3e38), (1e-38, 1e-30), (1.0, 1e-36)])
def test_least_squares_of_the_largest_and_smallest_numbers(
    dtype: torch.dtype, of_matrix: float, of_side: float
) -> None:
    a, b = matrices(2, 4, 3, dtype=dtype, scale=of_matrix), matrices(2, 4, 2, dtype=dtype, scale=of_side)
    for driver in ("gels", "gelsd"):
        wide = torch.complex128 if dtype.is_complex else torch.float64
        expected = torch.linalg.lstsq(a.to(wide), b.to(wide), rcond=1e-6, driver=driver)
        found = torch.linalg.lstsq(a.to("mps"), b.to("mps"), rcond=1e-6, driver=driver)
        assert found.solution.isfinite().all()
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs.to(ours.dtype), rtol=1e-4, atol=0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gels_with_columns_of_different_scales(dtype: torch.dtype) -> None:
    a = matrices(5, 3, dtype=dtype, scale=1.0) * torch.tensor([1e-38, 1.0, 3e37])
    b = a @ torch.ones(3, 2, dtype=dtype)
    found = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver="gels").solution.cpu()
    torch.testing.assert_close(found[2:], torch.ones(1, 2, dtype=dtype), rtol=1e-5, atol=0.0)
    b = a * torch.tensor([1.0, 0.0, 0.0])
    found = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver="gels").solution.cpu()
    torch.testing.assert_close(found[0, 0], torch.ones((), dtype=dtype), rtol=1e-5, atol=0.0)


def test_least_squares_ignore_autocast() -> None:
    a, b = (matrices(4, n, dtype=torch.float32, scale=1.0).to("mps") for n in (3, 2))
    expected = torch.linalg.lstsq(a, b).solution
    with torch.autocast("mps", dtype=torch.float16):
        out = tuple(torch.empty(0, dtype=x.dtype, device="mps") for x in torch.linalg.lstsq(a, b))
        aten = torch.ops.aten.linalg_lstsq.out
        found = aten(a, b, solution=out[0], residuals=out[1], rank=out[2], singular_values=out[3])[0]
    assert torch.equal(found.cpu(), expected.cpu())


@pytest.mark.parametrize("driver", ["gels", "gelsd"])
def test_residuals_of_a_zero_matrix(driver: str) -> None:
    a, b = torch.zeros(4, 3), torch.ones(4, 2)
    expected = torch.linalg.lstsq(a, b, driver=driver)
    found = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver=driver)
    assert torch.equal(found.residuals.cpu(), expected.residuals)
    assert torch.equal(found.solution.cpu(), expected.solution)


@pytest.mark.parametrize(
    ("rows", "columns", "sides", "driver"), [(4, 0, 3, "gels"), (4, 0, 3, "gelsd"), (4, 3, 0, "gelsy")]
)
def test_least_squares_of_empty_matrices(rows: int, columns: int, sides: int, driver: str) -> None:
    a, b = torch.ones(rows, columns), torch.ones(rows, sides)
    for ours, theirs in zip(
        torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver=driver),
        torch.linalg.lstsq(a, b, driver=driver),
        strict=True,
    ):
        assert torch.equal(ours.cpu(), theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [3e38, 1e-36])
def test_singular_values_of_columns_out_of_range(dtype: torch.dtype, scale: float) -> None:
    a = matrices(9, 3, dtype=dtype, scale=scale)
    u, s, vh = (x.cpu() for x in torch.linalg.svd(a.to("mps"), full_matrices=False))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    products = u.to(wide).mH @ a.to(wide) @ vh.to(wide).mH
    expected = torch.linalg.svdvals(a.to(wide))
    torch.testing.assert_close(products / expected[0], torch.diag(expected / expected[0]).to(wide), rtol=0, atol=1e-6)
    torch.testing.assert_close(s, expected.float(), rtol=1e-5, atol=0.0)


def test_eigenvalues_that_overflow() -> None:
    a = torch.tensor([[3e38, 3e38 + 3e38j], [3e38 - 3e38j, -2e38]], dtype=torch.complex64)
    expected = torch.linalg.eigvalsh(a.to(torch.complex128) / 3e38)
    values, vectors = (x.cpu() for x in torch.linalg.eigh(a.to("mps")))
    assert values.tolist() == [-math.inf, math.inf]
    v = vectors.to(torch.complex128)
    torch.testing.assert_close((v.mH @ (a.to(v) / 3e38) @ v).diagonal().real, expected, rtol=1e-6, atol=0.0)


def test_reflector_that_overflows() -> None:
    column = torch.tensor([[3e38 + 3e38j], [1e38 + 2e38j]], dtype=torch.complex64)
    _, tau = torch.geqrf(column.to("mps"))
    _, expected = torch.geqrf(column.to(torch.complex128))
    torch.testing.assert_close(tau.cpu(), expected.to(torch.complex64))
