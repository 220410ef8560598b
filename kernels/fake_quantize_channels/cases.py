"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, rows_and_columns

_aten = torch.ops.aten
_CHANNELS = (((7, 5), 0), ((3, 4, 6), 1), ((2, 3, 129), 2), ((4, 0), 0))
_TENSORS = ((7, 5), (3, 4, 6), (129,), (), (0, 3))


def _scales(count: int) -> torch.Tensor:
    return torch.linspace(0.11, 0.43, count)


def _by_channel(dtype: torch.dtype, zero_dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, axis in _CHANNELS:
        count = shape[axis]
        yield values(shape, dtype), _scales(count), (torch.arange(count) % 4).to(zero_dtype), axis
    yield torch.tensor([math.nan, 0.0, 100.0, -100.0]).to(dtype), _scales(4), torch.zeros(4, dtype=zero_dtype), 0


def _learned_channels(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, axis in _CHANNELS:
        count = shape[axis]
        yield values(shape, dtype), _scales(count), torch.arange(count) * 0.7 - 1.2, axis


def _learned_tensors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in _TENSORS:
        yield values(shape, dtype), torch.tensor([0.23]), torch.tensor([-1.3])


def _with_gradients(inputs: Any, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for x, *rest in inputs(dtype):
        yield values(x.shape, dtype) * 0.5 + 0.1, x, *rest
    if inputs is _learned_tensors:  # several groups share a sum
        yield values((9000,), dtype), values((9000,), dtype), torch.tensor([0.23]), torch.tensor([2.6])


def _quantized_channels(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int) -> Any:
    return _aten.fake_quantize_per_channel_affine_cachemask(x, scale, zero, axis, -5, 11)


def _learnable_channels(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int) -> Any:
    return _aten._fake_quantize_learnable_per_channel_affine(x, scale, zero, axis, -5, 11, 0.7)


def _learnable_tensor(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> Any:
    return _aten._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -5, 11, 0.7)


def _channel_gradients(dy: torch.Tensor, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int) -> Any:
    return _aten._fake_quantize_learnable_per_channel_affine_backward(dy, x, scale, zero, axis, -5, 11, 0.7)


def _tensor_gradients(dy: torch.Tensor, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> Any:
    return _aten._fake_quantize_learnable_per_tensor_affine_backward(dy, x, scale, zero, -5, 11, 0.7)


def _observed(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """A tensor, the switches of observer and quantization, the range so far, and the options for rows and symmetry."""
    for observes, quantizes in ((1, 1), (1, 0), (0, 1), (0, 0)):
        if observes and dtype is not torch.float32:  # the CPU supports no other dtype
            continue
        for per_row, symmetric in ((False, False), (False, True), (True, False), (True, True)):
            for seen in (math.inf, 1.5):
                yield values((3, 4, 5), dtype), observes, quantizes, seen, per_row, symmetric
    if dtype is torch.float32:
        for x in (torch.zeros(3), torch.tensor([1e-6, -2e-6]), torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.5])):
            yield x, 1, 1, math.inf, False, False
        yield values((0, 3), dtype), 0, 1, 1.5, False, False


def _observe(x: torch.Tensor, observes: int, quantizes: int, seen: float, per_row: bool, symmetric: bool) -> Any:
    """The result and the state after the call: the range, the scale and the zero point."""
    channels = len(x) if per_row else 1
    switches = [torch.tensor([on], device=x.device) for on in (observes, quantizes)]
    state = [torch.full((channels,), number, device=x.device) for number in (seen, -seen, 0.3)]
    zero = torch.full((channels,), 2, dtype=torch.int32, device=x.device)
    result = _aten._fused_moving_avg_obs_fq_helper(x, *switches, *state, zero, 0.25, -128, 127, 0, per_row, symmetric)
    return *result, *state, zero


CASES = (
    *(
        KernelCall(
            "fake_quantize_per_channel_affine_cachemask",
            ("aten::fake_quantize_per_channel_affine_cachemask",),
            _quantized_channels,
            partial(_by_channel, zero_dtype=zero_dtype),
            variant=f"zero points of {str(zero_dtype).removeprefix('torch.')}",
            gradients=(0,),
        )
        for zero_dtype in (torch.int32, torch.float32, torch.float16)
    ),
    KernelCall(
        "_fake_quantize_learnable_per_channel_affine",
        ("aten::_fake_quantize_learnable_per_channel_affine",),
        _learnable_channels,
        _learned_channels,
    ),
    KernelCall(
        "_fake_quantize_learnable_per_tensor_affine",
        ("aten::_fake_quantize_learnable_per_tensor_affine",),
        _learnable_tensor,
        _learned_tensors,
    ),
    KernelCall(
        "_fake_quantize_learnable_per_channel_affine",
        (
            "aten::_fake_quantize_learnable_per_channel_affine",
            "aten::_fake_quantize_learnable_per_channel_affine_backward",
        ),
        _learnable_channels,
        _learned_channels,
        (torch.float32,),
        variant="learned",
        gradients=(0, 1, 2),
    ),
    KernelCall(
        "_fake_quantize_learnable_per_tensor_affine",
        (
            "aten::_fake_quantize_learnable_per_tensor_affine",
            "aten::_fake_quantize_learnable_per_tensor_affine_backward",
        ),
        _learnable_tensor,
        _learned_tensors,
        (torch.float32,),
        variant="learned",
        gradients=(0, 1, 2),
    ),
    KernelCall(
        "_fake_quantize_learnable_per_channel_affine_backward",
        ("aten::_fake_quantize_learnable_per_channel_affine_backward",),
        _channel_gradients,
        partial(_with_gradients, _learned_channels),
        (torch.float32, torch.bfloat16),
    ),
    KernelCall(
        "_fake_quantize_learnable_per_tensor_affine_backward",
        ("aten::_fake_quantize_learnable_per_tensor_affine_backward",),
        _tensor_gradients,
        partial(_with_gradients, _learned_tensors),
        (torch.float32, torch.bfloat16),
    ),
    KernelCall(
        "_fused_moving_avg_obs_fq_helper",
        ("aten::_fused_moving_avg_obs_fq_helper",),
        _observe,
        _observed,
        FLOATING,
        gradients=(0,),
    ),
)


def _channels(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A matrix, and a scale and a zero point for each of its rows."""
    rows, columns = rows_and_columns(elements)
    return torch.randn(rows, columns), torch.full((rows,), 0.1), torch.zeros(rows, dtype=torch.int32)


WORKLOAD = Workload(
    "aten::fake_quantize_per_channel_affine_cachemask",
    lambda x, scale, zero: torch.fake_quantize_per_channel_affine(x, scale, zero, 0, -128, 127),
    _channels,
)
