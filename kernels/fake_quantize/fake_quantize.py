"""Fake quantization of a tensor with one scale, and the mask for its backward."""

from __future__ import annotations

import torch

from ..runtime.elementwise import elementwise
from ..runtime.operands import require_supported
from ..runtime.shader import Shader, reporting

_shader = Shader(__file__)
_ENABLED = 1.0


def fake_quantize_per_tensor_affine_cachemask(
    self: torch.Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The quantized and dequantized tensor, and a bool mask of the values that were not clamped.

    A NaN becomes the smallest value, as on the CPU; infinities are clamped.
    """
    _check_range(quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _quantized(self, [scale, float(zero_point), float(quant_min), float(quant_max), _ENABLED])


def fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    fake_quant_enabled: torch.Tensor,
    quant_min: int,
    quant_max: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with parameters in tensors of one element on the device, which are not read back.

    A zero point or a switch that is not a 32-bit integer, such as NaN, gives torch.AcceleratorError at the next
    synchronisation, from torch 2.11 on.
    """
    _check_range(quant_min, quant_max)
    for tensor in (scale, zero_point, fake_quant_enabled):
        if tensor.numel() == 0:
            raise RuntimeError("a Tensor with 0 elements cannot be converted to Scalar")
    for tensor in (zero_point, fake_quant_enabled):
        _check_is_whole(tensor)
    limits = torch.tensor([quant_min, quant_max], dtype=torch.float32, device=self.device)
    # The zero point and the switch are integers in every dtype.
    whole = [tensor.reshape(-1)[:1].to(torch.int32).float() for tensor in (zero_point, fake_quant_enabled)]
    return _quantized(self, torch.cat([scale.reshape(-1)[:1].float(), whole[0], limits, whole[1]]))


def _check_is_whole(x: torch.Tensor) -> None:
    """Report a floating number that does not round to a 32-bit integer; a kernel does it."""
    if x.is_floating_point():
        check = _shader.kernel("check_whole_number", x.device)
        check(x.reshape(-1)[:1].float(), threads=1, arg_casts=None, **reporting(1))


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")


def _quantized(x: torch.Tensor, parameters: list[float] | torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    require_supported(x, "fake_quantize")
    output, mask = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
    elementwise(_shader, "fake_quantize", [output, mask], [x], parameters)
    return output, mask


def fake_result_and_mask(self: torch.Tensor, *arguments: object) -> tuple[torch.Tensor, torch.Tensor]:
    """The shapes of the result and the mask, for fake tensors."""
    return torch.empty_like(self), torch.empty_like(self, dtype=torch.bool)


KERNELS = (
    ("aten::fake_quantize_per_tensor_affine_cachemask", fake_quantize_per_tensor_affine_cachemask),
    (
        "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
    ),
)
FAKES = tuple((overload, fake_result_and_mask) for overload, _ in KERNELS)
