"""`scatter_reduce` with "prod" of int64, which torch has no kernel for on mps: no GPU multiplies 64 bits atomically."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ..runtime.layout import launch_elements, layout_of
from ..runtime.operands import require_device
from ..runtime.outputs import check_outputs, empty_results
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
_MODULUS = 1 << 64
# The powers of 5 are all the numbers that are 1 modulo 4.
_GENERATOR, _EXPONENT_BITS = 5, 62


def scatter_product(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """`scatter_reduce.two` with "prod" of int64; exact, for products wrap.

    An index out of range changes nothing and gives torch.AcceleratorError at the next synchronisation, from torch 2.11
    on.
    """
    arguments = [self, dim, index, src, reduce]
    empty_results(_aten.scatter_reduce.two, arguments, torch.device("meta"), include_self=include_self)
    require_device(self, {"index": index, "src": src}, "scatter_reduce")
    if src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    result = self.clone(memory_format=torch.contiguous_format)
    if index.numel():
        whole, index, src = (x.reshape(1) if x.dim() == 0 else x for x in (result, index, src))
        _multiply(whole, index, src, dim, include_self)
    return result


def scatter_product_(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """`scatter_reduce_.two`."""
    return self.copy_(scatter_product(self, dim, index, src, reduce, include_self=include_self))


def scatter_product_out(
    self: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    src: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: torch.Tensor,
) -> torch.Tensor:
    """`scatter_reduce.two_out`."""
    result = scatter_product(self, dim, index, src, reduce, include_self=include_self)
    arguments = [self, dim, index, src, reduce]
    check_outputs(_aten.scatter_reduce.two_out, arguments, {"out": out}, [self.dtype], include_self=include_self)
    return out.copy_(result)


def _multiply(result: torch.Tensor, index: torch.Tensor, src: torch.Tensor, dim: int, include_self: bool) -> None:
    """Multiply the sources into `result`, which is contiguous."""
    dim %= result.dim()
    device, elements = result.device, result.numel()
    exponents = torch.zeros(elements, dtype=torch.int64, device=device)
    twos, signs = (torch.zeros(elements, dtype=torch.int32, device=device) for _ in range(2))
    strides = [0 if d == dim else stride for d, stride in enumerate(result.stride())]
    places = result.as_strided(index.shape, strides)
    layout = layout_of([index, src.as_strided(index.shape, src.stride()), places])
    logs = logarithms(device)
    kernel = _shader.kernel(f"add_logarithms_{32 if layout.fits_32_bits else 64}", device)
    bounds = [result.stride(dim), result.shape[dim]]
    operands = (index, src, logs, exponents, twos, signs, bounds, layout.packed)
    casts = {len(operands) - 1: "int32"} if layout.fits_32_bits else None
    launch_elements(kernel, index.numel(), *operands, arg_casts=casts, reports=True)
    multiply = _shader.kernel("multiply_powers", device)
    launch_elements(multiply, elements, result, logs, exponents, twos, signs, elements, int(include_self))


@cache
def logarithms(device: torch.device) -> torch.Tensor:
    """To the base 5, modulo 2^62: the logarithms of 1 + 4, 1 + 8 and so on up to 1 + 2^63."""
    return torch.tensor([_logarithm(1 + 2**i) for i in range(2, 64)], dtype=torch.int64).to(device)


def _logarithm(x: int) -> int:
    """Bit by bit from the lowest one (Pohlig and Hellman, 1978): 5^(2^k) is 1 + 2^(k + 2) times an odd number."""
    exponent, inverse = 0, pow(_GENERATOR, -1, _MODULUS)
    for k in range(_EXPONENT_BITS):
        if x >> (k + 2) & 1:
            exponent |= 1 << k
            x = x * inverse % _MODULUS
        inverse = inverse * inverse % _MODULUS
    return exponent


def is_product_of_int64(
    self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, **options: object
) -> bool:
    """Whether torch has no kernel for the call on mps."""
    return self.dtype == torch.int64 and reduce == "prod"


KERNELS: tuple[tuple[str, Callable[..., Any]], ...] = ()
OVERRIDES = (
    ("aten::scatter_reduce.two", scatter_product, is_product_of_int64),
    ("aten::scatter_reduce_.two", scatter_product_, is_product_of_int64),
    ("aten::scatter_reduce.two_out", scatter_product_out, is_product_of_int64),
)
