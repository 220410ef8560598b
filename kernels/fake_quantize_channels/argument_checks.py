"""Checks the arguments of fake quantization as the CPU does, with its errors."""

from __future__ import annotations

import cmath
import math

import torch

from ..runtime.operands import require_device, require_scalar_type, wrap_dim


def check_channels(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int, quant_min: int, quant_max: int
) -> None:
    """Check scales and zero points by channel, in the order in which the CPU does."""
    if scale.dtype != torch.float32:
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype}")
    if zero_point.dtype not in (torch.int32, torch.float32, torch.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    require_device(x, {"scale": scale, "zero_point": zero_point}, "fake_quantize_per_channel_affine_cachemask")
    check_sizes(x, scale, zero_point, axis)
    check_range(quant_min, quant_max)
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if zero_point.dtype == torch.int32 and zero_point.numel() == 0:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )


def check_sizes(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int) -> None:
    """Scales and zero points have one number for each channel of `x`."""
    if scale.dim() != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if zero_point.dim() != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if scale.numel() != x.shape[wrap_dim(axis, x.dim())]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")


def check_range(quant_min: int, quant_max: int) -> None:
    """The range of quantized values is not empty."""
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")


def prepare_state(x: torch.Tensor, state: list[torch.Tensor], axis: int, per_row: bool) -> int:
    """Check the observed state, resize it if it is empty, and return the number of channels."""
    if not per_row:
        for tensor in state:
            require_one(tensor)
        return 1
    if axis != 0:
        raise RuntimeError("Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0")
    if x.dim() < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    for tensor, first in zip(state, (math.inf, -math.inf, 1.0, 0), strict=True):
        if tensor.numel() == 0 and state[0].numel() in (0, len(x)):
            tensor.resize_(len(x)).fill_(first)
    if state[3].dtype not in (torch.int32, torch.float32, torch.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {state[3].dtype}")
    if any(tensor.numel() != len(x) for tensor in state):
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    return len(x)


def refuse_dtype(
    x: torch.Tensor, running_min: torch.Tensor, running_max: torch.Tensor, observing: bool, per_row: bool
) -> None:
    """Raise what the CPU raises for numbers that are not floating; it checks them last if it only quantizes."""
    if observing:
        require_scalar_type(x, torch.float32)
    if not per_row:
        require_one(running_min)
        require_one(running_max)
    raise NotImplementedError(f"_fused_moving_avg_obs_fq_helper is not implemented for {x.dtype} on mps")


def is_on(switch: torch.Tensor) -> bool:
    """The value of a switch, read back; a fraction is truncated."""
    value = complex(switch.item())
    if not cmath.isfinite(value):
        raise RuntimeError("value cannot be converted to type int without overflow")
    return int(value.real) != 0


def require_one(x: torch.Tensor) -> None:
    """The tensor has one element."""
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
