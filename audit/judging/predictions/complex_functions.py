"""Models of releases' kernels for complex numbers, from their compiled code."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp
from .real_functions import fused

Parts = tuple[Tensor, Tensor]


def _parts(value: Tensor) -> Parts:
    """The real and the imaginary part in float32."""
    value = value.to(torch.complex64)
    return value.real, value.imag


def _multiplied(left: Parts, right: Parts, ulp: Ulp) -> Parts:
    return (ulp(left[0] * right[0]) - ulp(left[1] * right[1]), ulp(left[0] * right[1]) + ulp(left[1] * right[0]))


def _divided(left: Parts, right: Parts, ulp: Ulp) -> Parts:
    """Multiply by the divisor's conjugate and divide by its squared magnitude; a real divisor divides each part."""
    size = right[0] * right[0] + right[1] * right[1]
    real = (ulp(left[0] * right[0]) + ulp(left[1] * right[1])) / size
    imaginary = (ulp(left[1] * right[0]) - ulp(left[0] * right[1])) / size
    by_real = right[1] == 0
    return torch.where(by_real, left[0] / right[0], real), torch.where(by_real, left[1] / right[0], imaginary)


def _root(value: Parts, ulp: Ulp) -> Parts:
    """The square root by magnitude plus and minus real part; the difference cancels."""
    real, imaginary = value
    size = ulp(fused(real, real, imaginary * imaginary).sqrt())
    # A size moved by one ULP may be less than the real part.
    halves = ((real + size) * 0.5).clamp(min=0), ((size - real) * 0.5).clamp(min=0)
    return halves[0].sqrt(), halves[1].sqrt().copysign(imaginary)


def _logarithm(value: Parts, ulp: Ulp) -> Parts:
    """The complex logarithm; the angle of zero is zero for every combination of signs."""
    real, imaginary = value
    size = fused(real, real, imaginary * imaginary).sqrt()
    angle = torch.where((real == 0) & (imaginary == 0), 0.0, torch.atan2(imaginary, real))
    return ulp(size).log(), ulp(angle)


def _arctangent(value: Parts, ulp: Ulp) -> Parts:
    """Half an imaginary unit times the logarithm of (i - z) / (i + z)."""
    real, imaginary = (ulp(part) for part in value)
    quotient = _divided((-real, 1 - imaginary), (real, 1 + imaginary), ulp)
    size, angle = _logarithm((ulp(quotient[0]), ulp(quotient[1])), ulp)
    return _multiplied((torch.zeros_like(size), torch.full_like(size, -0.5)), (size, angle), ulp)


def _arcsine(z: Parts, ulp: Ulp) -> Parts:
    """The arctangent of z / sqrt(1 - z z), which cancels near -1 and 1 and for large z."""
    square = _multiplied(z, z, ulp)
    root = _root((1 - square[0], 0 - square[1]), ulp)
    return _arctangent(_divided(z, root, ulp), ulp)


