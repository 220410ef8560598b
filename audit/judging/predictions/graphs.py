"""What a release's host code makes of a call as a graph of MPSGraph's operations."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

# Whose out= is written as if it were in rows.
IN_ROWS = ("index_select", "avg_pool2d", "avg_pool3d", "linalg_solve_triangular", "_standard_gamma_grad")
# In ULP of the largest element: any element may be off by it, one that is zero also.
ULPS = 8
# Graphs that resize by two factors, and how many arguments are before these.
RESIZED = {
    **dict.fromkeys(("upsample_nearest2d", "_upsample_nearest_exact2d"), 2),
    **dict.fromkeys(("upsample_nearest2d_backward", "_upsample_nearest_exact2d_backward"), 3),
    "upsample_bilinear2d_backward": 4,
}
TRANSFORMS = frozenset({"aten::_fft_c2c", "aten::_fft_r2c", "aten::_fft_c2r"})
_NORMS = {f"aten::native_{kind}_norm{suffix}" for kind in ("batch", "layer") for suffix in ("", "_backward")}
_SOFTMAX = {f"aten::{name}{suffix}" for name in ("_softmax", "_log_softmax") for suffix in ("", "_backward_data")}
IN_STEPS = frozenset({"aten::arange", "aten::log_sigmoid_forward"} | _NORMS | _SOFTMAX)


def _log_of_one_plus_exp(ulp: Ulp, power: Tensor) -> Tensor:
    """MPSGraph has no log1p: the sum is rounded before its logarithm is taken, in the dtype of the graph."""
    return ulp(ulp(1 + ulp(power.exp())).log())


def softplus(ulp: Ulp, input: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta."""
    scaled = input * beta
    return torch.where(scaled > threshold, input, _log_of_one_plus_exp(ulp, scaled) / beta)


def log_sigmoid_forward(ulp: Ulp, input: Tensor) -> tuple[Tensor, None]:
    """min(x, 0) - log(1 + exp(-|x|)); nothing is said of the buffer."""
    return input.clamp(max=0) - _log_of_one_plus_exp(ulp, -input.abs()), None


def mish(ulp: Ulp, input: Tensor) -> Tensor:
    """x tanh(log(1 + exp(x)))."""
    return input * ulp(_log_of_one_plus_exp(ulp, input).tanh())


def mish_backward(ulp: Ulp, grad: Tensor, input: Tensor) -> Tensor:
    """The same function's derivative."""
    mish_by_input = ulp(_log_of_one_plus_exp(ulp, input).tanh())
    inner = ulp(input * ulp(input.sigmoid())) * ulp(1 - ulp(mish_by_input * mish_by_input))
    return grad * ulp(ulp(inner) + mish_by_input)


def sigmoid_backward(ulp: Ulp, grad: Tensor, output: Tensor) -> Tensor | None:
    """The factor of a complex gradient is not conjugated."""
    return grad * ulp(ulp(1 - ulp(output)) * ulp(output)) if output.is_complex() else None


def tanh_backward(ulp: Ulp, grad: Tensor, output: Tensor) -> Tensor | None:
    """The factor of a complex gradient is not conjugated; the kernel of tanh is a few ULP off."""
    return grad * ulp(1 - ulp(ulp(output, 4.0).square())) if output.is_complex() else None


def linspace(ulp: Ulp, start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any) -> Tensor | None:
    """Numbers between floats, cut to integers; the CPU cuts both ends first."""
    if (dtype is not None and (dtype.is_floating_point or dtype.is_complex)) or steps < 2:
        return None
    if any(isinstance(limit, complex) for limit in (start, end)):
        return None
    first, last = float(start), float(end)
    return ulp(torch.arange(steps, dtype=torch.float32) * ((last - first) / (steps - 1)) + first)


def log_sigmoid_backward(ulp: Ulp, grad: Tensor, input: Tensor, buffer: Tensor) -> Tensor:
    """grad / (1 + exp(x)); the buffer, from which the CPU computes, is not looked at."""
    return grad * ulp(torch.sigmoid(-input))


def asinh(ulp: Ulp, input: Tensor) -> Tensor | None:
    """log(z + sqrt(z^2 + 1)), which cancels on the left."""
    return ulp(ulp(input + ulp(ulp(ulp(input * input) + 1).sqrt())).log()) if input.is_complex() else None


def threshold(ulp: Ulp, input: Tensor, threshold: Any, value: Any) -> Tensor:
    """What is not larger than the threshold is replaced, NaN too."""
    return torch.where(input > threshold, input, value)


def threshold_backward(ulp: Ulp, grad: Tensor, input: Tensor, threshold: Any) -> Tensor:
    """Nothing flows back to what is not larger than the threshold, NaN too."""
    return torch.where(input > threshold, grad, 0)


