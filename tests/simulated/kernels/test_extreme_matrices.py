"""Factors and least squares of matrices at the ends of float32, of zeros, and of nothing."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mpsmith.kernels.eig import eig
from mpsmith.kernels.eigh import eigh
from mpsmith.kernels.runtime import convergence
from mpsmith.kernels.svd import decomposition
from mpsmith.kernels.verification.matrix_kinds import (
    eig_residuals,
    eigh_residuals,
    kinds,
    median_residuals_of_lapack,
    residuals_on,
)
from mpsmith.simulator import metal

DTYPES = (torch.float32, torch.complex64)

REGISTERED = ("linalg_lstsq", "_linalg_svd", "linalg_svd", "_linalg_eigh", "geqrf", "linalg_eig", "_linalg_eigvals")


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
        actual = torch.linalg.lstsq(a.to("mps"), b.to("mps"), rcond=1e-6, driver=driver)
        assert actual.solution.isfinite().all()
        for ours, theirs in zip(actual, expected, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs.to(ours.dtype), rtol=1e-4, atol=0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gels_with_columns_of_different_scales(dtype: torch.dtype) -> None:
    a = matrices(5, 3, dtype=dtype, scale=1.0) * torch.tensor([1e-38, 1.0, 3e37])
    b = a @ torch.ones(3, 2, dtype=dtype)
    solution = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver="gels").solution.cpu()
    torch.testing.assert_close(solution[2:], torch.ones(1, 2, dtype=dtype), rtol=1e-5, atol=0.0)
    b = a * torch.tensor([1.0, 0.0, 0.0])
    solution = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver="gels").solution.cpu()
    torch.testing.assert_close(solution[0, 0], torch.ones((), dtype=dtype), rtol=1e-5, atol=0.0)


def test_least_squares_ignore_autocast() -> None:
    a, b = (matrices(4, n, dtype=torch.float32, scale=1.0).to("mps") for n in (3, 2))
    expected = torch.linalg.lstsq(a, b).solution
    with torch.autocast("mps", dtype=torch.float16):
        out = tuple(torch.empty(0, dtype=x.dtype, device="mps") for x in torch.linalg.lstsq(a, b))
        aten = torch.ops.aten.linalg_lstsq.out
        solution = aten(a, b, solution=out[0], residuals=out[1], rank=out[2], singular_values=out[3])[0]
    assert torch.equal(solution.cpu(), expected.cpu())


def test_gels_refuses_equal_columns_as_the_cpu_does() -> None:
    rows = [
        [0.46738246, 0.21962328, 0.11738874],
        [-0.02117828, 0.9690335, -0.09892],
        [-0.4322067, 0.10218325, 0.8917019],
    ]
    a = torch.tensor([*rows, [0.7709228, -0.04902172, 0.42608440]])[:, [0, 1, 2, 0]]
    for device in ("cpu", "mps"):
        with pytest.raises(torch.linalg.LinAlgError, match="does not have full rank"):
            torch.linalg.lstsq(a.to(device), a.to(device), driver="gels")


@pytest.mark.parametrize("driver", ["gels", "gelsd"])
def test_residuals_of_a_zero_matrix(driver: str) -> None:
    a, b = torch.zeros(4, 3), torch.ones(4, 2)
    expected = torch.linalg.lstsq(a, b, driver=driver)
    actual = torch.linalg.lstsq(a.to("mps"), b.to("mps"), driver=driver)
    assert torch.equal(actual.residuals.cpu(), expected.residuals)
    assert torch.equal(actual.solution.cpu(), expected.solution)


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


@pytest.mark.filterwarnings("ignore:mpsmith")
def test_singular_values_beside_one_that_overflows_are_the_cpus() -> None:
    a = torch.tensor([[3e38, 3e38, 1.0], [3e38, 3e38, 20.0], [1.0, 20.0, 1.0]])
    for matrix in (a, torch.block_diag(a, torch.eye(30))):
        expected = torch.linalg.svd(matrix)
        assert expected.S[0] == math.inf
        for ours, theirs in zip(torch.linalg.svd(matrix.to("mps")), expected, strict=True):
            assert torch.equal(ours.cpu(), theirs)


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


def with_singular_values(values: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix with random orthonormal factors."""
    wide = torch.complex128 if dtype.is_complex else torch.float64
    generator = torch.Generator().manual_seed(0)
    n = len(values)
    left, right = (torch.linalg.qr(torch.randn(n, n, dtype=wide, generator=generator))[0] for _ in range(2))
    return ((left * values.double()) @ right).to(dtype)


