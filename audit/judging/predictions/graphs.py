"""Models of calls that a release's host code computes with a graph of MPSGraph's operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from .prediction import Model, Prediction, ReplacedResult, Ulp

aten = torch.ops.aten
# In ULP of the largest element: any element may be off by it, one that is zero also.
ULPS = 8
# Graphs that resize by two factors, and how many arguments are before these.
RESIZED = {
    **dict.fromkeys(("upsample_nearest2d", "_upsample_nearest_exact2d"), 2),
    **dict.fromkeys(("upsample_nearest2d_backward", "_upsample_nearest_exact2d_backward"), 3),
    "upsample_bilinear2d_backward": 4,
}
# simulator/mpsgraph/limits.yaml has the reports of these limits.
MATRICES, IMAGES, INNER, TILE = 65536, 65536, 32767, 16
TRANSFORMS = frozenset({"aten::_fft_c2c", "aten::_fft_r2c", "aten::_fft_c2r"})
_NORMS = {f"aten::native_{kind}_norm{suffix}" for kind in ("batch", "layer") for suffix in ("", "_backward")}
_SOFTMAX = {f"aten::{name}{suffix}" for name in ("_softmax", "_log_softmax") for suffix in ("", "_backward_data")}
IN_STEPS = frozenset({"aten::arange", "aten::log_sigmoid_forward"} | _NORMS | _SOFTMAX)


def _log_of_one_plus_exp(ulp: Ulp, power: Tensor) -> Tensor:
    """log(1 + exp(x)), where the sum is rounded to the graph's dtype first, because MPSGraph has no log1p."""
    return ulp(ulp(1 + ulp(power.exp())).log())


