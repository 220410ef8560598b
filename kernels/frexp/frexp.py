"""Numbers split into a mantissa of at least 1/2 and below 1, and a power of two."""

from __future__ import annotations

import torch

from ..runtime.elementwise import launch_over
from ..runtime.operands import require_device, require_supported
from ..runtime.outputs import overlaps, refuse_internal_overlap, resize_output
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_CPP_NAMES = {torch.float32: "float", torch.float16: "c10::Half", torch.bfloat16: "c10::BFloat16"}


def frexp_tensor_out(
    self: torch.Tensor, *, mantissa: torch.Tensor, exponent: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`frexp.Tensor_out`; the exponent is int32, and zero for zeros, infinities and NaN. Subnormals are exact."""
    if not self.is_floating_point():
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    require_supported(self, "frexp")
    if mantissa.dtype != self.dtype:
        raise RuntimeError(
            f"torch.frexp() expects mantissa to have dtype {_CPP_NAMES[self.dtype]} but got "
            f"{_CPP_NAMES.get(mantissa.dtype, mantissa.dtype)}"
        )
    if exponent.dtype != torch.int32:
        raise RuntimeError(f"torch.frexp() expects exponent to have int dtype but got {exponent.dtype}")
    require_device(self, {"mantissa": mantissa, "exponent": exponent}, "frexp")
    source = self
    for output in (mantissa, exponent):
        resize_output(output, self.shape)
        refuse_internal_overlap(output)
        source = source.clone() if overlaps(output, source) else source
    # Dense launches count by the first operand, so it is the widest one.
    launch_over(_shader, f"frexp_{METAL_TYPES[self.dtype]}", (exponent, mantissa, source), ())
    return mantissa, exponent


KERNELS = (("aten::frexp.Tensor_out", frexp_tensor_out),)
EXTERN = ("aten::frexp",)  # Inductor has no Metal for it in torch 2.13
