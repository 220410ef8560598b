"""Antialiased resampling in two passes, along the width and along the height.

Torch has kernels with two filters for floats on mps. This family adds bytes, with exactly the CPU's results, and the
Lanczos filter. It also has bicubic resampling of bytes without antialiasing, which the CPU computes in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..runtime.layout import launch_elements, memory_format_of
from ..runtime.operands import FLOATING, require_device, require_supported
from ..runtime.outputs import check_outputs, is_ready, on_meta
from ..runtime.resampling import SUPPORT, is_too_far, window_distances
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned
from .filters import ByteWeights, byte_weights, clamped_byte_weights

_shader = Shader(__file__)
_aten = torch.ops.aten
_DTYPES = FLOATING | {torch.uint8}
_HEIGHT, _WIDTH = 2, 3


def _forms(operator: str, filter_name: str | None = None) -> tuple[Callable[..., torch.Tensor], ...]:
    """The functional form of an operator and its out form. Without a filter it is bicubic, and not antialiased."""

    def resampled(out: torch.Tensor, self: torch.Tensor, plan: _Plan, arguments: Sequence[Any]) -> torch.Tensor:
        scales, passes = plan
        if not passes:
            out.copy_(self)
        elif filter_name is None:
            _resample_bytes(out, self, clamped_byte_weights, arguments[1], passes)
        elif is_too_far(operator, filter_name, scales, self.shape[2:]):
            fill_on_cpu([out], getattr(_aten, operator), self, *arguments)
        elif self.dtype == torch.uint8:
            _resample_bytes(out, self, byte_weights, filter_name, passes)
        else:
            _resample(out, self, filter_name, passes)
        return out

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
        arguments = (tuple(output_size), align_corners, scales_h, scales_w)
        plan = planned(_plan_of_fitting, (self, out), operator, *arguments)
        if plan is None:
            given = [self, output_size, align_corners, scales_h, scales_w]
            check_outputs(getattr(_aten, operator).out, given, {"out": out}, [self.dtype])
            require_device(self, {"out": out}, operator)
            require_supported(self, operator, _DTYPES)
            if not out.numel():
                return out
            plan = _plan(self, out, *arguments)
        return resampled(out, self, plan, arguments)

    def result_of(
        self: torch.Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> torch.Tensor:
        """The result has the input's memory format."""
        arguments = (tuple(output_size), align_corners, scales_h, scales_w)
        shape, strides, plan = planned(_plan_of_new, (self,), operator, *arguments)
        out = torch.empty_strided(shape, strides, dtype=self.dtype, device=self.device)
        return out_of(self, *arguments, out=out) if plan is None else resampled(out, self, plan, arguments)

    return result_of, out_of


class _Pass(NamedTuple):
    """Resampling along one axis: its sizes before and after, the distance of windows, and the numbers of the kernel.

    `between`: shape and strides of a result that the next pass reads; None for the output.
    """

    inputs: int
    outputs: int
    scale: float
    between: tuple[tuple[int, ...], tuple[int, ...]] | None
    geometry: list[int]


_Plan = tuple[Sequence[float], Sequence[_Pass]]


def _plan_of_fitting(
    self: torch.Tensor, out: torch.Tensor, operator: str, output_size: Sequence[int], *arguments: Any
) -> _Plan | None:
    """The plan if nothing is to be refused. What does not fit goes to the meta kernel, which may load sympy."""
    if self.dim() != 4 or len(output_size) != 2 or 0 in output_size or not self.numel():
        return None
    if not is_ready(out, (*self.shape[:2], *output_size), self.dtype):
        return None
    require_supported(self, operator, _DTYPES)
    return _plan(self, out, output_size, *arguments)


def _plan_of_new(
    self: torch.Tensor, operator: str, output_size: Sequence[int], *arguments: Any
) -> tuple[Sequence[int], Sequence[int], _Plan | None]:
    """Shape and strides of a new result, without elements for an input that will be refused, and the plan."""
    out = fake_output(on_meta(self), output_size) if self.dim() == 4 else torch.empty(0, device="meta")
    return out.shape, out.stride(), _plan_of_fitting(self, out, operator, output_size, *arguments)


def _plan(
    source: torch.Tensor, out: torch.Tensor, output_size: Sequence[int], align_corners: bool, *given: float | None
) -> _Plan:
    """The distances of windows, and the passes in turn; an axis that keeps its size is skipped, as on the CPU."""
    before, after, strides = source.shape, out.shape, source.stride()
    scales = window_distances(before[2:], output_size, align_corners, given)
    axes, passes = [axis for axis in (_WIDTH, _HEIGHT) if before[axis] != after[axis]], []
    for axis in axes:
        target, between = out, None
        if axis != axes[-1]:
            target = torch.empty((*before[:3], after[3]), device="meta")
            between = target.shape, target.stride()
        geometry = [*target.shape, *target.stride(), *strides, axis]
        passes.append(_Pass(before[axis], after[axis], scales[axis - _HEIGHT], between, geometry))
        strides = target.stride()
    return scales, passes


def _resample(out: torch.Tensor, source: torch.Tensor, filter_name: str, passes: Sequence[_Pass]) -> None:
    device = out.device
    for inputs, outputs, scale, between, geometry in passes:
        target = out if between is None else torch.empty_strided(*between, dtype=torch.float32, device=device)
        windows, weights, room = _tables(filter_name, outputs, inputs, scale, device)
        kernel = _shader.kernel(f"forward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[target.dtype]}", device)
        launch_elements(kernel, target.numel(), target, source, windows, weights, [*geometry, room])
        source = target


def _resample_bytes(
    out: torch.Tensor,
    source: torch.Tensor,
    weights_of: Callable[[Any, int, int, float, torch.device], ByteWeights],
    kind: str | bool,
    passes: Sequence[_Pass],
) -> None:
    """`weights_of`: the table of an axis, of a filter or of one with `align_corners` or not, `kind`."""
    device = out.device
    kernel = _shader.kernel("antialias_bytes", device)
    for inputs, outputs, scale, between, geometry in passes:
        target = out if between is None else torch.empty_strided(*between, dtype=torch.uint8, device=device)
        windows, weights, room, precision = weights_of(kind, inputs, outputs, scale, device)
        numbers = [*geometry, room, precision]
        launch_elements(kernel, target.numel(), target, source, windows, weights, numbers)
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
KERNELS = ((f"aten::{_LANCZOS}.out", _forms(_LANCZOS, "lanczos")[1]),)
# What torch's own kernels on mps refuse.
_BYTES = frozenset({torch.uint8})
OVERRIDES = tuple(
    (f"aten::{operator}{suffix}", function, _BYTES)
    for operator, filter_name in ((_BILINEAR, "linear"), (_BICUBIC, "cubic"), ("upsample_bicubic2d", None))
    for suffix, function in zip(("", ".out"), _forms(operator, filter_name), strict=True)
)
FAKES = ((f"aten::{_LANCZOS}", fake_output),)
