"""Fake quantization with a scale for each channel, with learned scales, and with observed scales."""

from __future__ import annotations

import torch

from ..runtime.layout import Layout, layout_of, layout_over
from ..runtime.operands import FLOATING, require_device, require_scalar_type, require_supported
from ..runtime.rows import row_group
from ..runtime.shader import METAL_TYPES, Shader, reporting
from ..runtime.signatures import planned
from .argument_checks import check_channels, check_range, check_sizes, is_on, prepare_state, refuse_dtype, require_one

_shader = Shader(__file__)
_ENABLED = 1
_SHARE = 4096  # elements that one group sums
_MOST_GROUPS = 1024


def fake_quantize_per_channel_affine_cachemask(
    self: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The quantized and dequantized tensor, and a bool mask of the values that were not clamped.

    A NaN becomes the smallest value, as on the CPU; infinities are clamped.
    An integral zero point out of range gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    check_channels(self, scale, zero_point, axis, quant_min, quant_max)
    if not zero_point.is_floating_point():
        check = _shader.kernel("check_zero_points", self.device)
        limits = [quant_min, quant_max]
        if zero_point.numel():
            check(zero_point.contiguous(), limits, threads=zero_point.numel(), arg_casts=None, **reporting(2))
    strides = _strides_along(axis, scale, self), _strides_along(axis, zero_point, self)
    return _quantize_with_mask(self, scale, zero_point, strides, (quant_min, quant_max))


def fake_quantize_learnable_per_tensor_affine(
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> torch.Tensor:
    """`_fake_quantize_learnable_per_tensor_affine`; scale and zero point are not read back.

    A zero point that is NaN gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    return _quantize(self, _beginning(scale), _beginning(zero_point), None, (quant_min, quant_max))


def fake_quantize_learnable_per_channel_affine(
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> torch.Tensor:
    """`_fake_quantize_learnable_per_channel_affine`; a NaN zero point is reported as above."""
    if zero_point.dtype != torch.float32:
        _check_numbers(zero_point)
        zero_point = zero_point.round().clamp(quant_min, quant_max).to(torch.int32)
    return _quantize(self, scale, zero_point, axis, (quant_min, quant_max))


def fake_quantize_learnable_per_tensor_affine_backward(
    grad: torch.Tensor,
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of the numbers, of the scale and of the zero point; float32, as on the CPU."""
    x, dy, step, zero = _as_float32(self, grad, scale, zero_point)
    if x.numel() != dy.numel():
        raise RuntimeError("`X` and `dY` are not the same size")
    if not quant_min <= 0 <= quant_max:
        raise RuntimeError(
            "`quant_min` should be less than or equal to `quant_max`, and the quantization range should include 0."
        )
    if x.numel() == 0:
        return self, scale, zero_point
    _check_numbers(_first(zero))
    # The backward adds a half and drops the fraction, where the forward rounds.
    place = (_first(zero) + 0.5).clamp(quant_min, quant_max).trunc()
    limits = (quant_min, quant_max)
    dx, *sums = _gradients(x[None], dy.expand(x.shape)[None], _first(step)[None], place[None], limits, grad_factor)
    return dx[0], sums[0], sums[1]


def fake_quantize_learnable_per_channel_affine_backward(
    grad: torch.Tensor,
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of the numbers, of the scales and of the zero points; float32, as on the CPU."""
    x, dy, step, zero = _as_float32(self, grad, scale, zero_point)
    if x.shape != dy.shape:
        raise RuntimeError("`X` and `dY` are not the same size")
    if not quant_min <= 0 <= quant_max:
        raise RuntimeError("Expecting `quant_min` <= 0 and `quant_max` >= 0")
    check_sizes(x, step, zero, axis)
    if not 0 <= axis < x.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if x.numel() == 0:
        return self, scale, zero_point
    _check_numbers(zero)
    place = zero.round().clamp(quant_min, quant_max)
    limits = (quant_min, quant_max)
    dx, *sums = _gradients(x.movedim(axis, 0), dy.movedim(axis, 0), step, place, limits, grad_factor)
    if x.dim() == 1:  # the CPU reduces over all dimensions where no other one is left
        sums = [total.sum() for total in sums]
    return dx.movedim(0, axis), sums[0], sums[1]


def fused_moving_avg_obs_fq_helper(
    self: torch.Tensor,
    observer_on: torch.Tensor,
    fake_quant_on: torch.Tensor,
    running_min: torch.Tensor,
    running_max: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_fused_moving_avg_obs_fq_helper`: observes the range, derives scale and zero point, and quantizes with them.

    If the arguments are valid for both switches, none is read back, and the range is computed even if it is not used.
    Otherwise both are read back, because the CPU checks only the arguments that it uses. Half precision is supported.
    """
    name = "_fused_moving_avg_obs_fq_helper"
    state = {"running_min": running_min, "running_max": running_max, "scale": scale, "zero_point": zero_point}
    require_device(self, {"observer_on": observer_on, "fake_quant_on": fake_quant_on, **state}, name)
    for switch in (observer_on, fake_quant_on):
        require_one(switch)
    sizes_fit = per_row_fake_quant or all(tensor.numel() == 1 for tensor in state.values())
    dtypes_fit = self.dtype in FLOATING and running_min.dtype == running_max.dtype == scale.dtype == torch.float32
    written = list(state.values())
    if not (sizes_fit and dtypes_fit and zero_point.dtype == torch.int32 and quant_min <= quant_max):
        observing, quantizing = is_on(observer_on), is_on(fake_quant_on)
        if not (observing or quantizing):
            return self.clone(), torch.ones_like(self, dtype=torch.bool)
        if self.dtype not in FLOATING:
            refuse_dtype(self, running_min, running_max, observing, per_row_fake_quant)
        if not quantizing:
            written, quant_min, quant_max = written[:2], 0, 0
            if not per_row_fake_quant:
                state["scale"] = torch.ones(1, device=self.device)
                state["zero_point"] = torch.zeros(1, dtype=torch.int32, device=self.device)
    for tensor in (running_min, running_max):
        require_scalar_type(tensor, torch.float32)
    observes, quantizes = (switch.reshape(1).to(torch.int64) for switch in (observer_on, fake_quant_on))
    channels = prepare_state(self, list(state.values()), ch_axis, per_row_fake_quant)
    check_range(quant_min, quant_max)
    limits = _limits(self, channels, observes)
    dtypes = torch.float32, torch.float32, torch.float32, torch.int32
    working = [tensor.to(dtype).contiguous() for tensor, dtype in zip(state.values(), dtypes, strict=True)]
    settings = [quant_min, quant_max, int(symmetric_quant)]
    kernel = _shader.kernel("observe", self.device)
    kernel(*working, *limits, observes, quantizes, float(averaging_const), settings, threads=channels)
    for tensor, result in zip(written, working, strict=False):
        if result is not tensor:
            tensor.copy_(result)
    strides = _strides_along(0, working[2], self) if per_row_fake_quant else _strides_of_one(self)
    return _quantize_with_mask(self, working[2], working[3], (strides, strides), (quant_min, quant_max), quantizes)


def _limits(x: torch.Tensor, channels: int, observes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest number of each channel, in float32."""
    if x.numel():
        rows = x.reshape(channels, -1)
        return rows.amin(1).float(), rows.amax(1).float()
    if bool(observes):
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    return torch.zeros(channels, device=x.device), torch.zeros(channels, device=x.device)


def _first(x: torch.Tensor) -> torch.Tensor:
    """The first number, in float32 and without dimensions."""
    first = x.select(0, 0)
    return (first if first.dim() == 0 else first.reshape(-1).select(0, 0)).float()


def _beginning(x: torch.Tensor) -> torch.Tensor:
    """A tensor that begins with the first number, in float32."""
    return x if x.dtype == torch.float32 and x.dim() and x.numel() else _first(x)


def _check_numbers(zero_point: torch.Tensor) -> None:
    """Report NaN zero points; a kernel does it. Infinite ones are clamped."""
    if zero_point.is_floating_point() and zero_point.numel():
        check = _shader.kernel("check_numbers", zero_point.device)
        check(zero_point.float().contiguous(), threads=zero_point.numel(), arg_casts=None, **reporting(1))


def _strides_along(axis: int, parameters: torch.Tensor, x: torch.Tensor) -> tuple[int, ...]:
    """The strides that read one number for each channel of `x`; no view of the shape of `x` is made."""
    strides = [0] * x.dim()
    (strides[axis],) = parameters.stride()
    return tuple(strides)


def _strides_of_one(x: torch.Tensor) -> tuple[int, ...]:
    """The strides that read one number for all of `x`."""
    return (0,) * x.dim()


def _quantize_with_mask(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    strides: tuple[tuple[int, ...], ...],
    limits: tuple[int, int],
    enabled: int | torch.Tensor = _ENABLED,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`strides`: how scale and zero point are read in the shape of `x`."""
    require_supported(x, "fake_quantize")
    out, kept = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
    if out.numel():
        layout = layout_over(x.shape, (out.stride(), kept.stride(), x.stride(), *strides))
        wide = "" if layout.fits_32_bits else "64"
        kernel = _shader.kernel(f"fake_quantize{wide}_{METAL_TYPES[x.dtype]}_{METAL_TYPES[zero_point.dtype]}", x.device)
        layout.launch(kernel, out, kept, x, scale, zero_point, list(limits), enabled)
    return out, kept


def _quantize(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int | None, limits: tuple[int, int]
) -> torch.Tensor:
    """By the scales and zero points of the channels along an axis; None: by the first ones."""
    name, layout, numbers = planned(_plan, (x, scale, zero_point), axis, limits)
    out = torch.empty_like(x)
    if out.numel():
        kernel = _shader.kernel(name, x.device)
        layout.launch(kernel, out, x, scale, zero_point, numbers, reports=True)
    else:
        _check_numbers(zero_point)
    return out


def _plan(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int | None, limits: tuple[int, int]
) -> tuple[str, Layout, list[int]]:
    """The name of the kernel, its layout and its limits. Raises what the CPU raises."""
    strides = (_strides_of_one(x),) * 2
    if axis is None:
        check_range(*limits)
        require_device(x, {"scale": scale, "zero_point": zero_point}, "_fake_quantize_learnable_per_tensor_affine")
    else:  # zero points become int32
        check_channels(x, scale, torch.empty_like(zero_point, dtype=torch.int32), axis, *limits)
        strides = _strides_along(axis, scale, x), _strides_along(axis, zero_point, x)
    require_supported(x, "fake_quantize")
    layout = layout_over(x.shape, (torch.empty_like(x, device="meta").stride(), x.stride(), *strides))
    wide = "" if layout.fits_32_bits else "64"
    return f"without_mask{wide}_{METAL_TYPES[x.dtype]}_{METAL_TYPES[zero_point.dtype]}", layout, list(limits)


def _as_float32(x: torch.Tensor, *others: torch.Tensor) -> list[torch.Tensor]:
    """All tensors in float32. They are cast only if the first one is bfloat16."""
    require_device(x, {str(i): other for i, other in enumerate(others)}, "fake_quantize_learnable_backward")
    tensors = [x, *others]
    if x.dtype == torch.bfloat16:
        tensors = [tensor.float() for tensor in tensors]
    for tensor in tensors:
        if tensor.dtype != torch.float32:
            raise RuntimeError(f"Expected ScalarType::Float to be true, but got {tensor.dtype}.")
    return tensors


def _gradients(
    x: torch.Tensor,
    dy: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    limits: tuple[int, int],
    factor: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `x`, whose first dimension is the channel, of the scales and of the zero points."""
    channels, elements = len(x), x[0].numel()
    dx = torch.empty_like(x)
    group = row_group(elements)
    groups = min(_MOST_GROUPS, -(-elements // _SHARE))
    partial = torch.empty(2, channels, groups, dtype=torch.float32, device=x.device)
    _shader.kernel("learnable_backward", x.device)(
        *(dx, partial, x, dy, scale.contiguous(), zero_point.contiguous(), list(limits), float(factor)),
        [dx.stride(0), x.stride(0), dy.stride(0)],
        layout_of([dx[0], x[0], dy[0]]).packed,
        threads=(group * groups, channels),
        group_size=(group, 1),
    )
    return dx, partial[0].sum(1), partial[1].sum(1)


def fake_result_and_mask(self: torch.Tensor, *arguments: object) -> tuple[torch.Tensor, torch.Tensor]:
    """The shapes of the result and the mask, for fake tensors."""
    return torch.empty_like(self), torch.empty_like(self, dtype=torch.bool)


def fake_result(self: torch.Tensor, *arguments: object) -> torch.Tensor:
    """The shape of the result of the learnable overloads, for fake tensors."""
    return torch.empty_like(self)


def fake_tensor_gradients(
    grad: torch.Tensor, self: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *arguments: object
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The shapes of the gradients by tensor, for fake tensors; for an empty tensor the operands are returned."""
    if self.numel() == 0:
        return self, scale, zero_point
    sums = [self.new_empty(1, dtype=torch.float32) for _ in range(2)]
    return torch.empty_like(self, dtype=torch.float32), sums[0], sums[1]


def fake_channel_gradients(
    grad: torch.Tensor,
    self: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    axis: int,
    *arguments: object,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The shapes of the gradients by channel, for fake tensors."""
    if self.numel() == 0:
        return self, scale, zero_point
    channels = (self.shape[axis],) if self.dim() > 1 else ()
    dx = torch.empty_like(self.movedim(axis, 0), dtype=torch.float32).movedim(0, axis)
    return dx, self.new_empty(channels, dtype=torch.float32), self.new_empty(channels, dtype=torch.float32)


KERNELS = (
    ("aten::fake_quantize_per_channel_affine_cachemask", fake_quantize_per_channel_affine_cachemask),
    ("aten::_fake_quantize_learnable_per_tensor_affine", fake_quantize_learnable_per_tensor_affine),
    ("aten::_fake_quantize_learnable_per_channel_affine", fake_quantize_learnable_per_channel_affine),
    ("aten::_fake_quantize_learnable_per_tensor_affine_backward", fake_quantize_learnable_per_tensor_affine_backward),
    ("aten::_fake_quantize_learnable_per_channel_affine_backward", fake_quantize_learnable_per_channel_affine_backward),
    ("aten::_fused_moving_avg_obs_fq_helper", fused_moving_avg_obs_fq_helper),
)
FAKES = (
    ("aten::fake_quantize_per_channel_affine_cachemask", fake_result_and_mask),
    ("aten::_fake_quantize_learnable_per_tensor_affine", fake_result),
    ("aten::_fake_quantize_learnable_per_channel_affine", fake_result),
    ("aten::_fake_quantize_learnable_per_tensor_affine_backward", fake_tensor_gradients),
    ("aten::_fake_quantize_learnable_per_channel_affine_backward", fake_channel_gradients),
)