def prelu(ulp: Ulp, input: Tensor, weight: Tensor) -> Tensor:
    """max(x, 0) + w min(x, 0): an infinite weight makes NaN of positive numbers."""
    return input.clamp(min=0) + weight * input.clamp(max=0)


def _index_beside_nan(smallest: bool) -> Model:
    """The extreme is NaN where there is one, and the index that of the largest or smallest number."""

    def model(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor] | None:
        if not isinstance(dim, int) or not input.is_floating_point():
            return None
        extreme = torch.min if smallest else torch.max
        numbers = torch.where(input.isnan(), torch.inf if smallest else -torch.inf, input)
        return extreme(input, dim, keepdim)[0], extreme(numbers, dim, keepdim)[1]

    return model


def _median(*, of_numbers: bool) -> Model:
    """The middle of a sorted row, whose NaNs are last; zero where no number is left."""

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
    """Integers lose what is beyond 32 bits before they are compared."""

    def model(ulp: Ulp, input: Tensor, *options: Any, **named: Any) -> Any:
        if input.dtype is not torch.int64:
            return None
        return getattr(torch.ops.aten, overload)(input.int(), *options, **named)

    return model


def _in_rows(overload: str) -> Model:
    """The result in rows, in the memory of a tensor with other strides."""

    def model(ulp: Ulp, *args: Any, out: Tensor | None = None, **options: Any) -> Tensor | None:
        if out is None or out.is_contiguous():
            return None
        result: Tensor = getattr(torch.ops.aten, overload)(*args, **options)
        return result.contiguous().as_strided(out.shape, out.stride())

    return model


def _resized_by_one_factor(overload: str, before: int) -> Model:
    """A height's factor that is not given is one, and without the width's the height's does not count."""

    def model(ulp: Ulp, *args: Any) -> Any:
        height, width = (*args[before:], None, None)[:2]
        resize, is_half_given = getattr(torch.ops.aten, overload), (height is None) is not (width is None)
        return resize(*args[:before], 1.0 if width else None, width) if is_half_given else None

    return model


def small_beside(least: float, values: Tensor, right: Tensor, wide: Tensor) -> Tensor:
    """Both are finite, and differ by a few ULP of the largest element, or of `least` where that is more."""
    differing = (values - right).abs().double()
    largest = torch.where(right.isfinite(), right, 0).abs().max().clamp(min=least) if right.numel() else right.abs()
    eps = torch.finfo(right.dtype if right.is_floating_point() or right.is_complex() else torch.float32).eps
    return values.isfinite() & (differing <= ULPS * eps * largest)


GRAPHS = (
    Prediction(
        "log-of-one-plus-exp",
        {
            "aten::softplus": softplus,
            "aten::log_sigmoid_forward": log_sigmoid_forward,
            "aten::mish": mish,
            "aten::mish_backward": mish_backward,
        },
    ),
    Prediction(
        "gradient-without-conjugate", {"aten::sigmoid_backward": sigmoid_backward, "aten::tanh_backward": tanh_backward}
    ),
    Prediction("log-sigmoid-without-its-buffer", {"aten::log_sigmoid_backward": log_sigmoid_backward}),
    Prediction("asinh-as-a-logarithm", {"aten::asinh": asinh}),
    Prediction(
        "thresholds-replace-nan", {"aten::threshold": threshold, "aten::threshold_backward": threshold_backward}
    ),
    Prediction("prelu-as-a-sum", {"aten::_prelu_kernel": prelu}),
    Prediction(
        "index-beside-nan",
        {"aten::max": _index_beside_nan(smallest=False), "aten::min": _index_beside_nan(smallest=True)},
    ),
    Prediction(
        "median-sorts-nan-last",
        {"aten::median": _median(of_numbers=False), "aten::nanmedian": _median(of_numbers=True)},
    ),
    Prediction(
        "unique-of-32-bits",
        {f"aten::{name}": _of_32_bits(name) for name in ("_unique", "_unique2", "unique_consecutive", "unique_dim")},
    ),
    Prediction("results-in-rows", {f"aten::{name}": _in_rows(name) for name in IN_ROWS}),
    Prediction("small-beside-one", where=partial(small_beside, 1), with_calls=IN_STEPS),
    Prediction("integers-between-floats", {"aten::linspace": linspace}),
    Prediction(
        "resized-by-one-factor", {f"aten::{name}": _resized_by_one_factor(name, n) for name, n in RESIZED.items()}
    ),
    Prediction("small-beside-the-largest", where=partial(small_beside, 0), with_calls=TRANSFORMS),
)
