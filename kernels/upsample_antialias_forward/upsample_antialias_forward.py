"""Antialiased resampling in two passes, along the width and along the height.

Torch has kernels of two filters for floats on mps; those of bytes and of Lanczos' filter are here, exact for bytes. So
are bicubic ones of bytes that are not antialiased, which the CPU computes alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch._prims_common import suggest_memory_format

from ..runtime.elementwise import FLOATING
from ..runtime.layout import launch_elements
from ..runtime.operands import require_device
from ..runtime.outputs import check_outputs
from ..runtime.shader import METAL_TYPES, Shader
from .filters import SUPPORT, ByteWeights, byte_weights, clamped_byte_weights

_shader = Shader(__file__)
_aten = torch.ops.aten
_HEIGHT, _WIDTH = 2, 3


def _into(filter_name: str, operator: str) -> Callable[..., torch.Tensor]:
    """The forward of one filter into a given output."""

    def out_of(
        self: torch.Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        out: torch.Tensor,
    ) -> torch.Tensor:
        """Floats are summed in float32; bytes with the CPU's weights, to the same bytes."""
        arguments = [self, output_size, align_corners, scales_h, scales_w]
        check_outputs(getattr(_aten, operator).out, arguments, {"out": out}, [self.dtype])
        require_device(self, {"out": out}, operator)
        if self.dtype not in FLOATING and self.dtype != torch.uint8:
            raise NotImplementedError(f"{operator} is not implemented for {self.dtype} on mps")
        if out.numel():
            scales = _scales(self, output_size, align_corners, scales_h, scales_w)
            if self.dtype == torch.uint8:
                _resample_bytes(out, self, partial(byte_weights, filter_name), scales)
            else:
                _resample(out, self, filter_name, scales)
        return out

    return out_of


def _new(filter_name: str, operator: str) -> Callable[..., torch.Tensor]:
    """The forward of one filter, of the input's memory format."""
    into = _into(filter_name, operator)

    def new(
        self: torch.Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> torch.Tensor:
        out = fake_output(self, output_size) if self.dim() == 4 else self.new_empty(0)
        return into(self, output_size, align_corners, scales_h, scales_w, out=out)

    return new


def upsample_bicubic2d_out(
    self: torch.Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`upsample_bicubic2d.out` of bytes, not antialiased: with the CPU's weights, to the same bytes."""
    arguments = [self, output_size, align_corners, scales_h, scales_w]
    check_outputs(_aten.upsample_bicubic2d.out, arguments, {"out": out}, [self.dtype])
    require_device(self, {"out": out}, "upsample_bicubic2d")
    if out.numel():
        scales = _scales(self, output_size, align_corners, scales_h, scales_w)
        _resample_bytes(out, self, partial(clamped_byte_weights, align_corners), scales)
    return out


def upsample_bicubic2d(
    self: torch.Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> torch.Tensor:
    """`upsample_bicubic2d` of bytes, of the input's memory format."""
    out = fake_output(self, output_size) if self.dim() == 4 else self.new_empty(0)
    return upsample_bicubic2d_out(self, output_size, align_corners, scales_h, scales_w, out=out)


def is_of_bytes(self: torch.Tensor, *arguments: object, **options: object) -> bool:
    """Whether torch's own kernel on mps refuses the dtype."""
    return self.dtype == torch.uint8


def _scale(before: int, after: int, align_corners: bool, given: float | None) -> float:
    """The distance of the windows of neighbouring outputs."""
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1.0 / given if given is not None and given > 0.0 else before / after


def _scales(
    source: torch.Tensor, output_size: Sequence[int], align_corners: bool, *given: float | None
) -> tuple[float, ...]:
    """The same of both axes."""
    sizes = zip(source.shape[2:], output_size, given, strict=True)
    return tuple(_scale(before, after, align_corners, scale) for before, after, scale in sizes)


def _resample(out: torch.Tensor, source: torch.Tensor, filter_name: str, scales: Sequence[float]) -> None:
    for axis, target in _passes(out, source, torch.float32):
        scale = scales[axis - _HEIGHT]
        outputs, inputs = target.shape[axis], source.shape[axis]
        windows, weights, room = _tables(filter_name, outputs, inputs, scale, out.device)
        geometry = [*target.shape, *target.stride(), *source.stride(), axis, room]
        kernel = _shader.kernel(f"forward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[target.dtype]}", out.device)
        launch_elements(kernel, target.numel(), target, source, windows, weights, geometry)
        source = target


def _passes(out: torch.Tensor, source: torch.Tensor, between: torch.dtype) -> Iterator[tuple[int, torch.Tensor]]:
    """The axes in turn, and what each is written to; one that keeps its size is left alone, as on the CPU."""
    axes = [axis for axis in (_WIDTH, _HEIGHT) if source.shape[axis] != out.shape[axis]]
    if not axes:
        out.copy_(source)
    shape = list(source.shape)
    for axis in axes:
        shape[axis] = out.shape[axis]
        yield axis, out if axis == axes[-1] else torch.empty(shape, dtype=between, device=out.device)


def _resample_bytes(
    out: torch.Tensor,
    source: torch.Tensor,
    weights_of: Callable[[int, int, float, torch.device], ByteWeights],
    scales: Sequence[float],
) -> None:
    for axis, target in _passes(out, source, torch.uint8):
        inputs, outputs = source.shape[axis], out.shape[axis]
        table = weights_of(inputs, outputs, scales[axis - _HEIGHT], out.device)
        room = table.weights.shape[1]
        geometry = [*target.shape, *target.stride(), *source.stride(), axis, room, table.precision]
        kernel = _shader.kernel("antialias_bytes", out.device)
        launch_elements(kernel, target.numel(), target, source, table.windows, table.weights, geometry)
        source = target


def _tables(
    filter_name: str, outputs: int, inputs: int, scale: float, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """For each output its window and its weights, and for how many weights there is room."""
    room = 2 * math.ceil(SUPPORT[filter_name] * max(scale, 1.0)) + 1
    windows = torch.empty((outputs, 2), dtype=torch.int32, device=device)
    weights = torch.empty((outputs, room), dtype=torch.float32, device=device)
    table = _shader.kernel(f"forward_weights_{filter_name}", device)
    table(windows, weights, [outputs, inputs, room], scale, threads=outputs)
    return windows, weights, room


def fake_output(self: torch.Tensor, output_size: Sequence[int], *arguments: object) -> torch.Tensor:
    """What comes out of each forward."""
    memory_format = suggest_memory_format(self)
    return self.new_empty((*self.shape[:2], *output_size)).to(memory_format=memory_format)


_LANCZOS = "_upsample_lanczos2d_aa"
KERNELS = ((f"aten::{_LANCZOS}.out", _into("lanczos", _LANCZOS)),)
_BILINEAR, _BICUBIC = "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"
OVERRIDES = (
    (f"aten::{_BILINEAR}", _new("linear", _BILINEAR), is_of_bytes),
    (f"aten::{_BILINEAR}.out", _into("linear", _BILINEAR), is_of_bytes),
    (f"aten::{_BICUBIC}", _new("cubic", _BICUBIC), is_of_bytes),
    (f"aten::{_BICUBIC}.out", _into("cubic", _BICUBIC), is_of_bytes),
    ("aten::upsample_bicubic2d", upsample_bicubic2d, is_of_bytes),
    ("aten::upsample_bicubic2d.out", upsample_bicubic2d_out, is_of_bytes),
)
FAKES = ((f"aten::{_LANCZOS}", fake_output),)