def asin(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The arcsine by the arctangent; plus or minus pi / 2 at 1 and -1."""
    if not input.is_complex():
        return None
    z = _parts(input)
    real, imaginary = _arcsine(z, ulp)
    at_end = (z[0].abs() == 1) & (z[1] == 0)
    return torch.complex(torch.where(at_end, (torch.pi / 2) * z[0], real), torch.where(at_end, 0.0, imaginary))


def acos(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The arccosine as pi / 2 minus the arcsine; plus or minus pi at 1 and -1."""
    if not input.is_complex():
        return None
    z = _parts(input)
    real, imaginary = _arcsine(z, ulp)
    at_end = (z[0].abs() == 1) & (z[1] == 0)
    return torch.complex(
        torch.where(at_end, torch.pi * z[0], torch.pi / 2 - real), torch.where(at_end, 0.0, -imaginary)
    )


def atan(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The arctangent as the logarithm of a quotient."""
    return torch.complex(*_arctangent(_parts(input), ulp)) if input.is_complex() else None


def sqrt(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The square root by the difference of magnitude and real part, which cancels."""
    return torch.complex(*_root(_parts(input), ulp)) if input.is_complex() else None


def rsqrt(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The conjugate of the square root, divided by its squared magnitude."""
    if not input.is_complex():
        return None
    real, imaginary = _root(_parts(input), ulp)
    size = fused(real, real, imaginary * imaginary)
    return torch.complex(real / size, -imaginary / size)


def root_as_power(ulp: Ulp, input: Any, exponent: Any) -> Tensor | None:
    """Powers with the exponents 0.5 and -0.5 are computed by the kernels of `sqrt` and `rsqrt`."""
    function = {0.5: sqrt, -0.5: rsqrt}.get(exponent if isinstance(exponent, float) else 0)
    return function(ulp, input) if function and isinstance(input, Tensor) else None


def log1p(ulp: Ulp, input: Tensor) -> Tensor | None:
    """log(1 + z) by magnitude and angle, where 1 + z is rounded first."""
    if not input.is_complex():
        return None
    real, imaginary = _parts(input)
    return torch.complex(*_logarithm((1 + real, imaginary), ulp))


def sinh(ulp: Ulp, input: Tensor) -> Tensor | None:
    """Half the difference of two exponentials."""
    if not input.is_complex():
        return None
    rising, falling = (_exponential(_parts(value), ulp) for value in (input, -input))
    return torch.complex((rising[0] - falling[0]) * 0.5, (rising[1] - falling[1]) * 0.5)


def _exponential(value: Parts, ulp: Ulp) -> Parts:
    real, imaginary = value
    size = ulp(real.exp())
    is_real = imaginary == 0
    return (
        torch.where(is_real, size, size * ulp(imaginary.cos())),
        torch.where(is_real, imaginary, size * ulp(imaginary.sin())),
    )


def expm1(ulp: Ulp, input: Tensor) -> Tensor | None:
    """exp(z) - 1, which cancels; for real z by a range reduction with a log(2) of few digits."""
    if not input.is_complex():
        return None
    real, imaginary = _parts(input)
    size = (real * real + imaginary * imaginary).sqrt()
    exponent, turned = real.exp(), ulp(real.exp())
    small = torch.complex(_real_expm1(real + ulp(imaginary.cos()).log(), ulp), exponent * imaginary.sin())
    large = torch.complex(turned * ulp(imaginary.cos()) - 1, turned * imaginary.sin())
    of_real = torch.complex(_real_expm1(real, ulp), torch.zeros_like(real))
    return torch.where(imaginary == 0, of_real, torch.where(size < 0.01, small, large))


def _real_expm1(value: Tensor, ulp: Ulp) -> Tensor:
    power = (value * 1.442695).round()
    rest = fused(power, torch.full_like(value, -0.693145752), value)
    reduced = ulp(rest.expm1()) * 2.0**power + (2.0**power - 1)
    far = (2.0**value) * (2.0**value) - 1
    return torch.where((value - 1).abs() > 88, far, reduced)


def log(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The logarithm; the angle of every zero is zero."""
    return torch.complex(*_logarithm(_parts(input), ulp)) if input.is_complex() else None


def log2(ulp: Ulp, input: Tensor) -> Tensor | None:
    """As `log`, to the base 2."""
    result = log(ulp, input)
    return None if result is None else torch.complex(result.real / 0.6931471805599453, result.imag / 0.6931471805599453)


def log10(ulp: Ulp, input: Tensor) -> Tensor | None:
    """As `log`, to the base 10."""
    result = log(ulp, input)
    return None if result is None else torch.complex(result.real / 2.302585092994046, result.imag / 2.302585092994046)


def logaddexp(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor | None:
    """`other` takes the place of `input` where their real parts are equal."""
    if not (input.is_complex() or other.is_complex()):
        return None
    input, other = torch.broadcast_tensors(input.to(torch.complex64), other.to(torch.complex64))  # type: ignore[no-untyped-call]
    return torch.logaddexp(torch.where(input.real == other.real, other, input), other)


def sinc(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The result for zero is zero."""
    return torch.where(input == 0, 0, torch.sinc(input)) if input.is_complex() else None


def magnitude(ulp: Ulp, input: Tensor) -> Tensor | None:
    """The magnitude is written to both parts, which shows where the result is complex."""
    if not input.is_complex():
        return None
    size = ulp(torch.abs(input))
    return torch.complex(size, size)


def div(ulp: Ulp, input: Tensor, other: Any, **kwargs: Any) -> Tensor | None:
    """Division by `_divided`, whose infinities and NaN differ from those of annex G of the C standard."""
    if kwargs or not torch.result_type(input, other).is_complex:
        return None
    left, right = torch.broadcast_tensors(input, torch.as_tensor(other))  # type: ignore[no-untyped-call]
    return torch.complex(*_divided(_parts(left), _parts(right), ulp))


def scatter_mean(
    ulp: Ulp, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor | None:
    """The mean of a scatter: the sum divided by the count as in `div`."""
    if reduce != "mean" or not input.is_complex():
        return None
    kept = input if include_self else input.scatter(dim, index, 0)
    ones = torch.ones_like(input) if include_self else torch.ones_like(input).scatter(dim, index, 0)
    counts = ones.scatter_add(dim, index, torch.ones_like(source))
    return div(ulp, kept.scatter_add(dim, index, source), torch.where(counts == 0, 1, counts))


def reciprocal(ulp: Ulp, input: Tensor) -> Tensor | None:
    """One divided by the number as in `div`."""
    return div(ulp, torch.ones_like(input), input) if input.is_complex() else None


def add(ulp: Ulp, input: Any, other: Any, alpha: Any = 1) -> Tensor | None:
    """Real and imaginary part are added separately; `alpha` must be real."""
    if not torch.result_type(input, other).is_complex or isinstance(alpha, complex):
        return None
    left, right = torch.broadcast_tensors(torch.as_tensor(input), torch.as_tensor(other))  # type: ignore[no-untyped-call]
    first, second = _parts(left), _parts(right)
    return torch.complex(first[0] + second[0] * alpha, first[1] + second[1] * alpha)


def sub(ulp: Ulp, input: Any, other: Any, alpha: Any = 1) -> Tensor | None:
    """As `add`, with a negated factor."""
    return add(ulp, input, other, -alpha)


def rsub(ulp: Ulp, input: Any, other: Any, alpha: Any = 1) -> Tensor | None:
    """As `sub`, with exchanged operands."""
    return add(ulp, other, input, -alpha)


def mean(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor | None:
    """The means of the real and of the imaginary parts."""
    if not input.is_complex():
        return None
    parts = (torch.mean(part, dim or tuple(range(input.dim())), keepdim) for part in _parts(input))
    return torch.complex(*parts)


def power(ulp: Ulp, input: Any, exponent: Any) -> Tensor | None:
    """The power by magnitude and angle: NaN if one of these is NaN, zero for the base zero."""
    if not torch.result_type(input, exponent).is_complex:
        return None
    z, raised = torch.broadcast_tensors(torch.as_tensor(input), torch.as_tensor(exponent))  # type: ignore[no-untyped-call]
    (real, imaginary), (by, turning) = _parts(z), _parts(raised)
    size = ulp((real * real + imaginary * imaginary).sqrt())
    angle = ulp(torch.atan2(imaginary, real))
    scale = size**by * (-turning * angle).exp()
    turned = turning * size.log() + by * angle
    zero = (real == 0) & (imaginary == 0)
    return torch.where(zero, 0, torch.complex(scale * turned.cos(), scale * turned.sin()))


def negated_zeros(input: Tensor) -> Tensor:
    """The complex numbers with the other sign of parts that are zero."""
    return torch.complex(*(torch.where(part == 0, -part, part) for part in _parts(input)))


def with_negated_zeros(overload: str) -> Model:
    """The model of a function that gets zero parts with the opposite sign."""

    def model(ulp: Ulp, input: Any, *args: Any) -> Tensor | None:
        if not isinstance(input, Tensor) or not input.is_complex():
            return None
        return getattr(torch.ops.aten, overload)(negated_zeros(input), *args)  # type: ignore[no-any-return]

    return model


_CUT = (
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "rsqrt",
    "sqrt",
)

COMPLEX_FUNCTIONS = (
    Prediction("complex-powers-by-their-angle", {"aten::pow": power}, nan_is_any_non_finite=True),
    Prediction("zeros-of-a-negated-number", {f"aten::{name}": with_negated_zeros(name) for name in _CUT}),
    Prediction("complex-arcsines-cancel", {"aten::asin": asin, "aten::acos": acos, "aten::atan": atan}),
    Prediction("complex-square-roots-cancel", {"aten::sqrt": sqrt, "aten::rsqrt": rsqrt, "aten::pow": root_as_power}),
    Prediction("complex-sinh-and-log1p-cancel", {"aten::sinh": sinh, "aten::log1p": log1p}),
    Prediction("complex-expm1-reduced-by-a-short-logarithm", {"aten::expm1": expm1, "aten::special_expm1": expm1}),
    Prediction("complex-logarithm-of-a-signed-zero", {"aten::log": log, "aten::log2": log2, "aten::log10": log10}),
    Prediction("complex-logaddexp-of-equal-real-parts", {"aten::logaddexp": logaddexp}),
    Prediction("complex-sinc-of-zero", {"aten::sinc": sinc}),
    Prediction("complex-magnitude-in-both-parts", {"aten::abs": magnitude}),
    Prediction(
        "infinite-quotients-of-complex-numbers",
        {"aten::div": div, "aten::reciprocal": reciprocal, "aten::scatter_reduce": scatter_mean},
    ),
    Prediction(
        "infinities-times-a-complex-one",
        {"aten::add": add, "aten::sub": sub, "aten::rsub": rsub, "aten::mean": mean, "aten::div": div},
    ),
)
