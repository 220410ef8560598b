"""Convolutions that torch's kernels on mps refuse, integers and transposed ones of half precision, and `slow_conv`.

Convolutions that are asked for by the name of their CPU kernel are computed by torch's own kernels on mps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from ..runtime.layout import launch_elements, memory_format_of
from ..runtime.operands import not_implemented, require_device, require_scalar_type
from ..runtime.outputs import copy_to_output
from ..runtime.rows import rows_in, short_launches
from ..runtime.shader import Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_aten = torch.ops.aten
_HALVES = (torch.float16, torch.bfloat16)
# The spatial dimensions of the kernels; the dimensions of items and channels come first.
_SPACE = 3
_Window = tuple[Sequence[int], Sequence[int], Sequence[int]]


def mps_convolution(
    self: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """`_mps_convolution` for int64, which torch calls for every convolution on mps; sums wrap, as on the CPU."""
    window = (tuple(padding), tuple(stride), tuple(dilation))
    return _convolve("convolve", self, weight, bias, planned(_plan, (self, weight, bias), window, groups))


def _plan(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, window: _Window, groups: int) -> _Plan:
    (items, _, *space), (results, inner, *windows) = x.shape, weight.shape
    sizes = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, p, s, d in zip(space, windows, *window, strict=True)
    ]
    shape, channels = (items, results, *sizes), (inner, results // groups)
    return _plan_of(x, weight, weight.stride(), bias, shape, window, channels)


def mps_convolution_transpose(
    self: torch.Tensor,
    weight: torch.Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """`_mps_convolution_transpose` for int64, and for half precision with torch's float32 kernel, rounded once."""
    if self.dtype in _HALVES:
        require_scalar_type(weight, self.dtype)
        geometry = (padding, output_padding, stride, dilation, groups)
        wide = _aten._mps_convolution_transpose(self.float(), weight.float(), *geometry)
        return wide.to(self.dtype)  # type: ignore[no-any-return]
    window = (tuple(padding), tuple(stride), tuple(dilation))
    plan = planned(_transposed_plan, (self, weight), window, tuple(output_padding), groups)
    return _convolve("convolve_transposed", self, weight, None, plan)


