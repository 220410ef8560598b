"""Models of releases' kernels for real numbers and integers, from their compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

EULER = 0.5772156649015329
MOST_ZETA_TERMS = 64
ZETA_ERROR = 1.1102230246251565e-16
# (2k)! / B2k
ZETA_EXPANSION = (
    *(12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10),
    *(-2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17),
    -7.1661652561756670113e18,
)
# The largest float below 2^63.
LARGEST_DEGREE = 2.0**63 - 2.0**39
POLYNOMIALS = {
    f"aten::special_{family}_polynomial_{kind}": getattr(torch.special, f"{family}_polynomial_{kind}")
    for family, kinds in (("chebyshev", "tuvw"), ("hermite", ("h", "he")), ("shifted_chebyshev", "tuvw"))
    for kind in kinds
}
# Of the largest 64-bit degree, at both ends of the interval: the kernels compute 2n + 1 and n + 1 there, which wrap.
CHEBYSHEV_AT_ENDS = {"t": (1.0, -1.0), "u": (-(2.0**63), -(2.0**63)), "v": (1.0, 1.0), "w": (-1.0, -1.0)}
# Widths for which the kernels shift: narrower integers are converted to 32 bits.
NARROWEST_SHIFT = 32


def fused(left: Tensor, right: Tensor, added: Tensor) -> Tensor:
    """left * right + added, rounded once."""
    return (left.double() * right.double() + added.double()).to(added.dtype)


def _floating(*values: Any) -> list[Tensor]:
    """The values as float32 tensors, broadcast together."""
    tensors = [value if isinstance(value, Tensor) else torch.tensor(value) for value in values]
    return list(torch.broadcast_tensors(*(tensor.to(torch.float32) for tensor in tensors)))  # type: ignore[no-untyped-call]


def integer_abs(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The absolute value of integers through float: rounded beyond 2^24, and the largest integer for the least."""
    if input.is_floating_point() or input.is_complex():
        return None
    limits = torch.iinfo(input.dtype)
    size = input.to(torch.float32).abs().double()
    largest = float(limits.max) + 1  # a double: that of int64 is not representable
    return torch.where(size >= largest, limits.max, torch.where(size < largest, size, 0).to(input.dtype))


def erfc(ulp: Ulp, input: Tensor) -> Tensor | None:
    """1 - erf(x) in float."""
    if input.is_complex():
        return None
    return 1 - ulp(input.to(torch.float32).erf())


def expm1(ulp: Ulp, input: Tensor) -> Tensor | None:
    """exp(x) - 1 in float, from |x| = 1e-5 on."""
    if input.is_complex():
        return None
    (x,) = _floating(input)
    return torch.where(x.abs() < 1e-5, x + x * x / 2, ulp(x.exp()) - 1)


def digamma(ulp: Ulp, input: Tensor) -> Tensor | None:
    """Reflected for negative numbers, by tan(pi (x - floor(x))), in float."""
    (x,) = _floating(input)
    fraction = (x - x.floor()).clamp(max=1 - 2**-24)
    reflected = torch.special.digamma(ulp(1 - x)) - torch.pi / (torch.pi * fraction).tan()
    return torch.where((x < 0) & (x != x.trunc()), reflected, torch.special.digamma(x))


def polygamma(ulp: Ulp, order: int, input: Tensor) -> Tensor | None:
    """The function of order 0 is digamma."""
    return digamma(ulp, input) if order == 0 else None


def lgamma_of_infinity(ulp: Ulp, input: Tensor) -> Tensor | None:
    """(x - 1/2) log(x) - x for a huge x, in float32, reflected for negative ones: NaN where infinities cancel."""
    (x,) = _floating(input)
    size = x.abs()
    product = (size - 0.5) * size.log()
    positive = torch.where(product.isinf(), product - size, torch.lgamma(size))
    fraction = size - size.floor()
    reflected = 1.1447298858494 - positive - (size * (torch.pi * fraction).sin().abs()).log()
    unlike = product.isinf() | (size == torch.inf)
    return torch.where(unlike, torch.where(x >= 0, positive, reflected), torch.lgamma(x)).to(input.dtype)


def lgamma_of_small_numbers(ulp: Ulp, input: Tensor) -> Tensor | None:
    """For |x| < 1, log(gamma(1 + r) / r) with r = (1 + |x|) - 1, in float; a series below 0.001."""
    (x,) = _floating(input)
    size = x.abs()
    rest = (1 + (size - size.floor())) - 1
    divided = (torch.lgamma(1 + rest).exp() / rest).log()
    series = (1 / (size * (1 + EULER * size))).log()
    below_one = torch.where(size < 0.001, series, divided)
    reflected = 1.1447298858494 - below_one - ulp(size * (torch.pi * size).sin().abs()).log()
    return torch.where(size < 1, torch.where(x >= 0, below_one, reflected), torch.lgamma(x)).to(input.dtype)


