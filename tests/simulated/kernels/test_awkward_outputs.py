"""Outputs that share memory with inputs, operands without elements, and strides against meta kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from mpsmith import kernels

FreshPython = Callable[..., Any]

REGISTERED = ("max", "min", "_int_mm", "_mps_convolution_transpose", "addr", "renorm", "cholesky_inverse")


@pytest.mark.parametrize(
    ("names", "call"),
    [
        (
            ("_mps_convolution", "_mps_convolution_transpose"),
            lambda x: torch.ops.aten._mps_convolution(x, x.float(), None, [0], [1], [1], 1),
        ),
        (
            ("_mps_convolution", "_mps_convolution_transpose"),
            lambda x: torch.ops.aten._mps_convolution_transpose(x, x.float(), [0], [0], [1], [1], 1),
        ),
        (
            ("_mps_convolution_transpose",),
            lambda x: torch.ops.aten._mps_convolution_transpose(x.bfloat16(), x.float(), [0], [0], [1], [1], 1),
        ),
        (
            ("linalg_solve_triangular",),
            lambda x: torch.linalg.solve_triangular(x.to(torch.complex64), x.float(), upper=True),
        ),
        (("triangular_solve",), lambda x: torch.triangular_solve(x.to(torch.complex64), x.float())),
        (("linear",), lambda x: torch.nn.functional.linear(x, x.int())),
        (
            ("adaptive_avg_pool3d",),
            lambda x: torch.ops.aten.adaptive_avg_pool3d.out(x[None], [1, 1, 1], out=x.new_empty(0, dtype=torch.float)),
        ),
    ],
)
def test_operands_of_another_dtype_are_refused(
    names: tuple[str, ...], call: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """A kernel would read the memory of such an operand as what it is not, and past its end."""
    with (
        kernels.use(*names),
        pytest.raises(RuntimeError, match=r"expected scalar type|have the same dtype|to have the same"),
    ):
        call(torch.ones(1, 2, 2, dtype=torch.int64, device="mps"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extremum_replaces_an_element_of_its_input(name: str, dtype: torch.dtype) -> None:
    x = torch.arange(6000).sub(2000).to(dtype).view(60, 100)
    mine = x.to("mps")
    expected = getattr(torch, name)(x)
    assert getattr(torch, name)(mine, out=mine[0, 0]).item() == expected
    assert mine[0, 0].item() == expected
    assert torch.equal(mine.cpu()[1:], x[1:])


def test_products_of_nothing_at_the_end_of_their_memory() -> None:
    left, right = (torch.ones(12, dtype=torch.int8, device="mps")[12:] for _ in range(2))
    product = torch._int_mm(left.view(3, 0), right.view(0, 4))
    assert torch.equal(product.cpu(), torch.zeros(3, 4, dtype=torch.int32))


@pytest.mark.parametrize("space", [1, 2, 3])
def test_transposed_convolutions_without_results_are_refused(space: int) -> None:
    messages = []
    for device in ("cpu", "mps"):
        x, weight = (torch.ones((1, 1, *[1] * space), dtype=torch.int64, device=device) for _ in range(2))
        with pytest.raises(RuntimeError) as error:
            getattr(functional, f"conv_transpose{space}d")(x, weight, padding=2)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0)])
@pytest.mark.parametrize("upper", [False, True])
def test_inverses_have_the_strides_of_the_meta_kernel(upper: bool, shape: tuple[int, ...]) -> None:
    factors = (torch.eye(shape[-1]) * 2 + torch.ones(shape).triu(1) * 0.5j).to(torch.complex64)
    factors = factors if upper else factors.mT.contiguous()
    inverse = torch.cholesky_inverse(factors.to("mps"), upper)
    torch.testing.assert_close(inverse.cpu(), torch.cholesky_inverse(factors, upper))
    assert inverse.stride() == torch.cholesky_inverse(factors.to("meta"), upper).stride()


def test_compiled_inverses() -> None:
    factors = torch.tensor([[2, 0, 0], [1j, 3, 0], [1, 1 + 1j, 1]], dtype=torch.complex64)
    compiled = torch.compile(torch.cholesky_inverse, fullgraph=True)
    torch.testing.assert_close(compiled(factors.to("mps")).cpu(), torch.cholesky_inverse(factors))


def test_first_calls_load_no_compiler(fresh_python: FreshPython) -> None:
    """Meta kernels in Python, and what they call, load sympy and torch._dynamo with their first call."""
    fresh_python(
        """
        kernels.enable()
        x, rows = torch.ones(2, dtype=torch.int32, device="mps"), torch.ones(2, 3, dtype=torch.complex64, device="mps")
        assert torch.addr(x, x, x).tolist() == [[2, 2], [2, 2]]
        torch.addr(x, x, x, out=torch.empty(0, dtype=torch.int32, device="mps"))
        torch.renorm(rows, 2, 0, 1.0)
        torch.renorm(rows, 2, 0, 1.0, out=torch.empty_like(rows))
        torch.linalg.svd(torch.ones(2, 2, device="mps"))
        torch.special.ndtri(x), torch.special.legendre_polynomial_p(x, 2)
        square = torch.eye(2, dtype=torch.complex64, device="mps")
        torch.linalg.inv(square), torch.linalg.inv(square, out=torch.empty(0, dtype=square.dtype, device="mps"))
        torch.linalg.solve_triangular(square, square, upper=True), torch.triangular_solve(square, square)
        torch.cholesky_inverse(square), torch.ormqr(*torch.geqrf(square), square)
        image = torch.ones(1, 1, 4, 4, dtype=torch.int64, device="mps")
        torch.conv2d(image, image[..., :2, :2])
        torch.nn.functional.interpolate(image.byte(), (3, 5), mode="bicubic", antialias=True)
        torch.nn.functional.interpolate(image.byte(), (3, 5), mode="bicubic")
        image[0, 0].scatter_reduce(0, torch.zeros_like(image[0, 0]), image[0, 0], "prod")
        torch.heaviside(x, x[:1])
        assert not {"sympy", "torch._dynamo"} & set(sys.modules)
        """,
        kernels_on="installed",
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.addr(x, x[None], x),
        lambda x: torch.addr(x, x, x[0]),
        lambda x: torch.addr(torch.ones(3, dtype=x.dtype, device=x.device), x, x),
        lambda x: torch.addr(x, x, x, beta=1.5),
        lambda x: torch.addr(x, x, x, alpha=True),
        lambda x: torch.addr(x.to(torch.complex64), x, x, out=torch.empty(0, dtype=torch.int64, device=x.device)),
        lambda x: torch.renorm(x.to(torch.complex64), 2, 0, 1.0),
        lambda x: torch.renorm(x.to(torch.complex64)[None], 0, 0, 1.0),
        lambda x: torch.renorm(x.to(torch.complex64)[None], 2, 0, -1.0),
        lambda x: torch.renorm(x.to(torch.complex64)[None], 2, 2, 1.0),
    ],
)
def test_errors_of_addr_and_renorm_are_those_of_the_cpu(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    messages = []
    for device in ("cpu", "mps"):
        with pytest.raises((RuntimeError, IndexError)) as error:
            call(torch.tensor([1, 2], device=device))
        messages.append(str(error.value).removesuffix(".0"))
    assert messages[0] == messages[1]


def test_no_data_races(fresh_python: FreshPython) -> None:
    """Odd sizes above one block of eigh, and an extremum into its input."""
    fresh_python(
        """
        for n, dtype in ((49, torch.float32), (33, torch.complex64)):
            a = torch.randn(n, n, dtype=dtype)
            torch.linalg.eigh((a + a.mH).to("mps"))
        x = torch.randn(40, 5, device="mps")
        torch.max(x, out=x[0, 0])
        """,
        kernels_on="installed",
        MPSMITH_METAL_MODE="checked",
    )