def _transposed_plan(
    x: torch.Tensor, weight: torch.Tensor, window: _Window, output_padding: Sequence[int], groups: int
) -> _Plan:
    (items, _, *space), (inner, results, *windows) = x.shape, weight.shape
    sizes = [
        (size - 1) * s - 2 * p + d * (k - 1) + extra + 1
        for size, k, extra, p, s, d in zip(space, windows, output_padding, *window, strict=True)
    ]
    _require_results(x, sizes)
    shape, channels = (items, results * groups, *sizes), (inner // groups, results)
    inner_stride, result_stride, *others = weight.stride()
    strides = (result_stride, inner_stride, *others)
    return _plan_of(x, weight, strides, None, shape, window, channels)


def _require_results(x: torch.Tensor, sizes: Sequence[int]) -> None:
    """Raise what the CPU raises for a result without an element in space."""
    if min(sizes) < 1:
        given, calculated = (" x ".join(map(str, [*[1] * (2 - len(part)), *part])) for part in (x.shape[2:], sizes))
        raise RuntimeError(
            f"Given input size per channel: ({given}). Calculated output size per channel: ({calculated}). Output size "
            "is too small"
        )


def mps_convolution_transpose_backward(
    self: torch.Tensor,
    grad_output: torch.Tensor,
    weight: torch.Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """`mps_convolution_transpose_backward` for half precision with torch's float32 kernels, rounded once."""
    wide = (x.float() for x in (self, grad_output, weight))
    geometry = (padding, output_padding, stride, dilation, groups, output_mask)
    gradients = _aten.mps_convolution_transpose_backward(*wide, *geometry)
    return tuple(None if gradient is None else gradient.to(self.dtype) for gradient in gradients)


def slow_conv_forward(
    self: torch.Tensor,
    weight: torch.Tensor,
    kernel_size: Sequence[int],
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
) -> torch.Tensor:
    """`_slow_conv2d_forward` and `slow_conv3d_forward`; the weight may be a matrix with a row a channel of the result.

    Their gradient asks for `convolution_backward`, or for the backward below.
    """
    # A convolution of a CPU tensor with a weight on mps arrives here, too.
    require_device(self, {"weight": weight, "bias": bias}, "slow_conv_forward")
    space = len(kernel_size)
    if self.dim() != space + 2:
        raise RuntimeError(f"Expected {space + 2}D input tensor, but got: {list(self.shape)}")
    if self.is_complex() or self.dtype == torch.bool:
        raise not_implemented("slow_conv2d_cpu" if space == 2 else "compute_columns3d", self.dtype)
    windows = _windows(weight, self.shape[1], kernel_size)
    for other in (weight, bias):
        if other is not None:
            require_scalar_type(other, self.dtype)
    if not self.is_floating_point():
        biases = None if bias is None else bias.long()
        whole = mps_convolution(self.long(), windows.long(), biases, padding, stride, [1] * space, 1)
        return whole.to(self.dtype)
    once = ([1] * space, False, [0] * space, 1)
    result: torch.Tensor = torch.convolution(self, windows, bias, stride, padding, *once)
    return result


def slow_conv_forward_out(
    self: torch.Tensor,
    weight: torch.Tensor,
    kernel_size: Sequence[int],
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    *,
    output: torch.Tensor,
) -> torch.Tensor:
    """`_slow_conv2d_forward.output` and `slow_conv3d_forward.output`."""
    result = slow_conv_forward(self, weight, kernel_size, bias, stride, padding)
    require_scalar_type(output, self.dtype)
    if len(kernel_size) == 3 and not output.is_contiguous():
        raise RuntimeError("slow_conv3d output must be contiguous")
    return copy_to_output(output, result)


def slow_conv2d_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    weight: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """`_slow_conv2d_backward.output_mask`: the gradients of input, weight and bias that are wanted."""
    windows, biases, once = _windows(weight, self.shape[1], kernel_size), [weight.shape[0]], ([1, 1], False, [0, 0], 1)
    gradients = _aten.convolution_backward(
        grad_output, self, windows, biases, stride, padding, *once, list(output_mask)
    )
    shapes = (self.shape, weight.shape, biases)
    return tuple(
        None if gradient is None else gradient.view(shape) for gradient, shape in zip(gradients, shapes, strict=True)
    )


def _windows(weight: torch.Tensor, channels: int, kernel_size: Sequence[int]) -> torch.Tensor:
    """The weight by channels and places of a window; as on the CPU, its own shape beyond the first size is ignored."""
    shape = (weight.shape[0], channels, *kernel_size)
    return weight if weight.shape == shape else weight.reshape(-1)[: math.prod(shape)].view(shape)


class _Plan(NamedTuple):
    """Shape and strides of the result, products of an item, and the numbers that the kernel gets after the items."""

    shape: Sequence[int]
    strides: Sequence[int]
    products: int
    layout: list[int]


def _plan_of(
    source: torch.Tensor,
    weight: torch.Tensor,
    weight_strides: Sequence[int],
    bias: torch.Tensor | None,
    shape: Sequence[int],
    window: _Window,
    channels: Sequence[int],
) -> _Plan:
    """Check the dtypes, and describe a call.

    `weight_strides`: by channels of the result first. `window`: padding, strides and dilation. `channels`: of a group's
        input and of its result.
    The result is channels_last if one of the operands is, as torch expects of every convolution on mps.
    """
    for other in (weight, bias):
        if other is not None:
            require_scalar_type(other, source.dtype)
    formats = memory_format_of(source), memory_format_of(weight)
    memory_format = formats[1] if formats[0] is torch.contiguous_format else formats[0]
    result = torch.empty(shape, dtype=source.dtype, device="meta", memory_format=memory_format)
    padding, strides, dilation = window
    ones, zeros = [1] * (_SPACE - len(strides)), [0] * (_SPACE - len(strides))  # for dimensions that are absent
    (_, results, *after), (_, _, *before), (_, _, *places) = shape, source.shape, weight.shape
    layout = [results, *ones, *after]
    for item_step, channel_step, *steps in (result.stride(), source.stride(), weight_strides):
        layout += [item_step, channel_step, *zeros, *steps]
    layout += [*ones, *before, *ones, *places, *ones, *strides, *zeros, *padding, *ones, *dilation, *channels]
    return _Plan(shape, result.stride(), math.prod((*shape[1:], *places)) * channels[0], layout)


def _convolve(
    name: str, source: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, plan: _Plan
) -> torch.Tensor:
    """Launch a kernel."""
    shape, strides, products, layout = plan
    out = torch.empty_strided(shape, strides, dtype=source.dtype, device=source.device)
    if not out.numel():
        return out
    summand = _zero(source.dtype, source.device) if bias is None else bias
    bias_stride = 0 if bias is None else bias.stride(0)
    kernel = _shader.kernel(name, out.device)
    for part in short_launches(shape[0], products):
        (items, of_items), sizes = rows_in(part, out, source), [part.stop - part.start, *layout]
        launch_elements(kernel, items.numel(), items, of_items, weight, summand, sizes, bias_stride)
    return out


@lru_cache(maxsize=16)
def _zero(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What is added where there is no bias."""
    return torch.zeros(1, dtype=dtype, device=device)


def is_refused(self: torch.Tensor, *arguments: object, **options: object) -> bool:
    """The same for transposed convolutions: 3-d ones refuse half precision, 2-d ones bfloat16."""
    return self.dtype == torch.int64 or is_half(self)


def is_half(self: torch.Tensor, *arguments: object, **options: object) -> bool:
    """Whether torch's own kernel refuses the half precision, or upstream expects it to fail."""
    return self.dtype == torch.bfloat16 or (self.dtype == torch.float16 and self.dim() == _SPACE + 2)


KERNELS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("aten::_slow_conv2d_forward", slow_conv_forward),
    ("aten::_slow_conv2d_forward.output", slow_conv_forward_out),
    ("aten::_slow_conv2d_backward.output_mask", slow_conv2d_backward),
    ("aten::slow_conv3d_forward", slow_conv_forward),
    ("aten::slow_conv3d_forward.output", slow_conv_forward_out),
)
OVERRIDES = (
    ("aten::_mps_convolution", mps_convolution, frozenset({torch.int64})),
    ("aten::_mps_convolution_transpose", mps_convolution_transpose, is_refused),
    ("aten::mps_convolution_transpose_backward", mps_convolution_transpose_backward, is_half),
)