GRADED: dict[str, tuple[torch.dtype, Callable[[], Tensor]]] = {
    "values to 1e-6, n = 200": (torch.float32, lambda: with_singular_values(torch.logspace(0, -6, 200), torch.float32)),
    "values to 1e-10, complex, n = 96": (
        torch.complex64,
        lambda: with_singular_values(torch.logspace(0, -10, 96), torch.complex64),
    ),
    "Vandermonde, n = 128": (torch.float32, lambda: torch.vander(torch.linspace(0, 1, 128))),
    "rows to 1e-30, n = 100": (
        torch.float32,
        lambda: matrices(100, 100, dtype=torch.float32, scale=1.0) * torch.logspace(0, -30, 100)[:, None],
    ),
    "columns to 1e-30, 49 by 24": (
        torch.float32,
        lambda: matrices(49, 24, dtype=torch.float32, scale=1.0) * torch.logspace(0, -30, 24),
    ),
}


@pytest.mark.parametrize("name", GRADED)
def test_graded_matrices_converge_on_the_gpu(name: str, recwarn: pytest.WarningsRecorder) -> None:
    dtype, make = GRADED[name]
    a = make()
    u, s, vh = (x.cpu().to(torch.complex128) for x in torch.linalg.svd(a.to("mps"), full_matrices=False))
    scale = float(torch.linalg.matrix_norm(a.to(torch.complex128), 2))
    eye = torch.eye(len(s), dtype=torch.complex128)
    for residual in ((a - (u * s) @ vh) / scale, u.mH @ u - eye, vh @ vh.mH - eye):
        assert float(torch.linalg.matrix_norm(residual, 2)) < 40 * torch.finfo(dtype).eps
    torch.testing.assert_close(torch.linalg.svdvals(a.to("mps")).cpu().double(), s.real, rtol=0.0, atol=1e-6 * scale)
    assert not [warning for warning in recwarn if "mpsmith" in str(warning.message)]


def test_calls_that_do_not_converge_go_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposition, "_SWEEPS", 2)
    monkeypatch.setattr(eigh, "_MOST_READ_BACKS", 1)
    monkeypatch.setattr(eigh, "_SWEEPS", 2)
    monkeypatch.setattr(convergence, "_warned", set())
    a = matrices(2, 60, 60, dtype=torch.float32, scale=1.0)
    for decompose, name in ((torch.linalg.svd, "svd"), (torch.linalg.eigh, "eigh")):
        with pytest.warns(
            UserWarning, match=rf"mpsmith: linalg\.{name}: .*did not converge; this call runs on the CPU"
        ):
            results = decompose(a.to("mps"))
        for ours, expected in zip(results, decompose(a), strict=True):
            assert ours.device.type == "mps"
            assert torch.equal(ours.cpu(), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.linalg.svd(a.to("mps"))


def test_eigh_goes_on_after_the_first_sweeps(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    monkeypatch.setattr(eigh, "_SWEEPS", 2)
    a = matrices(65, 65, dtype=torch.float32, scale=1.0)
    values, vectors = (x.cpu() for x in torch.linalg.eigh((a + a.mT).to("mps")))
    torch.testing.assert_close((vectors * values) @ vectors.mT, a + a.mT, rtol=0, atol=2e-5)
    assert not [warning for warning in recwarn if "mpsmith" in str(warning.message)]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the family's kernels that are launched."""
    names: list[str] = []
    kernel = decomposition._shader.kernel
    monkeypatch.setattr(
        decomposition._shader, "kernel", lambda name, device: names.append(name) or kernel(name, device)
    )
    return names


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 8, 5), (2, 6, 7), (32, 32), (31, 9), (1, 32)])
def test_small_matrices_take_one_launch(
    shape: tuple[int, ...], dtype: torch.dtype, full: bool, launched: list[str]
) -> None:
    a = matrices(*shape, dtype=dtype, scale=1.0)
    a[..., -1:] = a[..., :1]  # of less than full rank
    with metal.checking("checked"):
        u, s, vh = (x.cpu().to(torch.complex128) for x in torch.linalg.svd(a.to("mps"), full_matrices=full))
    assert len(launched) == 1
    k = s.shape[-1]
    products = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    torch.testing.assert_close(products, a.to(products), rtol=0, atol=4e-6)
    for vectors in (u.mH @ u, vh @ vh.mH):
        torch.testing.assert_close(
            vectors, torch.eye(vectors.shape[-1]).to(vectors).expand_as(vectors), rtol=0, atol=2e-6
        )


