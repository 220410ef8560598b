"""No launch has more work than a limit: larger calls are several launches, with the same results, or go to the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.nn import functional

from mpsmith import kernels
from mpsmith.kernels.runtime import convergence, rows
from mpsmith.kernels.runtime.catalog import overloads
from mpsmith.kernels.runtime.shader import Shader
from mpsmith.simulator import metal

FAMILIES = (
    *("int_mm", "scaled_mm", "matrix_exp", "ctc_loss", "pdist", "complex_triangular", "svd", "ldl"),
    *("put_take", "scatter_product", "convolution", "mode", "multilabel_margin_loss", "multi_margin_loss"),
    *("adaptive_avg_pool3d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d"),
    *("embedding_renorm", "segment_reduce", "upsample_antialias", "upsample_antialias_forward"),
    *("orthogonal_polynomials", "eig"),
)
FLOAT8 = torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def registered(simulated_device: object) -> Iterator[None]:
    metal.install()
    with kernels.use(*(overload for family in FAMILIES for overload in overloads(family))):
        yield


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Name and number of threads of each launch."""
    launched: list[tuple[str, int]] = []
    usual = Shader.kernel

    def kernel(self: Shader, name: str, device: torch.device) -> Any:
        def noted(*arguments: object, threads: Any, **options: Any) -> None:
            launched.append((name, math.prod((threads,) if isinstance(threads, int) else threads)))
            usual(self, name, device)(*arguments, threads=threads, **options)

        return noted

    monkeypatch.setattr(Shader, "kernel", kernel)
    return launched


