"""The exponential of matrices and eigenvalues: errors of the CPU, known results, and which matrices are squared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.kernels.complex_triangular import complex_triangular
from mpsmith.kernels.matrix_exp import matrix_exp
from mpsmith.kernels.runtime.shader import MetalKernel
from mpsmith.simulator import metal

aten = torch.ops.aten

REGISTERED = ("linalg_matrix_exp", "_compute_linear_combination", "linalg_eig", "_linalg_eigvals", "linalg_eigvals")


ERRORS: dict[str, Callable[[str], Any]] = {
    "matrix_exp of a vector": lambda d: torch.linalg.matrix_exp(torch.ones(3, device=d)),
    "matrix_exp, not square": lambda d: torch.linalg.matrix_exp(torch.ones(2, 3, device=d)),
    "matrix_exp of integers": lambda d: torch.linalg.matrix_exp(torch.ones(2, 2, dtype=torch.int64, device=d)),
    "eig of a vector": lambda d: torch.linalg.eig(torch.ones(3, device=d)),
    "eig, not square": lambda d: torch.linalg.eig(torch.ones(2, 3, device=d)),
    "eig, out dtype": lambda d: torch.linalg.eig(
        torch.ones(2, 2, device=d), out=(torch.ones(2, device=d), torch.ones(2, 2, device=d))
    ),
    "combination of nothing": lambda d: aten._compute_linear_combination(
        torch.ones(0, 2, device=d), torch.ones(3, 0, device=d)
    ),
    "combination, out shape": lambda d: aten._compute_linear_combination.out(
        torch.ones(3, 2, device=d), torch.ones(4, 3, device=d), out=torch.ones(5, 2, device=d)
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_equal_the_cpu(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        ERRORS[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        ERRORS[name]("mps")
    words = [word for word in str(expected.value).split("\n")[0].split() if word.isalpha()][:5]
    assert [word for word in str(actual.value).split("\n")[0].split() if word.isalpha()][:5] == words


@pytest.mark.parametrize("n", [2, 34])
def test_matrix_exp_squares_each_matrix_by_its_own_norm(n: int) -> None:
    """Diagonal ones, whose exponentials are known, from norms that are not halved to those that always are."""
    numbers = torch.tensor([1e-8, 1.0, 2.5, 40.0, 5e4, 1e20, 3e38])
    x = torch.diag_embed(-numbers[:, None].expand(-1, n)).contiguous()
    actual = torch.linalg.matrix_exp(x.to("mps")).cpu()
    expected = torch.diag_embed((-numbers.double()).exp()[:, None].expand(-1, n))
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-37)


def test_a_rotation_by_a_large_angle_stays_one() -> None:
    angles = torch.tensor([0.5, 30.0, 200.0])
    x = torch.zeros(3, 2, 2)
    x[:, 0, 1], x[:, 1, 0] = -angles, angles
    actual = torch.linalg.matrix_exp(x.to("mps")).cpu()
    torch.testing.assert_close(actual[:, 0, 0], angles.cos(), rtol=0, atol=3e-5)
    torch.testing.assert_close(actual[:, 1, 0], angles.sin(), rtol=0, atol=3e-5)


def test_the_gradient_of_a_network_with_an_exponential_needs_no_fallback() -> None:
    x = torch.randn(3, 3)
    gradients = []
    for device in ("cpu", "mps"):
        weight = x.detach().to(device).requires_grad_()
        torch.linalg.matrix_exp(weight - weight.mT).square().sum().backward()
        torch.linalg.matrix_exp(weight).sum().backward()
        gradients.append(weight.grad.cpu())  # type: ignore[union-attr]
    torch.testing.assert_close(*gradients)


def test_eigenvalues_of_symmetric_real_matrices_are_real() -> None:
    x = torch.randn(5, 12, 12)
    x = x + x.mT
    values, vectors = torch.linalg.eig(x.to("mps"))
    assert not values.imag.cpu().any()
    assert not vectors.imag.cpu().any()
    torch.testing.assert_close(values.real.cpu().sort().values, torch.linalg.eigvalsh(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("factor", [1e30, 1e-30])
def test_eigenvalues_of_huge_and_tiny_matrices_are_scaled(factor: float) -> None:
    x = torch.tensor([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    values = torch.linalg.eigvals((x * factor).to("mps")).cpu() / factor
    ordered = sorted(values.tolist(), key=lambda value: value.imag)
    torch.testing.assert_close(torch.tensor(ordered), torch.tensor([-2j, 3, 2j], dtype=torch.complex64))


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_reported(number: float) -> None:
    x = torch.eye(3)
    x[1, 2] = number
    with pytest.raises(RuntimeError, match="input tensor should not contain infs or NaNs"):
        torch.linalg.eig(x)
    with pytest.raises(RuntimeError, match="input tensor should not contain infs or NaNs"):
        torch.linalg.eigvals(x.to("mps")).cpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_autocast_rounds_nothing_inside_of_an_exponential(dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(2)).to("mps", dtype)
    expected = torch.linalg.matrix_exp(x)
    with torch.autocast("mps", dtype=torch.float16):
        actual = torch.linalg.matrix_exp(x)
    assert actual.dtype == dtype
    assert torch.equal(actual.cpu(), expected.cpu())


@pytest.mark.parametrize(("norm", "launches"), [(0.5, 0), (2.0, 0), (6.0, 2), (100.0, 6), (math.nan, 0)])
def test_large_matrices_are_squared_as_often_as_their_norm_asks(
    norm: float, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    kernel_of = matrix_exp._shader.kernel

    def counted(name: str, device: torch.device) -> MetalKernel:
        kernel = kernel_of(name, device)
        if not name.startswith("square"):
            return kernel

        def launch(*arguments: Any, **options: Any) -> None:
            done.append(name)
            kernel(*arguments, **options)

        return launch

    monkeypatch.setattr(matrix_exp._shader, "kernel", counted)
    x = torch.eye(33) * torch.tensor([norm, 0.25])[:, None, None]
    actual = torch.linalg.matrix_exp(x.to("mps")).cpu()
    torch.testing.assert_close(actual, torch.linalg.matrix_exp(x), rtol=1e-5, atol=1e-5, equal_nan=True)
    assert len(done) == launches


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [3, 5, 33])
def test_inverses_of_factors_with_infinities_are_finite_where_the_cpus_are(n: int, upper: bool) -> None:
    """What is zero because of the shape is not multiplied by an infinity."""
    generator = torch.Generator().manual_seed(n)
    for _ in range(4):
        factors = torch.randn(2, n, n, dtype=torch.complex64, generator=generator).tril(-1) + 3 * torch.eye(n)
        factors[torch.rand(2, n, n, generator=generator) < 0.15] = math.inf
        factors = factors.mT if upper else factors
        expected = torch.cholesky_inverse(factors, upper)
        with metal.checking("checked"):
            inverse = complex_triangular.cholesky_inverse(factors.to("mps"), upper).cpu()
        finite = expected.isfinite()
        assert finite.any()
        torch.testing.assert_close(inverse[finite], expected[finite], rtol=1e-4, atol=1e-5)
