"""Deformable convolution, torchvision's operator: samples of the input on the GPU, times the weight by torch's matmul.

torchvision has no backward on mps, and up to 0.22 no forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..runtime.autocast import without_autocast
from ..runtime.determinism import alert_not_deterministic
from ..runtime.operands import require_device, require_supported
from ..runtime.rows import row_group
from ..runtime.shader import Shader

_shader = Shader(__file__)
_NAME = "deform_conv2d"
# Elements of the samples that are in memory at once, unless a single image has more.
_MOST = 2**26


@without_autocast
def deform_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> torch.Tensor:
    """`torchvision::deform_conv2d`. Halves are computed in float32 and rounded once.

    Raises RuntimeError for shapes that do not fit, NotImplementedError for other dtypes.
    """
    strides = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    call = _Call.of(input, weight, offset, mask, bias, strides, (groups, offset_groups), use_mask=use_mask)
    whole = call.input.new_empty((input.shape[0], call.groups, weight.shape[0] // call.groups, call.length))
    for part in call.parts():
        whole[part] = torch.matmul(call.weights, call.columns(part))
    return (whole.view(input.shape[0], weight.shape[0], *call.places) + call.bias[:, None, None]).to(input.dtype)


@without_autocast
def deform_conv2d_backward(
    grad: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> tuple[torch.Tensor, ...]:
    """`torchvision::_deform_conv2d_backward`: of the input, the weight, the offsets, the mask and the bias.

    Raises what `deform_conv2d` does, and RuntimeError where deterministic algorithms are asked for: the input's
    gradient is added atomically.
    """
    alert_not_deterministic("compute_grad_input")
    strides = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    call = _Call.of(input, weight, offset, mask, bias, strides, (groups, offset_groups), use_mask=use_mask)
    require_device(input, {"grad": grad}, _NAME)
    shape = (input.shape[0], weight.shape[0], *call.places)
    if tuple(grad.shape) != shape:
        raise RuntimeError(f"{_NAME}: expected a gradient of size {list(shape)}, but got {list(grad.shape)}")
    wide = grad.float()
    of_weight = torch.zeros_like(call.weights)
    of_input, of_offset, of_mask = (torch.zeros_like(x) for x in (call.input, call.offset, call.mask))
    for part in call.parts():
        grouped = wide[part].reshape(-1, call.groups, weight.shape[0] // call.groups, call.length)
        of_weight += torch.matmul(grouped, call.columns(part).mT).sum(0)
        columns = torch.matmul(call.weights.mT, grouped).contiguous()
        gradients = (of_input[part], of_offset[part], of_mask[part] if use_mask else of_mask)
        call.launch("deform_gradients", part, *gradients, columns)
    results = (of_input, of_weight.view(weight.shape), of_offset, of_mask, wide.sum((0, 2, 3)))
    return tuple(result.to(input.dtype) for result in results)


@dataclass(frozen=True)
class _Call:
    """The checked arguments of a call: contiguous and float32; weights (groups, outputs, channels times taps)."""

    input: torch.Tensor
    weights: torch.Tensor
    offset: torch.Tensor
    mask: torch.Tensor
    bias: torch.Tensor
    places: tuple[int, int]
    groups: int
    offset_groups: int
    taps: int
    geometry: list[int]
    use_mask: bool

    @classmethod
    def of(
        cls,
        x: torch.Tensor,
        weight: torch.Tensor,
        offset: torch.Tensor,
        mask: torch.Tensor,
        bias: torch.Tensor,
        strides: tuple[int, ...],
        groups: tuple[int, int],
        *,
        use_mask: bool,
    ) -> _Call:
        require_supported(x, _NAME)
        others = {"weight": weight, "offset": offset, "mask": mask, "bias": bias}
        require_device(x, dict(others), _NAME)
        for name, other in others.items():
            if other.dtype != x.dtype:
                raise RuntimeError(f"{_NAME}: expected {name} to have dtype {x.dtype}, but got {other.dtype}")
        for name, tensor in {"input": x, "weight": weight, "offset": offset, "mask": mask}.items():
            if tensor.dim() != 4 and (name != "mask" or use_mask):
                raise RuntimeError(f"{_NAME}: expected {name} to have 4 dimensions, but got {tensor.dim()}")
        places = _checked_sizes(x, weight, offset, mask if use_mask else None, strides, groups)
        if tuple(bias.shape) != (weight.shape[0],):
            raise RuntimeError(f"{_NAME}: expected bias of size {[weight.shape[0]]}, but got {list(bias.shape)}")
        taps = weight.shape[2:]
        geometry = [*x.shape[1:], *taps, *places, *strides, groups[1], int(use_mask)]
        return cls(
            x.float().contiguous(),
            weight.float().reshape(groups[0], weight.shape[0] // groups[0], -1),
            offset.float().contiguous(),
            mask.float().contiguous(),
            bias.float(),
            places,
            *groups,
            taps.numel(),
            geometry,
            use_mask,
        )

    def parts(self) -> Iterator[slice]:
        """The items that are computed at once."""
        items = self.input.shape[0]
        step = max(1, _MOST // max(1, self.input.shape[1] * self.taps * self.length))
        return (slice(start, min(start + step, items)) for start in range(0, items, step))

    @property
    def length(self) -> int:
        """How many places the output has."""
        return self.places[0] * self.places[1]

    def columns(self, part: slice) -> torch.Tensor:
        """The samples (items, groups, channels times taps, places)."""
        items, channels = part.stop - part.start, self.input.shape[1]
        rows = channels // self.groups * self.taps
        columns = self.input.new_empty((items, self.groups, rows, self.length))
        self.launch("deform_columns", part, columns)
        return columns

    def launch(self, name: str, part: slice, *results: torch.Tensor) -> None:
        """Run a kernel with a thread for each place, tap and item."""
        operands = (self.input[part], self.offset[part], self.mask[part] if self.use_mask else self.mask)
        group = row_group(self.length)
        _shader.kernel(name, self.input.device)(
            *results,
            *operands,
            self.geometry,
            threads=(-(-self.length // group) * group, self.offset_groups * self.taps, part.stop - part.start),
            group_size=(group, 1, 1),
            arg_casts={len(results) + len(operands): "int32"},
        )


def _checked_sizes(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor | None,
    strides: tuple[int, ...],
    groups: tuple[int, int],
) -> tuple[int, int]:
    """The height and width of the output. Raises RuntimeError for sizes that a kernel would read past."""
    if min(strides[:2] + strides[4:]) <= 0 or min(strides[2:4]) < 0 or min(groups) <= 0 or not weight.numel():
        raise RuntimeError(
            f"{_NAME}: strides, dilations, groups and the weight's sizes must be positive, and paddings not negative"
        )
    if weight.shape[1] * groups[0] != x.shape[1] or weight.shape[0] % groups[0] or x.shape[1] % groups[1]:
        raise RuntimeError(
            f"{_NAME}: {x.shape[1]} channels, a weight of size {list(weight.shape)}, {groups[0]} groups and "
            f"{groups[1]} groups of offsets do not fit"
        )
    taps = weight.shape[2] * weight.shape[3]
    sizes = zip(x.shape[2:], weight.shape[2:], strides[:2], strides[2:4], strides[4:], strict=True)
    high, wide = ((size + 2 * pad - (d * (k - 1) + 1)) // step + 1 for size, k, step, pad, d in sizes)
    if high <= 0 or wide <= 0:
        raise RuntimeError(f"{_NAME}: calculated output size is too small: {high} by {wide}")
    expected = {"offset": (offset, 2), "mask": (mask, 1)}
    for name, (tensor, planes) in expected.items():
        shape = (x.shape[0], planes * groups[1] * taps, high, wide)
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(f"{_NAME}: expected {name} of size {list(shape)}, but got {list(tensor.shape)}")
    return high, wide


KERNELS = (
    ("torchvision::deform_conv2d", deform_conv2d),
    ("torchvision::_deform_conv2d_backward", deform_conv2d_backward),
)
