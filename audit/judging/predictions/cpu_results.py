"""The device's results of calls that the CPU's kernels compute wrong, or by a different rule."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from .prediction import KeptStrides, Prediction, Ulp

# Values that one place may be given, of which any stays.
MOST_VALUES = 40


def put(ulp: Ulp, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Any of the values written to an element; for a sum beyond the dtype's range, any non-finite number."""
    places = index.flatten().remainder(input.numel())
    if not accumulate:
        return _put_one_of_duplicates(ulp, input, places, source)
    sizes = torch.zeros(input.numel(), dtype=torch.float64).index_add_(0, places, source.abs().double().flatten())
    sizes += input.abs().double().flatten()
    overflows = (sizes > torch.finfo(input.dtype).max) if input.is_floating_point() else sizes < 0
    return torch.where(overflows.view(input.shape), math.nan, torch.put(input, index, source, True))


def index_put(
    ulp: Ulp, input: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False, *rest: Any
) -> Tensor | None:
    """Any of the values written to an element."""
    if accumulate:
        return None
    number = torch.arange(input.numel()).view(input.shape)
    places = torch.ops.aten.index(number, indices)
    return _put_one_of_duplicates(ulp, input, places.flatten(), values.expand(places.shape))


def _put_one_of_duplicates(ulp: Ulp, input: Tensor, places: Tensor, values: Tensor) -> Tensor:
    order = places.argsort(stable=True)
    named, counts = torch.unique_consecutive(places[order], return_counts=True)
    chosen = order[counts.cumsum(0) - counts + ulp.run % counts]
    return torch.put(input, named, values.flatten()[chosen])


def quantized_per_tensor(ulp: Ulp, grad: Tensor, input: Tensor, scale: Tensor, zero_point: Tensor, *limits: Any) -> Any:
    """The gradient of the scale; quotients are clamped as floats, so that huge and infinite ones keep their sign."""
    least, most, factor = (*limits, 1.0)[:3]
    zero = (zero_point.float().flatten()[0] + 0.5).clamp(least, most).trunc()
    shares = _shares(ulp, grad, input, scale.float().flatten()[0], zero, least, most)
    return None, (shares * factor).sum().view(1), None


def quantized_per_channel(
    ulp: Ulp, grad: Tensor, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, *limits: Any
) -> Any:
    """As `quantized_per_tensor`, for each channel."""
    least, most, factor = (*limits, 1.0)[:3]
    shape = [-1 if dim == axis else 1 for dim in range(input.dim())]
    zero = zero_point.float().round().clamp(least, most)
    shares = _shares(ulp, grad, input, scale.float().view(shape), zero.view(shape), least, most)
    others = [dim for dim in range(input.dim()) if dim != axis]
    return None, (shares * factor).sum(others), None


def clamped_per_channel(
    ulp: Ulp, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, least: int, most: int, factor: float = 1.0
) -> Tensor:
    """Each quotient is clamped before it becomes an integer, so that an infinite one keeps its sign."""
    shape = [-1 if dim == axis else 1 for dim in range(input.dim())]
    zero, step = zero_point.float().round().clamp(least, most).view(shape), scale.float().view(shape)
    place = (zero + (input.float() * (1 / step)).round()).clamp(least, most)
    return ulp((place - zero) * step)


def _shares(ulp: Ulp, grad: Tensor, input: Tensor, scale: Tensor, zero: Tensor, least: int, most: int) -> Tensor:
    place = zero + (input.float() * (1 / scale)).round()
    inside = (place >= least) & (place <= most)
    above = torch.where(place > most, most, torch.where(place >= least, place, least)) - zero
    return ulp(grad.float() * torch.where(inside, (above * scale - input.float()) / scale, above))