def test_small_matrices_that_need_qr_get_it(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    small = decomposition._decompose_small
    monkeypatch.setattr(
        decomposition, "_decompose_small", lambda *arguments: (*small(*arguments)[:3], torch.ones(1, dtype=torch.int32))
    )
    a = matrices(5, 5, dtype=torch.float32, scale=1.0)
    torch.testing.assert_close(torch.linalg.svdvals(a.to("mps")).cpu(), torch.linalg.svdvals(a), rtol=1e-5, atol=1e-6)
    assert launched[:2] == ["svd_small8_float", "svd_scaling_float"]


@pytest.mark.filterwarnings("ignore:mpsmith")
@pytest.mark.parametrize("dtype", DTYPES)
def test_directions_of_zeros_are_completed_without_a_race(dtype: torch.dtype) -> None:
    matrix = torch.zeros(33, 33, dtype=dtype)
    matrix[0, 1] = matrix[5, 2] = 3.0
    with metal.checking("checked"):
        left = torch.linalg.svd(matrix.to("mps")).U.cpu()
    torch.testing.assert_close(left.mH @ left, torch.eye(33, dtype=dtype))


@pytest.mark.filterwarnings("ignore:mpsmith")
@pytest.mark.parametrize("value", [math.nan, -math.inf])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 3), (33, 33), (50, 50)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_that_are_not_finite_go_to_the_cpu(dtype: torch.dtype, shape: tuple[int, ...], value: float) -> None:
    """LAPACK raises for some, and returns zeros, infinities or NaN for others, not always the same."""
    a = matrices(*shape, dtype=dtype, scale=1.0)
    a[..., 0] = value
    for decompose in (torch.linalg.svd, torch.linalg.svdvals, torch.linalg.eigh, torch.linalg.lstsq):
        operands = (a, a) if decompose is torch.linalg.lstsq else (a,)
        on_mps = [operand.to("mps") for operand in operands]
        with convergence.reasons_for_the_cpu() as reasons:
            try:
                decompose(*operands)
            except RuntimeError as error:
                with pytest.raises(type(error), match=re.escape(str(error))):
                    decompose(*on_mps)
            else:
                assert all(result.device.type == "mps" for result in decompose(*on_mps))
        assert len(reasons) == 1


def test_least_squares_that_go_to_the_cpu_decompose_nothing_there() -> None:
    a = torch.tensor([[1.0, math.nan], [2.0, 3.0]])
    with convergence.reasons_for_the_cpu() as reasons, pytest.raises(RuntimeError, match="illegal value"):
        torch.linalg.lstsq(a.to("mps"), a.to("mps"))
    assert reasons == ["torch.linalg.lstsq: a matrix or its result is not finite"]


def assert_eigenvectors(a: Tensor, units: float) -> Tensor:
    """Check the residuals, in epsilons of the norm, and the lengths. Returns the values."""
    wide = a.to(torch.complex128)
    norm, epsilon = float(torch.linalg.matrix_norm(wide, 2)), torch.finfo(torch.float32).eps
    values, vectors = (x.cpu().to(torch.complex128) for x in torch.linalg.eig(a.to("mps")))
    residuals = torch.linalg.vector_norm(wide @ vectors - vectors * values, dim=0)
    assert float(residuals.max()) < units * epsilon * norm
    torch.testing.assert_close(torch.linalg.vector_norm(vectors, dim=0), torch.ones(len(a)).double(), rtol=0, atol=3e-7)
    return values