def multigammaln(lgamma: Model) -> Model:
    """The sum of lgamma, of which mvlgamma is composed on mps (DLMF 35.3.4)."""

    def model(ulp: Ulp, input: Tensor, p: int) -> Tensor:
        terms: Tensor = lgamma(ulp, input.unsqueeze(-1) + torch.arange(1 - p, 1, dtype=input.dtype) / 2)
        return terms.sum(-1) + p * (p - 1) / 4 * math.log(math.pi)

    return model


def _shift(input: Tensor | float, other: Tensor | float) -> tuple[Tensor, Tensor, torch.dtype]:
    """The value, the shift count modulo the width of the shift (32 or 64 bits), and the result's dtype."""
    dtype = torch.result_type(input, other)
    bits = max(torch.iinfo(dtype).bits, NARROWEST_SHIFT)
    wide = torch.int64 if bits > NARROWEST_SHIFT else torch.int32
    value = torch.as_tensor(input).to(dtype).to(wide)
    return value, torch.as_tensor(other).to(dtype).to(wide) & (bits - 1), dtype


def left_shift(ulp: Ulp, input: Any, other: Any) -> Tensor | None:
    """The shift count is taken modulo the width of the register: 32 or 64 bits."""
    value, count, dtype = _shift(input, other)
    return (value << count).to(dtype)


def right_shift(ulp: Ulp, input: Any, other: Any) -> Tensor | None:
    """The shift count is taken modulo the width of the register: 32 or 64 bits."""
    value, count, dtype = _shift(input, other)
    return (value >> count).to(dtype)


def divide(ulp: Ulp, input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor | None:
    """With rounding_mode="floor", the rounded quotient's floor, not corrected by the remainder."""
    return floor_divide(ulp, input, other) if rounding_mode == "floor" else None


def floor_divide(ulp: Ulp, input: Any, other: Any) -> Tensor | None:
    """The floor of the rounded quotient, not corrected by the remainder."""
    if not _is_floating(input, other):
        return None
    left, right = _floating(input, other)
    dtype = torch.result_type(input, other)
    return ulp(left / right).to(dtype).floor()


def remainder(ulp: Ulp, input: Any, other: Any) -> Tensor | None:
    """The dividend minus the divisor times the floor of the rounded quotient."""
    if not _is_floating(input, other):
        return None
    left, right = _floating(input, other)
    return fused(-right, ulp((left / right).floor()), left)


def _is_floating(*values: Any) -> bool:
    return any(value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, float) for value in values)


