"""Antialiased resampling in two passes, along the width and along the height.

Torch has kernels with two filters for floats on mps. This family adds bytes, with exactly the CPU's results, and the
Lanczos filter. It also has bicubic resampling of bytes without antialiasing, which the CPU computes in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..runtime.layout import launch_elements, memory_format_of
from ..runtime.operands import FLOATING, require_device, require_supported
from ..runtime.outputs import check_outputs, is_ready
from ..runtime.resampling import SUPPORT, is_too_far, window_distances
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader
from .filters import ByteWeights, byte_weights, clamped_byte_weights

_shader = Shader(__file__)
_aten = torch.ops.aten
_DTYPES = FLOATING | {torch.uint8}
_HEIGHT, _WIDTH = 2, 3


def _out(operator: str, filter_name: str | None = None) -> Callable[..., torch.Tensor]:
    """The out form of an operator. Without a filter it is bicubic resampling of bytes that is not antialiased."""

    def out_of(
        self: torch.Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        out: torch.Tensor,
    ) -> torch.Tensor:
        """Floats are summed in float32. Bytes take the CPU's weights and give the same bytes."""
        if not _fits(self, output_size, out):
            arguments = [self, output_size, align_corners, scales_h, scales_w]
            check_outputs(getattr(_aten, operator).out, arguments, {"out": out}, [self.dtype])
            require_device(self, {"out": out}, operator)
        require_supported(self, operator, _DTYPES)
        if out.numel():
            inputs = self.shape[2:]
            scales = window_distances(inputs, output_size, align_corners, (scales_h, scales_w))
            if filter_name is None:
                _resample_bytes(out, self, clamped_byte_weights, align_corners, scales)
            elif is_too_far(operator, filter_name, scales, inputs):
                fill_on_cpu([out], getattr(_aten, operator), self, output_size, align_corners, scales_h, scales_w)
            elif self.dtype == torch.uint8:
                _resample_bytes(out, self, byte_weights, filter_name, scales)
            else:
                _resample(out, self, filter_name, scales)
        return out

    return out_of


def _fits(self: torch.Tensor, output_size: Sequence[int], out: torch.Tensor) -> bool:
    """Whether nothing is to be refused. What does not fit goes to the meta kernel: its first call may load sympy."""
    if self.dim() != 4 or len(output_size) != 2 or 0 in output_size or not self.numel():
        return False
    images, channels, *_ = self.shape
    return is_ready(out, (images, channels, *output_size), self.dtype)


def _functional(operator: str, filter_name: str | None = None) -> Callable[..., torch.Tensor]:
    """The functional form of an operator; the result has the input's memory format."""
    out_of = _out(operator, filter_name)

    def result_of(
        self: torch.Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> torch.Tensor:
        out = fake_output(self, output_size) if self.dim() == 4 else self.new_empty(0)
        return out_of(self, output_size, align_corners, scales_h, scales_w, out=out)

    return result_of


def _resample(out: torch.Tensor, source: torch.Tensor, filter_name: str, scales: Sequence[float]) -> None:
    device = out.device
    for axis, target in _passes(out, source, torch.float32):
        shape = target.shape
        windows, weights, room = _tables(filter_name, shape[axis], source.shape[axis], scales[axis - _HEIGHT], device)
        geometry = [*shape, *target.stride(), *source.stride(), axis, room]
        kernel = _shader.kernel(f"forward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[target.dtype]}", device)
        launch_elements(kernel, target.numel(), target, source, windows, weights, geometry)
        source = target


def _passes(out: torch.Tensor, source: torch.Tensor, between: torch.dtype) -> Sequence[tuple[int, torch.Tensor]]:
    """The axes in turn, and the output of each; an axis that keeps its size is skipped, as on the CPU."""
    (images, channels, height, width), (_, _, height_before, width_before) = out.shape, source.shape
    if height == height_before and width == width_before:
        out.copy_(source)
        return ()
    if height == height_before or width == width_before:
        return ((_WIDTH if height == height_before else _HEIGHT, out),)
    shape = (images, channels, height_before, width)
    return (_WIDTH, torch.empty(shape, dtype=between, device=out.device)), (_HEIGHT, out)


def _resample_bytes(
    out: torch.Tensor,
    source: torch.Tensor,
    weights_of: Callable[[Any, int, int, float, torch.device], ByteWeights],
    kind: str | bool,
    scales: Sequence[float],
) -> None:
    """`weights_of`: the table of an axis, of a filter or of one with `align_corners` or not, `kind`."""
    device = out.device
    kernel = _shader.kernel("antialias_bytes", device)
    for axis, target in _passes(out, source, torch.uint8):
        shape = target.shape
        table = weights_of(kind, source.shape[axis], shape[axis], scales[axis - _HEIGHT], device)
        windows, weights, room, precision = table
        geometry = [*shape, *target.stride(), *source.stride(), axis, room, precision]
        launch_elements(kernel, target.numel(), target, source, windows, weights, geometry)
        source = target


def _tables(
    filter_name: str, outputs: int, inputs: int, scale: float, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The window and the weights of each output, and the number of weights that are stored."""
    room = 2 * math.ceil(SUPPORT[filter_name] * max(scale, 1.0)) + 1
    windows = torch.empty((outputs, 2), dtype=torch.int32, device=device)
    weights = torch.empty((outputs, room), dtype=torch.float32, device=device)
    table = _shader.kernel(f"forward_weights_{filter_name}", device)
    table(windows, weights, [outputs, inputs, room], scale, threads=outputs)
    return windows, weights, room


def fake_output(self: torch.Tensor, output_size: Sequence[int], *arguments: object) -> torch.Tensor:
    """The shape and memory format of each forward, for fake tensors."""
    out, memory_format = self.new_empty((*self.shape[:2], *output_size)), memory_format_of(self)
    return out if memory_format is torch.contiguous_format else out.to(memory_format=memory_format)


_BILINEAR, _BICUBIC, _LANCZOS = (f"_upsample_{name}2d_aa" for name in ("bilinear", "bicubic", "lanczos"))
KERNELS = ((f"aten::{_LANCZOS}.out", _out(_LANCZOS, "lanczos")),)
# What torch's own kernels on mps refuse.
_BYTES = frozenset({torch.uint8})
OVERRIDES = (
    (f"aten::{_BILINEAR}", _functional(_BILINEAR, "linear"), _BYTES),
    (f"aten::{_BILINEAR}.out", _out(_BILINEAR, "linear"), _BYTES),
    (f"aten::{_BICUBIC}", _functional(_BICUBIC, "cubic"), _BYTES),
    (f"aten::{_BICUBIC}.out", _out(_BICUBIC, "cubic"), _BYTES),
    ("aten::upsample_bicubic2d", _functional("upsample_bicubic2d"), _BYTES),
    ("aten::upsample_bicubic2d.out", _out("upsample_bicubic2d"), _BYTES),
)
FAKES = ((f"aten::{_LANCZOS}", fake_output),)