def adaptive_max_pool3d_backward(ulp: Ulp, grad: Tensor, input: Tensor, indices: Tensor) -> Tensor:
    """Gradients whose index points outside of their window are left out."""
    depth, height, width = input.shape[-3:]
    places = (indices // (height * width), indices // width % height, indices % width)
    inside = torch.ones(grad.shape, dtype=torch.bool)
    for dim, place, size in zip((-3, -2, -1), places, (depth, height, width), strict=True):
        windows = grad.shape[dim]
        number = torch.arange(windows).view([-1 if axis == dim else 1 for axis in range(-grad.dim(), 0)])
        inside &= (place >= number * size // windows) & (place < -(-(number + 1) * size // windows))
    kept = torch.where(inside, grad, 0)
    tensors = [tensor.contiguous() for tensor in (kept, input, indices)]
    return torch.ops.aten.adaptive_max_pool3d_backward(*tensors)  # type: ignore[no-any-return]


def linear_combination(ulp: Ulp, input: Tensor, coefficients: Tensor, *, out: Tensor | None = None) -> Tensor | None:
    """The combinations, also with complex coefficients, which the CPU misreads; they are added to a given output."""
    if not input.is_complex():
        return None
    combined: Tensor = torch.tensordot(coefficients, input, 1)
    return combined if out is None else combined + out


def pdist_backward(ulp: Ulp, grad: Tensor, input: Tensor, p: float, distances: Tensor) -> Tensor | None:
    """(difference / distance)^(p - 1), also for a huge p; for an infinite p, differences that equal the distance."""
    if p in (0, 1, 2):
        return None
    first, second = torch.triu_indices(len(input), len(input), 1)
    difference = input[first] - input[second]
    whole, share = distances.view(-1, 1), grad.reshape(-1, 1)
    if math.isinf(p):
        shares = torch.where(difference.abs() == whole, difference.sign() * share, 0)
    else:
        shares = difference.sign() * (difference.abs() / whole) ** (p - 1) * share
    shares = torch.where((whole == 0) | (difference == 0), 0, shares)
    return torch.zeros_like(input).index_add(0, first, shares).index_add(0, second, -shares)


def shrink(ulp: Ulp, grad: Tensor, input: Tensor, threshold: Any) -> Tensor:
    """The gradient passes where the input is NaN, as in the CPU's scalar loop after its vectorized one."""
    return torch.where(input.isnan(), grad, torch.ops.aten.hardshrink_backward(grad, input, threshold))


def bilinear_of_bytes(ulp: Ulp, input: Tensor, *sizes: Any) -> Tensor | None:
    """torch's decomposition, which rounds; the CPU's kernel truncates fixed-point numbers."""
    if input.dtype is not torch.uint8:
        return None
    return decomposition_table[torch.ops.aten.upsample_bilinear2d.default](input, *sizes)  # type: ignore[no-any-return]


def only_first_operand(ulp: Ulp, input: Any, other: Any, alpha: Any = 1) -> Tensor | None:
    """If `alpha` is zero, the result is the first operand."""
    if alpha != 0 or not isinstance(input, Tensor):
        return None
    dtype = torch.result_type(input, other)
    shape = torch.broadcast_tensors(input, torch.as_tensor(other))[0].shape  # type: ignore[no-untyped-call]
    return input.to(dtype).expand(shape)


def only_second_operand(ulp: Ulp, input: Any, other: Any, alpha: Any = 1) -> Tensor | None:
    """As `only_first_operand`, with the operands exchanged."""
    return only_first_operand(ulp, other, input, alpha)


def frequency_ignored(ulp: Ulp, *args: Any, **kwargs: Any) -> Tensor | None:
    """The gradient without `scale_grad_by_freq`."""
    if not args[6]:
        return None
    return torch.ops.aten._embedding_bag_dense_backward(*args[:6], False, *args[7:], **kwargs)  # type: ignore[no-any-return]


def last_bag_to_the_end(
    ulp: Ulp, weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any, **keywords: Any
) -> tuple[Tensor | None, ...] | None:
    """The last bag ends with the indices; the last offset is ignored."""
    if rest[4:5] != (True,) or not offsets.numel() or int(offsets[-1]) >= indices.numel():
        return None
    without = (*rest[:4], False, *rest[5:])
    bags = torch.ops.aten._embedding_bag_forward_only(weight, indices, offsets[:-1], *without, **keywords)
    return bags[0], None, None, None


def strides_kept(ulp: Ulp, grad: Tensor, input: Tensor, padding: list[int], **out: Tensor) -> KeptStrides | None:
    """The CPU makes a given grad_input contiguous in its memory."""
    given = out.get("grad_input")
    if given is None or given.shape != input.shape or given.is_contiguous():
        return None
    return KeptStrides(torch.ops.aten.reflection_pad3d_backward(grad, input, padding), given)


CPU_RESULTS = (
    Prediction("strides-kept", {"aten::reflection_pad3d_backward": strides_kept}),
    Prediction(
        "last-bag-to-the-end",
        {"aten::_embedding_bag": last_bag_to_the_end, "aten::_embedding_bag_forward_only": last_bag_to_the_end},
    ),
    Prediction(
        "nothing-times-the-second-operand",
        {"aten::add": only_first_operand, "aten::sub": only_first_operand, "aten::rsub": only_second_operand},
    ),
    Prediction("frequency-ignored", {"aten::_embedding_bag_dense_backward": frequency_ignored}),
    Prediction(
        "places-named-twice",
        {"aten::put": put, "aten::index_put": index_put, "aten::_index_put_impl": index_put},
        alternatives=MOST_VALUES,
        nan_is_any_non_finite=True,
    ),
    Prediction(
        "shrink-passes-the-gradient-of-nan", {"aten::hardshrink_backward": shrink, "aten::softshrink_backward": shrink}
    ),
    Prediction(
        "quotients-clamped-as-numbers",
        {
            "aten::_fake_quantize_learnable_per_tensor_affine_backward": quantized_per_tensor,
            "aten::_fake_quantize_learnable_per_channel_affine_backward": quantized_per_channel,
            "aten::_fake_quantize_learnable_per_channel_affine": clamped_per_channel,
        },
    ),
    Prediction("indices-of-other-windows", {"aten::adaptive_max_pool3d_backward": adaptive_max_pool3d_backward}),
    Prediction("combinations-of-complex-numbers", {"aten::_compute_linear_combination": linear_combination}),
    Prediction("distances-of-huge-norms", {"aten::_pdist_backward": pdist_backward}),
    Prediction("bilinear-by-its-decomposition", {"aten::upsample_bilinear2d": bilinear_of_bytes}),
)