def hypot(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor | None:
    """The root of the sum of squares in float, without scaling."""
    left, right = _floating(input, other)
    return fused(left, left, right * right).sqrt()


def lerp(ulp: Ulp, input: Tensor, end: Tensor, weight: Any) -> Tensor | None:
    """input + weight * (end - input), for every weight."""
    weight = weight.to(input.dtype) if isinstance(weight, Tensor) else weight
    return fused_any(ulp(end - input), weight, input)


def fused_any(left: Tensor, right: Any, added: Tensor) -> Tensor:
    """left * right + added, rounded once; real or complex."""
    wide = torch.complex128 if added.is_complex() else torch.float64
    factor = right.to(wide) if isinstance(right, Tensor) else right
    return (left.to(wide) * factor + added.to(wide)).to(added.dtype)


def foreach_lerp(ulp: Ulp, inputs: list[Tensor], ends: list[Tensor], weights: Any, **kwargs: Any) -> Any:
    """As `lerp`, for each tensor of a list."""
    of_each = weights if isinstance(weights, (list, tuple)) else [weights] * len(inputs)
    return [lerp(ulp, *operands) for operands in zip(inputs, ends, of_each, strict=True)]


def zeta(ulp: Ulp, input: Any, other: Any) -> Tensor | None:
    """The series and its expansion in float, where powers underflow and their factor overflows."""
    x, q = _floating(input, other)
    total, a, power = q**-x, q.clone(), torch.zeros_like(q)
    done = torch.zeros(x.shape, dtype=torch.bool)
    for step in range(MOST_ZETA_TERMS):
        summing = ~done & ((a <= 9) | torch.tensor(step < 9))
        if not bool(summing.any()):
            break
        a = torch.where(summing, a + 1, a)
        power = torch.where(summing, a**-x, power)
        total = torch.where(summing, total + power, total)
        done |= summing & (-ZETA_ERROR * total < power) & (power < ZETA_ERROR * total)
    summed = total + power * a / (x - 1) - 0.5 * power
    factor, power = torch.ones_like(x), power.clone()
    finished = done.clone()
    for step, divisor in enumerate(ZETA_EXPANSION):
        factor = factor * (x + 2 * step)
        power = power / a
        term = factor * power / divisor
        summed = torch.where(finished, summed, summed + term)
        finished |= (term / summed).abs() < ZETA_ERROR
        factor = factor * (x + 2 * step + 1)
        power = power / a
    result = ulp(torch.where(done, total, summed))
    at_pole = (q <= 0) & (q == q.trunc())
    undefined = (x < 1) | ((q <= 0) & (q != q.trunc()) & (x != x.trunc()))
    return torch.where(x == 1, torch.inf, torch.where(undefined, torch.nan, torch.where(at_pole, torch.inf, result)))


def polynomial(name: str, operator: Callable[[Tensor, Tensor], Tensor]) -> Model:
    """The model of a polynomial whose degree is clamped to int64; for a huge degree the recurrence gives NaN."""
    at_ends = CHEBYSHEV_AT_ENDS[name[-1]] if "chebyshev" in name else ()
    ends = (1, 0 if "shifted" in name else -1)

    def model(ulp: Ulp, input: Any, degree: Any) -> Tensor:
        x, n = _floating(input, degree)
        # Between -1 and 1 the angle times the degree is rounded to any angle.
        ones = torch.ones_like(x)
        moved = x + sum((ulp(ones, ulps) - ones for ulps in (1, 4, 16, 64)), torch.zeros_like(x))
        result = operator(torch.where(x.abs() < 1, moved, x), n.clamp(max=LARGEST_DEGREE))
        for end, value in zip(ends, at_ends, strict=False):
            result = torch.where((x == end) & (n > LARGEST_DEGREE), value, result)
        return result

    return model


def subtract(ulp: Ulp, input: Any, other: Any, alpha: float = 1) -> Tensor | None:
    """`other * alpha` is rounded, and may overflow, before it is subtracted."""
    if any(isinstance(operand, Tensor) and operand.dtype != torch.float32 for operand in (input, other)):
        return None
    minuend, subtrahend = _floating(input, other)
    return minuend - subtrahend * alpha


def subtract_from(ulp: Ulp, input: Any, other: Any, alpha: float = 1) -> Tensor | None:
    """As `subtract`, with the operands exchanged."""
    return subtract(ulp, other, input, alpha)


def dropout_backward(ulp: Ulp, grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Zero where the mask drops an element, even if the gradient is not finite."""
    return torch.where(mask, grad_output * scale, 0)


def gcd(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor:
    """Never negative; abs() leaves the least integer unchanged."""
    return torch.gcd(input, other).abs()


def elu_backward(
    ulp: Ulp, grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, values: Tensor
) -> Tensor | None:
    """The factors are rounded to half precision, where they may overflow."""
    if values.dtype not in (torch.float16, torch.bfloat16):
        return None
    below, above, inner = torch.tensor((alpha, scale, input_scale), dtype=values.dtype).float()
    x = values.float()
    negative = (below * above + x) * inner if is_result else below * inner * above * ulp((x * inner).exp())
    return (torch.where(x <= 0, negative, above) * grad.float()).to(grad.dtype)


def elu(ulp: Ulp, input: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """exp(x) - 1 in float, for negative x."""
    (x,) = _floating(input)
    return torch.where(x > 0, x * scale, (ulp((x * input_scale).exp()) - 1) * (alpha * scale)).to(input.dtype)


def silu_backward(ulp: Ulp, grad: Tensor, input: Tensor) -> Tensor | None:
    """1 + x - x s in place of 1 + x (1 - s); for a huge x, 1 + x is x, and the difference is zero."""
    if input.is_complex():
        return None
    x, given = _floating(input, grad)
    s = ulp(x.sigmoid())
    return (given * s * ((1 + x) - x * s)).to(input.dtype)


def bessel_of_halves(overload: str) -> Model:
    """Infinite where the exponential, by which the kernel multiplies, is beyond float16."""

    def model(ulp: Ulp, input: Tensor) -> Tensor | None:
        if input.dtype is not torch.float16:
            return None
        result: Tensor = getattr(torch.ops.aten, overload)(input)
        return torch.where(input.abs().exp().isinf(), result.sign() * torch.inf, result)

    return model


def gamma_gradient(ulp: Ulp, input: Tensor, output: Tensor) -> Tensor:
    """The series for small samples and the expansions for large shapes, in float, where they cancel or overflow."""
    shape, sample = _floating(input, output)
    term, divisor = torch.ones_like(shape), shape.clone()
    first, second = term / divisor, term / (divisor * divisor)
    for step in range(1, 6):
        term = term * (-sample / step)
        divisor = divisor + 1
        first, second = ulp(first + term / divisor), ulp(second + term / (divisor * divisor))
    power = ulp(sample**shape)
    density = ulp(sample ** (shape - 1)) * ulp((-sample).exp())
    logarithms = ulp(sample.log()) - ulp(torch.digamma(shape))
    series = -(logarithms * (power * first) - power * second) / density
    near = (1 + 24 * shape * (1 + 12 * shape)) * ulp(
        1440 * (shape * shape)
        + 6 * sample * (53 - 120 * sample)
        - 65 * sample * sample / shape
        + shape * (107 + 3600 * sample)
    )
    near = near / (1244160 * (shape * shape) * (shape * shape))
    root, away = (8 * shape).sqrt(), shape - sample
    quotient = ulp((sample / shape).log())
    tail = ulp(sample - shape - shape * quotient) ** -1.5
    terms = root / away + torch.where(sample < shape, -tail, tail)
    summed = quotient * ulp(terms) - (2 / shape).sqrt() * (shape + sample) / (away * away)
    far = -(1 + 1 / (12 * shape) * (1 + 1 / (24 * shape))) * (sample * summed) / root
    large = torch.where((0.9 * shape <= sample) & (sample <= 1.1 * shape), near, far)
    usual = torch.ops.aten._standard_gamma_grad(input, output).float()
    result = torch.where(sample < 0.8, series.nan_to_num(nan=0.0), torch.where(shape > 8, large, usual))
    return result.to(input.dtype)


REAL_FUNCTIONS = (
    Prediction("silu-gradient-of-huge-numbers", {"aten::silu_backward": silu_backward}),
    Prediction("gamma-gradient-cancels", {"aten::_standard_gamma_grad": gamma_gradient}),
    Prediction("abs-of-integers-through-float", {"aten::abs": integer_abs}),
    Prediction("erfc-as-one-less-erf", {"aten::erfc": erfc, "aten::special_erfc": erfc}),
    Prediction("expm1-by-exp-from-1e-5-on", {"aten::expm1": expm1, "aten::special_expm1": expm1}),
    Prediction(
        "digamma-by-the-fraction-of-a-negative",
        {"aten::digamma": digamma, "aten::special_digamma": digamma, "aten::polygamma": polygamma},
    ),
    Prediction(
        "lgamma-of-infinity", {"aten::lgamma": lgamma_of_infinity, "aten::mvlgamma": multigammaln(lgamma_of_infinity)}
    ),
    Prediction(
        "lgamma-of-small-numbers",
        {"aten::lgamma": lgamma_of_small_numbers, "aten::mvlgamma": multigammaln(lgamma_of_small_numbers)},
    ),
    Prediction(
        "shift-counts-out-of-range",
        {
            "aten::bitwise_left_shift": left_shift,
            "aten::bitwise_right_shift": right_shift,
            "aten::__lshift__": left_shift,
            "aten::__rshift__": right_shift,
            "aten::__ilshift__": left_shift,
            "aten::__irshift__": right_shift,
        },
    ),
    Prediction("quotient-rounded-down", {"aten::div": divide, "aten::floor_divide": floor_divide}),
    Prediction("remainder-by-a-rounded-quotient", {"aten::remainder": remainder}),
    Prediction(
        "bessel-of-halves-overflows", {f"aten::{name}": bessel_of_halves(name) for name in ("i0", "special_i1")}
    ),
    Prediction("hypot-overflows", {"aten::hypot": hypot}),
    Prediction("lerp-from-the-first-end-alone", {"aten::lerp": lerp, "aten::_foreach_lerp": foreach_lerp}),
    Prediction(
        "infinite-degree-of-a-polynomial", {name: polynomial(name, operator) for name, operator in POLYNOMIALS.items()}
    ),
    Prediction("product-rounded-before-a-sum", {"aten::sub": subtract, "aten::rsub": subtract_from}),
    Prediction("zeta-in-single-precision", {"aten::special_zeta": zeta}),
    Prediction("elu-by-exp-less-one", {"aten::elu": elu}),
    Prediction("factors-of-elu-in-halves", {"aten::elu_backward": elu_backward}),
    Prediction("dropped-gradients-are-zero", {"aten::native_dropout_backward": dropout_backward}),
    Prediction("divisor-of-the-least-integer", {"aten::gcd": gcd}),
)