def layouts(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same numbers on the device: contiguous, transposed, sliced, and beginning in the middle."""
    wide = x.new_zeros((x.shape[0] * 2 + 1, x.shape[1] * 3))
    wide[1::2, ::3] = x
    later = torch.cat([x.new_zeros(4 * x.shape[1]), x.reshape(-1)])
    return {
        "contiguous": x.to("mps"),
        "transposed": x.t().contiguous().to("mps").t(),
        "sliced": wide.to("mps")[1::2, ::3],
        "offset": later.to("mps")[4 * x.shape[1] :].view(x.shape),
        "expanded": x[:1].to("mps").expand(x.shape),
    }


LAYOUTS = ("contiguous", "transposed", "sliced", "offset", "expanded")
PLACES, FACTORS = torch.tensor([[3, 0, 3, 3, -1, 2, 3, 1, 0, 3, 3], [3, -5, 2, 7, 4, -1, 9, 6, 5, -3, 11]])


def _put_in_order(x: torch.Tensor) -> torch.Tensor:
    torch.use_deterministic_algorithms(True)
    try:
        return x.round().put_(PLACES.to(x.device), x[0, :11].round(), accumulate=True)
    finally:
        torch.use_deterministic_algorithms(False)


def _fractional(x: torch.Tensor, sizes: Sequence[int], outputs: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    samples = torch.linspace(0.1, 0.9, x.shape[0] * x.shape[1] * len(sizes)).view(*x.shape[:2], -1)
    pool = torch.ops.aten.fractional_max_pool2d if len(sizes) == 2 else torch.ops.aten.fractional_max_pool3d
    return pool(x, sizes, outputs, samples.to(x.device, x.dtype))  # type: ignore[no-any-return]


def _gradient_of_distances(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(torch.pdist(x).sum(), x)[0]


# Kernel, limit, launches, and a call with a matrix of (150, 70).
SPLIT: dict[str, tuple[str, str, int, int, Callable[[torch.Tensor], torch.Tensor]]] = {
    "whole numbers": (
        *("int_mm_char", "MOST_PRODUCTS", 64 * 24 * 40, 3),
        lambda x: torch._int_mm(x[:, :24].to(torch.int8), x[:24, :40].to(torch.int8)),
    ),
    "distances": ("pdist_large_float", "MOST_PRODUCTS", 2 * 7 * 70, 4, lambda x: torch.pdist(x[:7])),
    "short distances": ("pdist_float", "MOST_PRODUCTS", 3 * 7 * 5, 3, lambda x: torch.pdist(x[:7, :5])),
    "gradient": ("pdist_backward_float", "MOST_PRODUCTS", 5 * 7 * 70, 2, lambda x: _gradient_of_distances(x[:7])),
    "triangles": (
        *("solve_triangle", "MOST_PRODUCTS", 20 * 2 * 7 * 7, 4),
        lambda x: torch.linalg.solve_triangular((x[:7, :7].abs() + 1) * (1 + 0j), x[:7] + 1j, upper=True),
    ),
    "sums": (
        *("put_accumulate_float", "MOST_CONTENDED_ADDITIONS", 4, 3),
        lambda x: x.clone().put_(PLACES.to(x.device), x[0, :11], accumulate=True),
    ),
    "products": (
        *("add_logarithms_32", "MOST_CONTENDED_ADDITIONS", 4, 3),
        lambda x: x[0, :4].long().scatter_reduce(0, PLACES.to(x.device) % 4, FACTORS.to(x.device), "prod"),
    ),
    "sums in order": ("put_accumulate_sorted_float", "MOST_CONTENDED_ADDITIONS", 4, 3, _put_in_order),
    "planes": (
        *("fractional_max_pool2d_rows_32_float", "MOST_PRODUCTS", 2 * 4 * 6 * 20, 3),
        lambda x: torch.cat([y.flatten() for y in _fractional(x[:25].view(1, 5, 5, 70), (2, 3), (4, 5))]),
    ),
    "convolutions": (
        *("convolve", "MOST_PRODUCTS", 2 * 4 * 7 * 3, 4),
        lambda x: torch.conv1d(x.long()[:7, None, :9], x.long()[:4, None, :3]),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SPLIT)
def test_several_launches_agree_with_one(
    name: str, layout: str, launches: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, limit, most, expected, call = SPLIT[name]
    x = layouts(torch.randint(-9, 10, (150, 70)) + torch.rand(150, 70))[layout]
    whole = call(x).cpu()
    monkeypatch.setattr(rows, limit, most)
    assert torch.equal(call(x).cpu(), whole)
    assert [launched for launched, _ in launches].count(kernel) == 1 + expected
    assert torch.allclose(whole, call(x.cpu()), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("most", "expected"), [(5 * 12 * 12 // 32, 12), (rows.MOST_STEPS, 1)])
def test_vectors_of_zeros_are_completed(
    most: int, expected: int, launches: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_STEPS", most)
    x = torch.randn(40, 3) @ torch.randn(3, 12)
    u, s, vh = (part.cpu() for part in torch.linalg.svd(x.to("mps"), full_matrices=False))
    assert [name for name, _ in launches].count("svd_complete_float") == expected
    assert torch.allclose(u.mT @ u, torch.eye(12), atol=1e-5)
    assert torch.allclose((u * s) @ vh, x, atol=1e-4)


@pytest.mark.parametrize("by_row", [False, True])
def test_products_of_8_bit_floats(
    by_row: bool, launches: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (torch.randn(shape).to(FLOAT8) for shape in ((150, 32), (48, 32)))
    scales = (torch.rand(150, 1), torch.rand(1, 48)) if by_row else (torch.rand(()), torch.rand(()))
    operands = [x.to("mps") for x in (a, b, *scales)]

    def product() -> torch.Tensor:
        return torch._scaled_mm(operands[0], operands[1].t(), *operands[2:], out_dtype=torch.float32).cpu()

    whole = product()
    monkeypatch.setattr(rows, "MOST_PRODUCTS", 64 * 32 * 48)
    assert torch.equal(product(), whole)
    assert len(launches) == 1 + 3
    exact = (a.double() @ b.double().t()) * scales[0].double() * scales[1].double()
    assert torch.allclose(whole.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("n", "most", "expected"), [(5, 2 * 128 * 125, 2), (40, 64_000, None), (40, 63_999, 0)])
def test_matrix_exponentials(
    n: int, most: int, expected: int | None, launches: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_PRODUCTS", most)
    x = torch.randn(3, n, n) * torch.tensor([0.1, 1.0, 2.0])[:, None, None]
    actual = torch.matrix_exp(x.to("mps")).cpu().double()
    exact = torch.matrix_exp(x.double())
    assert (actual - exact).abs().max() <= 1e-3 * exact.abs().max()
    squares = [threads for name, threads in launches if name.startswith("square")]
    if expected is not None:  # two launches for three small matrices; none where a single matrix is too large
        assert len(squares) == expected
    else:  # one matrix of tiles of 16 by 16 threads in each launch
        assert set(squares) == {32 * 32}


def _aligned(x: torch.Tensor) -> torch.Tensor:
    values = x[:40].detach().real.reshape(20, 2, 70)[..., :4].log_softmax(-1).requires_grad_()
    targets = torch.tensor([[1, 2, 3], [3, 3, 1]]).to(x.device)
    loss = functional.ctc_loss(values, targets, [20, 17], [3, 2], reduction="sum")
    return torch.cat([loss.view(1), torch.autograd.grad(loss, values)[0].view(-1)])


def _factorized(x: torch.Tensor) -> torch.Tensor:
    a, shifted = x[:6, :6], x[:6, :6] + 9 * torch.eye(6).to(x.device)
    (factors, pivots, _), safe = (torch.linalg.ldl_factor_ex(y, hermitian=True) for y in (a, shifted))
    solved = torch.linalg.ldl_solve(*safe[:2], x[:6, 6:8], hermitian=True)
    return torch.cat([factors.reshape(-1), pivots, solved.reshape(-1)])


def _margins(x: torch.Tensor) -> torch.Tensor:
    labels = torch.tensor([[0, 3, 1, -1] + [0] * 66, [69, -1] + [1] * 68] * 75).to(x.device)
    values = x.detach().real.requires_grad_()
    loss = functional.multilabel_margin_loss(values, labels)
    return torch.cat([loss.view(1), *torch.autograd.grad(loss, values)[0]])


_averages, _maxima = functional.adaptive_avg_pool3d, torch.ops.aten.adaptive_max_pool3d


def _gradient(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = x.detach().real.requires_grad_()
    result = function(x)
    return torch.autograd.grad((result * torch.arange(result.numel()).to(x).view(result.shape)).sum(), x)[0]


def _margin(x: torch.Tensor) -> torch.Tensor:
    return functional.multi_margin_loss(x.reshape(20, 525), torch.arange(20).to(x.device), reduction="none")


def _renormed(x: torch.Tensor, norm_type: float) -> torch.Tensor:
    return torch.embedding_renorm_(x.reshape(21, 500).clone(), torch.tensor([3, 9, 3]).to(x.device), 1.0, norm_type)


def _segments(reduce: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Three segments; products have several zeros, and stay small."""
    borders = torch.tensor([0, 3, 3, 150])
    return lambda x: torch.segment_reduce(x.real.clamp(0, 1), reduce, offsets=borders.to(x.device), axis=0, initial=0.5)


def _lanczos(x: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    return torch.ops.aten._upsample_lanczos2d_aa(x[None, None], size, False)  # type: ignore[no-any-return]


HANDED_OVER: dict[str, tuple[str, int, Callable[[torch.Tensor], torch.Tensor]]] = {
    "alignments": ("ctc_alpha", 20, _aligned),
    "factorization": ("ldl_factor_float2_hermitian", 6**3 // 96, _factorized),
    "mode": ("mode_float", 70 // 16, lambda x: torch.mode((x.real * 3).round(), 1).values),
    "windows": ("adaptive_avg_pool3d_large_float", 75 * 35 // 256, lambda x: _averages(x.real[None, None], (1, 2, 2))),
    "maxima": (
        *("adaptive_max_pool3d_large_float", 75 * 35 // 256),
        lambda x: torch.cat(_maxima(x.real[None, None], (1, 2, 2)), -1),
    ),
    "windows over an element": (
        *("adaptive_avg_pool3d_backward_float", 11 * 9),
        lambda x: _gradient(lambda y: _averages(y, (11, 9, 70)), x[:, None, None]),
    ),
    "maxima over an element": (
        *("adaptive_max_pool3d_backward_float", 11 * 9),
        lambda x: _gradient(lambda y: _maxima(y, (11, 9, 70))[0], x[:, None, None]),
    ),
    "random windows": (
        *("fractional_max_pool2d_rows_32_float", 2 * 9 * 8),
        lambda x: torch.cat(_fractional(x.real[None, None], (9, 8), (5, 7)), -1),
    ),
    "random volumes": (
        *("fractional_max_pool3d_32_float", 2 * 2 * 9 * 8),
        lambda x: torch.cat(_fractional(x.real.reshape(1, 1, 3, 50, 70), (2, 9, 8), (1, 3, 7)), -1),
    ),
    "classes": ("multi_margin_loss_float", 525 // 256, lambda x: _margin(x.real)),
    "gradients of classes": ("multi_margin_loss_backward_float", 525 // 256, lambda x: _gradient(_margin, x)),
    "norms": ("embedding_renorm_vectors_float2", 500 // 256, lambda x: _renormed(x, 2.0)),
    "norms of magnitudes": ("embedding_renorm_float2", 500 // 256, lambda x: _renormed(x, 1.0)),
    "segments": ("segment_reduce_float", 147 // 8, _segments("mean")),
    "gradients of segments": ("segment_reduce_backward_float", 147 // 8, lambda x: _gradient(_segments("max"), x)),
    "gradients of products": ("segment_reduce_backward_float", 147**2 // 8, lambda x: _gradient(_segments("prod"), x)),
    "filter": ("forward_float_float", 3 * 70, lambda x: _lanczos(x.real, (150, 2))),
    "bytes": (
        *("antialias_bytes", 3 * 70),
        lambda x: torch.ops.aten._upsample_bilinear2d_aa(
            (x.real * 60 + 99).byte()[None, None], (150, 2), False
        ).float(),
    ),
    "gradients of a filter": ("backward_float_float", 3 * 70, lambda x: _gradient(lambda y: _lanczos(y, (150, 2)), x)),
    "degree": (
        *("special_legendre_polynomial_p_strided_float", 300 // 64),
        lambda x: torch.special.legendre_polynomial_p(x.real.cos(), 300.0),
    ),
    "margins": ("multilabel_margin_loss_float", 70 * 3 // 1024 + 4, _margins),
    "triangle": (
        *("solve_triangle", 48 * 70),
        lambda x: torch.linalg.solve_triangular(x[:70].triu() + 9 * torch.eye(70).to(x.device), x[:70, :3], upper=True),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", HANDED_OVER)
def test_calls_too_long_for_one_launch_run_on_the_cpu(
    call: str, layout: str, launches: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, steps, function = HANDED_OVER[call]
    x = layouts(torch.randn(150, 70, dtype=torch.complex64))[layout]
    wanted = function(x.cpu())
    monkeypatch.setattr(rows, "MOST_STEPS", steps)
    assert torch.allclose(function(x).cpu(), wanted, rtol=1e-3, atol=1e-3)
    assert kernel in {name for name, _ in launches}
    launches.clear()
    monkeypatch.setattr(rows, "MOST_STEPS", steps - 1)
    monkeypatch.setattr(convergence, "_warned", set())
    with pytest.warns(UserWarning, match="one launch would take too long for .*; this call runs on the CPU"):
        assert torch.allclose(function(x).cpu(), wanted, rtol=1e-3, atol=1e-3)
    assert kernel not in {name for name, _ in launches}


@pytest.mark.parametrize("tile", [1, 64])
@pytest.mark.parametrize("cost", [1, 2**20, 2**36, 2**62])
@pytest.mark.parametrize("count", [0, 1, 65, 2**20 + 3])
def test_no_launch_has_more_than_the_limit(count: int, cost: int, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Callable[[], None]] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append(lambda: None))
    if count * cost > 2**56:
        count %= 1000
    parts = [(part.start, part.stop) for part in rows.short_launches(count, cost, tile)]
    assert all((stop - start) * cost <= max(rows.MOST_PRODUCTS, tile * cost) for start, stop in parts)
    assert all(start % tile == 0 for start, _ in parts)
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])][: len(parts)]
    assert (parts[-1][1] if parts else 0) == count
    assert len(waited) == max(len(parts) - 1, 0)


@pytest.mark.parametrize("function", [torch.special.legendre_polynomial_p, torch.special.laguerre_polynomial_l])
def test_a_degree_too_large_for_the_host_gives_nan(function: Callable[..., torch.Tensor]) -> None:
    degrees = torch.tensor([2.0**24 + 2, 2.0**60, -(2.0**30), 3.0])
    actual = function(torch.full((4,), 0.3).to("mps"), degrees.to("mps")).cpu()
    assert actual[:2].isnan().all()
    assert torch.allclose(actual[2:], function(torch.full((2,), 0.3), degrees[2:]))
