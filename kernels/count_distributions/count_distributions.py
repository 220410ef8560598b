"""Draws from the Poisson and the binomial distribution: each element has its own sequence of Philox numbers."""

from __future__ import annotations

import torch

from ..runtime.layout import broadcast, expanded, launch_elements
from ..runtime.operands import FLOATING, not_implemented, require_device, scalar_type
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_SEED_WORDS = 4


def poisson(self: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """`poisson`: a count for each rate. The device reports a negative or NaN rate."""
    if self.dtype not in FLOATING:
        raise not_implemented("poisson_cpu", self.dtype)
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if out.numel():
        kernel = _shader.kernel(f"poisson_{METAL_TYPES[self.dtype]}", self.device)
        operands = (self.contiguous(), _seed(self.device, generator), out.numel())
        launch_elements(kernel, out.numel(), out, *operands, reports=True)
    return out


def binomial(count: torch.Tensor, prob: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """`binomial`: the number of `count` trials that succeed; both broadcast. Only float32, as on the CPU."""
    require_device(count, {"prob": prob}, "binomial")
    for name, x in (("count", count), ("prob", prob)):
        if not x.is_floating_point():
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {scalar_type(x.dtype)}")
    if prob.dtype != count.dtype:
        raise RuntimeError(f"Found dtype {scalar_type(prob.dtype)} but expected {scalar_type(count.dtype)}")
    if count.dtype != torch.float32:
        raise not_implemented("binomial_cpu", count.dtype)
    shape = broadcast(count.shape, prob.shape)
    out = torch.empty(shape, dtype=count.dtype, device=count.device)
    if out.numel():
        counts, probabilities = expanded(count, shape).contiguous(), expanded(prob, shape).contiguous()
        operands = (counts, probabilities, _seed(count.device, generator), out.numel())
        launch_elements(_shader.kernel("binomial_of", count.device), out.numel(), out, *operands)
    return out


def _seed(device: torch.device, generator: torch.Generator | None) -> torch.Tensor:
    """Words for the key and the counter of Philox. They are drawn on the device, without a read-back."""
    return torch.empty(_SEED_WORDS, dtype=torch.int32, device=device).random_(generator=generator)


def fake_binomial(count: torch.Tensor, prob: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """The shape of the result of `binomial`, for fake tensors; torch has no meta kernel."""
    counts, _ = torch.broadcast_tensors(count, prob)  # type: ignore[no-untyped-call]
    return torch.empty_like(counts, memory_format=torch.contiguous_format)


FAKES = (("aten::binomial", fake_binomial),)
KERNELS = (("aten::poisson", poisson), ("aten::binomial", binomial))