@pytest.mark.parametrize("n", [49, 65, 100])
def test_eigenvectors_of_graded_matrices(n: int) -> None:
    """Real eigenvalues that are ill-conditioned: the CPU's residuals are 1.7 to 2.9 epsilons."""
    a = with_singular_values(torch.logspace(0, -6, n), torch.float32)
    values = assert_eigenvectors(a, 8.0)
    upper = values.imag > 0
    assert torch.equal(values[1:][upper[:-1]], values[:-1][upper[:-1]].conj())
    assert int(upper.sum()) == int((values.imag < 0).sum())


def test_eigenvectors_of_columns_of_different_scales() -> None:
    for n in (33, 100):
        assert_eigenvectors(matrices(n, n, dtype=torch.float32, scale=1.0) * torch.logspace(0, -30, n), 8.0)


def test_eigenvectors_from_sums_of_equal_numbers() -> None:
    """Each addition of equal numbers is rounded to the same side."""
    assert_eigenvectors(torch.ones(33, 33), 3.0)


def test_eigenvectors_beside_equal_diagonal_elements(recwarn: pytest.WarningsRecorder) -> None:
    off = [[0.0, 0.4, 0.2], [0.4, 0.0, -0.6], [0.2, -0.6, -1.5]]  # half a unit in the last place, and less
    assert_eigenvectors(torch.eye(3) + torch.tensor(off) * 2.0**-23, 8.0)
    assert_eigenvectors(kinds(3, torch.float32)["clustered"], 8.0)
    assert not [warning for warning in recwarn if "mpsmith" in str(warning.message)]


@pytest.mark.parametrize("family", ["svd", "eigh"])
def test_vectors_stay_orthonormal_over_many_rotations(family: str) -> None:
    """Both lose half a unit in the last place for each rotation, of which there are hundreds for each column."""
    a = torch.vander(torch.linspace(0, 1, 100))
    u = torch.linalg.svd(a.to("mps")).U if family == "svd" else torch.linalg.eigh((a + a.mT).to("mps")).eigenvectors
    u = u.cpu().double()
    distance = torch.linalg.matrix_norm(u.mT @ u - torch.eye(100))
    assert float(distance) < 50 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("complex_steps", [False, True])
def test_eigenvalues_of_large_matrices_come_from_the_cpu(complex_steps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "_warned", set())
    monkeypatch.setattr(eig, "MOST_ROWS", 20)
    a = matrices(21, 21, dtype=torch.complex64 if complex_steps else torch.float32, scale=1.0)
    with pytest.warns(UserWarning, match=r"mpsmith: linalg\.eig: .* more than 20 rows; this call runs on the CPU"):
        values, vectors = torch.linalg.eig(a.to("mps"))
    assert values.device.type == vectors.device.type == "mps"
    for ours, expected in zip((values, vectors), torch.linalg.eig(a), strict=True):
        assert torch.equal(ours.cpu(), expected)
    assert torch.equal(torch.linalg.eigvals(a.to("mps")).cpu(), torch.linalg.eigvals(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("family", "n"), [("eig", 33), ("eig", 65), ("eigh", 33), ("eigh", 65)])
def test_each_residual_is_within_three_times_lapacks(family: str, n: int, dtype: torch.dtype) -> None:
    decompose, residuals = getattr(torch.linalg, family), eig_residuals if family == "eig" else eigh_residuals
    hermitian = family == "eigh"
    ours = residuals_on("mps", n, dtype, decompose, residuals, hermitian=hermitian)
    lapacks = median_residuals_of_lapack(n, dtype, decompose, residuals, hermitian=hermitian)
    times = ours / lapacks.clamp(min=1)
    assert {name: row for name, row in zip(kinds(n, dtype), times.mT.tolist(), strict=True) if max(row) > 3} == {}
