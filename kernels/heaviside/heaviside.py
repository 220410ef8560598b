"""The Heaviside step function: 0 below zero, 1 above, and the values of a second tensor at zero."""

from __future__ import annotations

import torch

from ..runtime.elementwise import elementwise
from ..runtime.layout import broadcast
from ..runtime.outputs import check_outputs, on_meta
from ..runtime.shader import Shader

_shader = Shader(__file__)


def heaviside_out(self: torch.Tensor, values: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`heaviside.out` for every real dtype of mps; the three tensors must have the same dtype."""
    if not self.dtype == values.dtype == out.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    shape = self.shape
    if values.dim() and values.shape != shape:
        shape = broadcast(shape, values.shape)
    if out.shape != shape or out.is_cpu or self.dtype.is_complex:
        was = out.shape
        check_outputs(torch.ops.aten.heaviside.out, [self, values], {"out": out}, [self.dtype])
        if out.shape != was:  # to the strides of binary operators; heaviside's meta kernel returns contiguous ones
            strides = torch.maximum(on_meta(self), on_meta(values)).stride()
            out.as_strided_(out.shape, strides)
    # An operand without dimensions may be on the CPU, as for any binary operator.
    shape, index = out.shape, out.get_device()
    operands = [
        x if x.shape == shape and x.get_device() == index else x.to(out.device).expand(shape) for x in (self, values)
    ]
    elementwise(_shader, "heaviside", [out], operands)
    return out


KERNELS = (("aten::heaviside.out", heaviside_out),)