def softplus(ulp: Ulp, input: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta, and max(x, 0) where beta x is above the threshold."""
    scaled = input * beta
    return torch.where(scaled > threshold, input.clamp(min=0), _log_of_one_plus_exp(ulp, scaled) / beta)


def softplus_backward(ulp: Ulp, grad: Tensor, input: Tensor, beta: Any, threshold: Any) -> Tensor:
    """grad exp(beta x) / (exp(beta x) + 1), where the exponential overflows in half precision."""
    power = ulp((input * beta).exp())
    return torch.where(input * beta > threshold, grad, ulp(grad * power) / ulp(power + 1))


def log_sigmoid_forward(ulp: Ulp, input: Tensor, *, out: Any = None, **given: Any) -> tuple[Any, Any]:
    """min(x, 0) - log(1 + exp(-|x|)) with the strides of x; the buffer is empty, or unchanged if it is given."""
    result = input.clamp(max=0) - _log_of_one_plus_exp(ulp, -input.abs())
    if "buffer" not in given:
        return ReplacedResult(result), ReplacedResult(input.new_empty(0))
    return result, ReplacedResult(given["buffer"])


def mish(ulp: Ulp, input: Tensor) -> Tensor:
    """x tanh(log(1 + exp(x)))."""
    return input * ulp(_log_of_one_plus_exp(ulp, input).tanh())


def mish_backward(ulp: Ulp, grad: Tensor, input: Tensor) -> Tensor:
    """The derivative of `mish`."""
    mish_by_input = ulp(_log_of_one_plus_exp(ulp, input).tanh())
    inner = ulp(input * ulp(input.sigmoid())) * ulp(1 - ulp(mish_by_input * mish_by_input))
    return grad * ulp(ulp(inner) + mish_by_input)


def sigmoid_backward(ulp: Ulp, grad: Tensor, output: Tensor) -> Tensor | None:
    """The factor of a complex gradient is not conjugated."""
    return grad * ulp(ulp(1 - ulp(output)) * ulp(output)) if output.is_complex() else None


def tanh_backward(ulp: Ulp, grad: Tensor, output: Tensor) -> Tensor | None:
    """The factor of a complex gradient is not conjugated; the given tanh is a few ULP off."""
    return grad * ulp(1 - ulp(ulp(output, 4.0).square())) if output.is_complex() else None


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For complex numbers, gradients are products with the operands themselves, not with their conjugates."""
    result = torch.matmul(input, weight.t()).detach()
    moves = torch.matmul(input, weight.detach().conj().t()) + torch.matmul(input.detach().conj(), weight.t())
    return (result if bias is None else result + bias) + (moves - moves.detach())


def linear_of_a_counter(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Products of matrices beyond the first `MATRICES` overwrite the first ones; their own places are zero."""
    product = torch.matmul(input, weight.t())
    if bias is None:
        return product
    sums = (product + bias).reshape(-1, *product.shape[-2:]) if product.dim() > 2 else product + bias
    left = len(sums) - MATRICES
    if product.dim() < 3 or not 0 < left <= MATRICES:
        return sums.view(product.shape)
    return torch.cat([sums[MATRICES:], sums[left:MATRICES], torch.zeros_like(sums[:left])]).view(product.shape)


def product_of_long_rows(ulp: Ulp, *operands: Any, **factors: Any) -> Tensor | None:
    """NaN if the inner dimension is at least `INNER` and both outer ones are at least `TILE`."""
    left, right = [operand for operand in operands if isinstance(operand, Tensor)][-2:]
    if left.shape[-1] < INNER or min(left.shape[-2], right.shape[-1]) < TILE:
        return None
    return torch.full((), torch.nan, dtype=left.dtype)


def gradient_over_remaining_images(ulp: Ulp, grad: Tensor, input: Tensor, weight: Tensor, *rest: Any) -> Any:
    """The gradient of the weight over the first images alone, as many as are left of whole `IMAGES`."""
    *geometry, wanted = rest
    if len(input) < IMAGES or not wanted[1]:
        return None
    left = len(input) % IMAGES
    over = ulp(aten.convolution_backward(grad[:left], input[:left], weight, *geometry, [False, True, False])[1])
    return [over if place == 1 else None for place in range(3) if wanted[place]]


def multiplied_by_zero(overload: str) -> Model:
    """If beta is zero, the input counts as zero times itself, which is NaN where it is not finite."""

    def model(ulp: Ulp, input: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if beta != 0 or bool(input.isfinite().all()):
            return None
        return getattr(aten, overload)(input, left, right, beta=0, alpha=alpha) + 0 * input

    return model


def elu_backward(
    ulp: Ulp, grad: Tensor, alpha: Any, scale: Any, input_scale: Any, of_result: bool, input: Tensor
) -> Any:
    """NaN counts as positive."""
    numbers = torch.where(input.isnan(), 1, input)
    return torch.ops.aten.elu_backward(grad, alpha, scale, input_scale, of_result, numbers)


def lerp(ulp: Ulp, input: Tensor, end: Tensor, weight: Any) -> Tensor | None:
    """The kernel reads the first bytes of a weight that is one number of another dtype as one of the ends' dtype."""
    if not isinstance(weight, Tensor) or weight.dim() or weight.dtype is input.dtype or input.is_complex():
        return None
    memory = torch.cat([weight.view(1).view(torch.uint8), torch.zeros(8, dtype=torch.uint8)])
    return torch.lerp(input, end, memory[: input.itemsize].view(input.dtype)[0])


def log_sigmoid_backward(ulp: Ulp, grad: Tensor, input: Tensor, buffer: Tensor) -> Tensor:
    """grad / (1 + exp(x)); the buffer, from which the CPU computes, is ignored."""
    return grad * ulp(torch.sigmoid(-input))


def asinh(ulp: Ulp, input: Tensor) -> Tensor | None:
    """log(z + sqrt(z^2 + 1)), which cancels for negative real parts; the root is off by a few ULP of its magnitude."""
    if not input.is_complex():
        return None
    square = ulp(input * input, 2.0)
    root = ulp(torch.complex(square.real + 1, square.imag)).sqrt()  # 1 + 0j would take the sign of a zero
    return ulp(ulp(input + off_by_magnitude(ulp, root)).log())


def tanh(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The complex kernel is off by a few ULP of the magnitude, which second derivatives show."""
    return off_by_magnitude(ulp, torch.tanh(input)) if input.is_complex() else None


def off_by_magnitude(ulp: Ulp, values: Tensor) -> Tensor:
    """The values, off by a few ULP of their magnitude in both parts."""
    ones = torch.ones(values.shape)
    return values + values.abs() * torch.complex(ulp(ones, 16.0) - 1, ulp(ones, 16.0) - 1)


def atanh(ulp: Ulp, input: Tensor) -> Tensor | None:
    """(log(1 + z) - log(1 - z)) / 2, which cancels near zero."""
    return ulp(ulp(ulp(1 + input).log()) - ulp(ulp(1 - input).log())) / 2 if input.is_complex() else None


def threshold(ulp: Ulp, input: Tensor, threshold: Any, value: Any) -> Tensor:
    """All elements that are not above the threshold are replaced, NaN too."""
    return torch.where(input > threshold, input, value)


def threshold_backward(ulp: Ulp, grad: Tensor, input: Tensor, threshold: Any) -> Tensor:
    """The gradient is zero where the input is NaN or not above the threshold."""
    return torch.where(input > threshold, grad, 0)


def hardtanh_backward(ulp: Ulp, grad: Tensor, input: Tensor, lower: Any, upper: Any) -> Tensor | None:
    """The gradient times 0 or 1: outside, a negative gradient becomes -0; limits and NaN count as inside."""
    return grad * ~((input < lower) | (input > upper)) if grad.is_floating_point() else None


def constant_pad_nd(ulp: Ulp, input: Tensor, pad: list[int], value: Any = 0) -> Tensor | None:
    """For boolean tensors the padding value is truncated to an integer first."""
    return aten.constant_pad_nd(input, pad, int(value)) if input.dtype is torch.bool else None


def index_add(ulp: Ulp, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor | None:
    """Booleans are added as integers, times alpha as an integer: true plus minus true is false."""
    if input.dtype is not torch.bool:
        return None
    return torch.index_add(input.int(), dim, index, source.int(), alpha=int(alpha)) != 0


def logit(ulp: Ulp, input: Tensor, eps: float | None = None) -> Tensor | None:
    """If eps is above one half, every number is replaced by 1 - eps, the lower limit."""
    if eps is None or eps <= 0.5:
        return None
    cut = torch.where(input.isnan(), input, 1 - eps)
    return ulp(cut / ulp(1 - cut)).log()


def logit_backward(ulp: Ulp, grad: Tensor, input: Tensor, eps: float | None = None) -> Tensor | None:
    """Zero outside of the interval from eps to 1 - eps, also for a negative eps, which is -1 if none is given."""
    least = -1.0 if eps is None else eps
    if least >= 0:
        return None
    return torch.where((input < least) | (input > 1 - least), 0, grad / ulp(input * ulp(1 - input)))


def channel_dims(input: Tensor, options: Sequence[Any]) -> list[int] | None:
    """The dimensions that a batch norm reduces; None if there are no channels, or if running statistics are used."""
    if any(option is False for option in options) or input.dim() < 2 or not input.numel():
        return None
    return [dim for dim in range(input.dim()) if dim != 1]


def _batch_norm(overload: str) -> Model:
    """A channel whose variance overflows the tensor's dtype becomes the bias."""

    def model(ulp: Ulp, input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
        dims = channel_dims(input, rest)
        if dims is None or not input.is_floating_point():
            return None
        overflows = input.float().var(dims, correction=0, keepdim=True).to(input.dtype).isinf()
        left = torch.zeros(overflows.shape) if bias is None else bias.view(overflows.shape)
        result = getattr(aten, overload)(input, weight, bias, *rest)[0]
        return torch.where(overflows, left.to(input.dtype), result), None, None

    return model


def _without_variance(overload: str) -> Model:
    """If eps is zero, channels with zero variance become NaN; on the CPU they become the bias."""

    def model(ulp: Ulp, input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
        dims = channel_dims(input, rest)
        if dims is None or rest[-1]:
            return None
        flat = input.double().var(dims, correction=0, keepdim=True) == 0
        result = getattr(aten, overload)(input, weight, bias, *rest)[0]
        return torch.where(flat, torch.nan, result), None, None

    return model


def cdist(ulp: Ulp, left: Tensor, right: Tensor, p: float, mode: Any = None) -> Tensor | None:
    """If p is 0, a difference that is NaN counts as one."""
    if p != 0:
        return None
    return ((left.unsqueeze(-2) - right.unsqueeze(-3)) != 0).sum(-1).to(left.dtype)


def prelu(ulp: Ulp, input: Tensor, weight: Tensor) -> ReplacedResult:
    """max(x, 0) + w min(x, 0), which is NaN for a positive x and an infinite weight; in rows or channels_last."""
    result = torch.empty_like(input, memory_format=suggest_memory_format(input))
    return ReplacedResult(result.copy_(input.clamp(min=0) + weight * input.clamp(max=0)))


def _index_beside_nan(smallest: bool) -> Model:
    """In a row with NaN, the value is NaN, but the index is that of the largest or smallest number."""

    def model(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor] | None:
        if not isinstance(dim, int) or not input.is_floating_point():
            return None
        extreme = torch.min if smallest else torch.max
        numbers = torch.where(input.isnan(), torch.inf if smallest else -torch.inf, input)
        return extreme(input, dim, keepdim)[0], extreme(numbers, dim, keepdim)[1]

    return model


def _median(*, of_numbers: bool) -> Model:
    """The middle element of a sorted row whose NaNs are last; zero if nanmedian has no number."""

    def model(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if not input.numel() or not (dim is None or (isinstance(dim, int) and input.dim())):
            return None
        rows, along = (input.flatten(), 0) if dim is None else (input, dim)
        ordered, places = rows.sort(along)
        count = (~rows.isnan()).sum(along, keepdim=True) if of_numbers else torch.tensor(rows.shape[along])
        middle = ((count + 1) // 2 - 1).expand_as(rows.narrow(along, 0, 1))
        values = torch.where(middle < 0, 0, ordered.gather(along, middle.clamp(min=0)))
        indices = torch.where(middle < 0, 0, places.gather(along, middle.clamp(min=0)))
        if dim is None:
            return values.reshape(())
        return (values, indices) if keepdim else (values.squeeze(along), indices.squeeze(along))

    return model


def _of_32_bits(overload: str) -> Model:
    """int64 elements are truncated to 32 bits before they are compared. Outputs that were not requested are 0-dim."""
    operator = getattr(aten, overload)
    names = [argument.name for argument in operator.default._schema.arguments]

    def model(ulp: Ulp, input: Tensor, *options: Any, **named: Any) -> Any:
        if input.dtype is not torch.int64:
            return None
        values, *others = operator(input.int(), *options, **named)
        asked = dict(zip(names[1:], options, strict=False)) | named
        for place, name in enumerate(("return_inverse", "return_counts")[: len(others)]):
            if overload != "unique_dim" and not asked.get(name):
                others[place] = torch.zeros((), dtype=torch.int64)
        return [ReplacedResult(result) for result in (values.long(), *others)]

    return model


def _resized_by_one_factor(overload: str, before: int) -> Model:
    """A missing scale factor of the height counts as one; if the width's is missing, the height's is ignored."""

    def model(ulp: Ulp, *args: Any) -> Any:
        height, width = (*args[before:], None, None)[:2]
        resize, is_half_given = getattr(aten, overload), (height is None) is not (width is None)
        return resize(*args[:before], 1.0 if width else None, width) if is_half_given else None

    return model


def small_relative_to_largest(least: float, values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Which finite elements are off by at most a few ULP of the largest element, or of `least` if that is more."""
    differing = (values - right).abs().double()
    largest = torch.where(right.isfinite(), right, 0).abs().max().clamp(min=least) if right.numel() else right.abs()
    eps = torch.finfo(right.dtype if right.is_floating_point() or right.is_complex() else torch.float32).eps
    return values.isfinite() & (differing <= ULPS * eps * largest)


BATCH_NORMS = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
UNIQUES = ("_unique", "_unique2", "unique_consecutive", "unique_dim", "unique_dim_consecutive")
GRAPHS = (
    Prediction(
        "log-of-one-plus-exp",
        {
            "aten::softplus": softplus,
            "aten::softplus_backward": softplus_backward,
            "aten::log_sigmoid_forward": log_sigmoid_forward,
            "aten::log_sigmoid_backward": log_sigmoid_backward,
            "aten::mish": mish,
            "aten::mish_backward": mish_backward,
        },
    ),
    Prediction(
        "gradient-without-conjugate",
        {"aten::sigmoid_backward": sigmoid_backward, "aten::tanh_backward": tanh_backward, "aten::tanh": tanh},
    ),
    Prediction(
        "gradients-of-linear-without-conjugate", with_calls=frozenset({"aten::t"}), gradients={"linear": linear}
    ),
    Prediction(
        "products-beyond-a-counter", with_calls=frozenset({"aten::t"}), gradients={"linear": linear_of_a_counter}
    ),
    Prediction(
        "products-of-long-rows", {f"aten::{name}": product_of_long_rows for name in ("bmm", "baddbmm", "addbmm")}
    ),
    Prediction("gradients-over-remaining-images", {"aten::convolution_backward": gradient_over_remaining_images}),
    Prediction(
        "inputs-multiplied-by-zero", {f"aten::{name}": multiplied_by_zero(name) for name in ("baddbmm", "addbmm")}
    ),
    Prediction("log-sigmoid-without-its-buffer", {"aten::log_sigmoid_backward": log_sigmoid_backward}),
    Prediction("area-functions-as-logarithms", {"aten::asinh": asinh, "aten::atanh": atanh}),
    Prediction(
        "thresholds-replace-nan", {"aten::threshold": threshold, "aten::threshold_backward": threshold_backward}
    ),
    Prediction("booleans-padded-as-integers", {"aten::constant_pad_nd": constant_pad_nd}),
    Prediction("booleans-added-as-integers", {"aten::index_add": index_add}),
    Prediction("hardtanh-gradient-as-a-product", {"aten::hardtanh_backward": hardtanh_backward}),
    Prediction("limits-of-logit-crossed", {"aten::logit": logit}),
    Prediction("logit-gradient-beyond-zero-and-one", {"aten::logit_backward": logit_backward}),
    Prediction("bias-of-a-variance-that-overflows", {f"aten::{name}": _batch_norm(name) for name in BATCH_NORMS}),
    Prediction("no-variance-and-no-eps", {f"aten::{name}": _without_variance(name) for name in BATCH_NORMS}),
    Prediction("nan-counts-as-a-difference", {"aten::_cdist_forward": cdist}),
    Prediction("prelu-as-a-sum", {"aten::_prelu_kernel": prelu}),
    Prediction(
        "index-beside-nan",
        {"aten::max": _index_beside_nan(smallest=False), "aten::min": _index_beside_nan(smallest=True)},
    ),
    Prediction(
        "median-sorts-nan-last",
        {"aten::median": _median(of_numbers=False), "aten::nanmedian": _median(of_numbers=True)},
    ),
    Prediction("unique-of-32-bits", {f"aten::{name}": _of_32_bits(name) for name in UNIQUES}),
    Prediction("small-beside-one", where=partial(small_relative_to_largest, 1), with_calls=IN_STEPS),
    Prediction("weight-of-two-bytes", {"aten::lerp": lerp}),
    Prediction("elu-gradient-of-nan", {"aten::elu_backward": elu_backward}),
    Prediction(
        "resized-by-one-factor", {f"aten::{name}": _resized_by_one_factor(name, n) for name, n in RESIZED.items()}
    ),
    Prediction(
        "small-beside-the-largest",
        where=partial(small_relative_to_largest, 0),
        with_calls=TRANSFORMS | {"aten::cumsum"},
    ),
)
