"""Leaky ReLU with a slope drawn for every negative value; its backward is torch's own product with the noise."""

from __future__ import annotations

import torch

from ..runtime.elementwise import launch_over
from ..runtime.operands import require_supported
from ..runtime.outputs import (
    copy_if_overlapping,
    functional_form,
    refuse_internal_overlap,
    require_dtype,
    resize_output,
)
from ..runtime.shader import Shader

_shader = Shader(__file__)
_LOWER, _UPPER = 1.0 / 8, 1.0 / 3


def rrelu_with_noise_out(
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: float = _LOWER,
    upper: float = _UPPER,
    training: bool = False,
    generator: torch.Generator | None = None,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`rrelu_with_noise.out`: draws slopes from U(lower, upper) and writes them to `noise`.

    Without training it is leaky ReLU with the mean slope, and `noise` is not written.
    """
    shape, dtype = self.shape, self.dtype
    if shape != noise.shape:
        raise RuntimeError(
            f"noise tensor shape must match self tensor shape. Got self.shape = {list(self.shape)} "
            f"noise.shape = {list(noise.shape)}"
        )
    require_supported(self, "rrelu_with_noise")
    if out is not self:
        require_dtype(out, dtype, "rrelu_with_noise")
    if not training:
        return torch.ops.aten.leaky_relu.out(self, (lower + upper) / 2, out=out)  # type: ignore[no-any-return]
    require_dtype(noise, dtype, "rrelu_with_noise")
    if out is not self:
        resize_output(out, shape)
    span = upper - lower
    spans = 0 <= span <= 1 or 0 <= span <= torch.finfo(dtype).max
    if not spans and not bool((self <= 0).any()):
        # No slope is used. The CPU, which draws them one by one, does not check the limits.
        lower, upper = _LOWER, _UPPER
    drawn = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    source = self  # all that can overlap an output: the slopes are new
    for written in (out, noise):
        refuse_internal_overlap(written)
        if written is not source:
            source = copy_if_overlapping(written, source)
    launch_over(_shader, "rrelu_with_noise", (out, noise, source, drawn), ([0.0],))
    return out


rrelu_with_noise = functional_form(rrelu_with_noise_out)


def rrelu_with_noise_(
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: float = _LOWER,
    upper: float = _UPPER,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """`rrelu_with_noise_`, in place."""
    return rrelu_with_noise_out(self, noise, lower, upper, training, generator, out=self)


KERNELS = (
    ("aten::rrelu_with_noise", rrelu_with_noise),
    ("aten::rrelu_with_noise_", rrelu_with_noise_),
    ("aten::rrelu_with_noise.out", rrelu_with_noise_out),
)
