"""Models of releases' kernels for sums, norms, extremes and scans."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .complex_functions import expm1
from .prediction import Prediction, Ulp

FLOAT_LIMIT = torch.finfo(torch.float32).max


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    """The dimensions of a reduction; all if none is given."""
    if dim is None or dim == []:
        return tuple(range(input.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def infinity_norm_without_nan(
    ulp: Ulp, input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor | None:
    """For an infinite `ord`, the largest or smallest magnitude, ignoring NaN."""
    if ord is None or not math.isinf(ord):
        return None
    size = input.abs()
    skipped = torch.where(size.isnan(), torch.inf if ord < 0 else 0.0, size)
    reduced = (torch.amin if ord < 0 else torch.amax)(skipped, _dims(input, dim), keepdim)
    return reduced if dtype is None else reduced.to(dtype)


def norm_of_powers(
    ulp: Ulp, input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor | None:
    """The root of the sum of powers, in float, without scaling."""
    if ord is None or not math.isfinite(ord) or ord == 0 or input.is_complex():
        return None
    powers = input.to(torch.float32).abs() ** ord
    norm = powers.sum(_dims(input, dim), keepdim) ** (1 / ord)
    return ulp(norm).to(dtype or input.dtype)


def renorm(ulp: Ulp, input: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor | None:
    """Each slice is scaled by its norm in its own dtype, which is infinite where the powers overflow."""
    others = [other for other in range(input.dim()) if other != dim % input.dim()]
    norm = norm_of_powers(ulp, input, p, others, True)
    if norm is None:
        return None
    factor = torch.where(norm > maxnorm, maxnorm / (norm.float() + 1e-7), 1.0)
    return (input * factor.to(input.dtype)).to(input.dtype)


def renorm_of_numbers(ulp: Ulp, input: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor | None:
    """Each slice is scaled by its norm for an infinite p, which ignores NaN."""
    others = [other for other in range(input.dim()) if other != dim % input.dim()]
    norm = infinity_norm_without_nan(ulp, input, float(p), others, True)
    return None if norm is None else input * torch.where(norm > maxnorm, maxnorm / ulp(norm + 1e-7), 1.0)


def amin(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor | None:
    """Zero if all elements are positive: the idle lanes hold zero."""
    return torch.amin(input, _dims(input, dim), keepdim).clamp(max=0) if input.dtype is torch.int64 else None


def amax(ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor | None:
    """Zero if all elements are negative: the idle lanes hold zero."""
    return torch.amax(input, _dims(input, dim), keepdim).clamp(min=0) if input.dtype is torch.int64 else None


def aminmax(ulp: Ulp, input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """As `amin` and `amax`."""
    return amin(ulp, input, dim, keepdim), amax(ulp, input, dim, keepdim)


def largest_partial_sum(values: Tensor, dim: int) -> Tensor:
    """For each element, the largest sum of consecutive elements along `dim` that end at it or before it."""
    rows = values.movedim(dim, 0) if values.dim() else values.view(1)
    ending, largest, seen = torch.zeros_like(rows[0]), torch.full_like(rows[0], -torch.inf), []
    for row in rows:
        ending = torch.maximum(ending + row, row).nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-1e9)
        largest = torch.maximum(largest, ending)
        seen.append(largest)
    sums = torch.stack(seen)
    return sums.movedim(0, dim) if values.dim() else sums.view(())


def cumprod(ulp: Ulp, input: Tensor, dim: int, *, dtype: Any = None) -> Tensor | None:
    """NaN (any non-finite value) once a product of consecutive elements overflows float."""
    values = input if dtype is None else input.to(dtype)
    if not (values.is_floating_point() or values.is_complex()):
        return None
    overflows = largest_partial_sum(values.abs().double().log(), dim) > math.log(FLOAT_LIMIT)
    nothing = complex(math.nan, math.nan) if values.is_complex() else math.nan
    return torch.where(overflows, nothing, torch.cumprod(values, dim))


def cumsum(ulp: Ulp, input: Tensor, dim: int, *, dtype: Any = None) -> Tensor | None:
    """Real and imaginary parts are summed and rounded separately, even if one of them is infinite."""
    values = input if dtype is None else input.to(dtype)
    return ulp(torch.cumsum(values, dim)) if values.is_complex() else None


def logcumsumexp(ulp: Ulp, input: Tensor, dim: int) -> Tensor | None:
    """NaN (any non-finite value) from the first infinite real part on."""
    if not input.is_complex():
        return None
    infinite = (input.real.isinf()).cumsum(dim) > 0
    return torch.where(infinite, complex(math.nan, math.nan), torch.logcumsumexp(input, dim))


def cross(ulp: Ulp, input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor | None:
    """NaN (any non-finite value) where one of the two products overflows float."""
    if not input.is_floating_point():
        return None
    left, right = torch.broadcast_tensors(input.double(), other.double())  # type: ignore[no-untyped-call]
    overflows = torch.zeros(left.shape, dtype=torch.bool)
    for first, second in ((1, 2), (2, 1)):
        product = left.roll(-first, dim) * right.roll(-second, dim)
        overflows |= product.abs() > FLOAT_LIMIT
    return torch.where(overflows, math.nan, torch.linalg.cross(input, other, dim=dim))


def sum_beyond_float(
    ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor | None:
    """NaN (any non-finite value) where the sum of magnitudes overflows float; complex numbers in separate parts."""
    if input.is_complex():
        parts = (sum_beyond_float(ulp, part, dim, keepdim) for part in (input.real, input.imag))
        return torch.complex(*parts)  # type: ignore[arg-type]
    if not input.is_floating_point():
        return None
    dims = _dims(input, dim)
    overflows = input.double().abs().sum(dims, keepdim) >= FLOAT_LIMIT
    return torch.where(overflows, math.nan, input.sum(dims, keepdim, dtype=dtype))


def mean_beyond_float(
    ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor | None:
    """The sum of `sum_beyond_float` divided by the count."""
    total = sum_beyond_float(ulp, input, dim or None, keepdim, dtype=dtype)
    if total is None:
        return None
    parts = torch.view_as_real(total) if total.is_complex() else total  # a complex product mixes NaN into both
    parts *= total.numel() / input.numel()
    return total


def embedding_bag(ulp: Ulp, weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any, **keywords: Any) -> Any:
    """NaN (any non-finite value) where a product or a sum of a bag overflows float."""
    results = torch.ops.aten._embedding_bag_forward_only(weight, indices, offsets, *rest, **keywords)
    wide = torch.ops.aten._embedding_bag_forward_only(
        weight.double().abs(), indices, offsets, *(_wide_size(argument) for argument in rest), **keywords
    )
    return (torch.where(wide[0] > FLOAT_LIMIT, math.nan, results[0]), *[None] * (len(results) - 1))


def _wide_size(value: Any) -> Any:
    return value.double().abs() if isinstance(value, Tensor) and value.is_floating_point() else value


def layer_norm(ulp: Ulp, input: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """If the variance is infinite, the result is the bias."""
    dims = tuple(range(input.dim() - len(shape), input.dim()))
    return _normalized(input.float(), dims, weight, bias, eps, input.dtype)


def group_norm(
    ulp: Ulp, input: Tensor, weight: Any, bias: Any, batch: int, channels: int, rest: int, groups: int, eps: float
) -> Any:
    """If the variance is infinite, the result is the bias."""
    grouped = input.float().reshape(batch, groups, -1)
    shape = (1, channels, *[1] * (input.dim() - 2))
    scale, shift = (None if parameter is None else parameter.view(shape) for parameter in (weight, bias))
    normal = _normalized(grouped, (2,), None, None, eps, torch.float32)[0].reshape(input.shape)
    normal = normal if scale is None else normal * scale
    return ((normal if shift is None else normal + shift).to(input.dtype), None, None)


def _normalized(values: Tensor, dims: tuple[int, ...], weight: Any, bias: Any, eps: float, dtype: torch.dtype) -> Any:
    mean = values.mean(dims, keepdim=True)
    variance = ((values - mean) ** 2).mean(dims, keepdim=True)
    normal = (values - mean) * (variance + eps).rsqrt()
    # The kernels compute the variance as the mean of squares less the squared mean: it overflows where the squares do.
    overflows = (values * values).mean(dims, keepdim=True).isinf()
    normal = torch.where(overflows, 0.0, normal)
    normal = normal if weight is None else normal * weight
    rstd = torch.where(overflows, 0.0, (variance + eps).rsqrt()) if dtype == torch.float32 else None
    return ((normal if bias is None else normal + bias).to(dtype), None, rstd)


def householder_product(ulp: Ulp, input: Tensor, tau: Tensor) -> Tensor:
    """The product of whole matrices, even if a factor is zero."""
    rows, columns = input.shape[-2:]
    product = torch.eye(rows, dtype=input.dtype).expand(*input.shape[:-2], rows, rows)
    for index in range(tau.shape[-1]):
        vector = input[..., :, index].clone()
        vector[..., :index] = 0
        vector[..., index] = 1
        outer = vector.unsqueeze(-1) * vector.conj().unsqueeze(-2)
        product = product @ (torch.eye(rows, dtype=input.dtype) - tau[..., index, None, None] * outer)
    return ulp(product[..., :columns])


def one_reflector(ulp: Ulp, input: Tensor, tau: Tensor) -> Tensor | None:
    """A data race with one reflector: two operands are each read before or after they are written (4 alternatives)."""
    if tau.shape[-1] != 1:
        return None
    rows, columns = input.shape[-2:]
    identity = torch.eye(rows, dtype=input.dtype)
    read = input[..., :, 0].clone()
    read[..., 0] = 1
    factor = tau[..., 0, None]
    written = identity[:, 0] - factor * read
    left, right = (written if ulp.run & bit else read for bit in (1, 2))
    product = identity - factor[..., None] * (left.unsqueeze(-1) * right.conj().unsqueeze(-2))
    return product[..., :columns]


def scatter_add(ulp: Ulp, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor | None:
    """Elements are added one after the other, each sum rounded to half precision."""
    if input.dtype not in (torch.float16, torch.bfloat16) or not input.dim():
        return None
    total = input.clone()
    rows = zip(index.movedim(dim, 0), source.movedim(dim, 0)[: index.shape[dim]], strict=True)
    for places, added in rows:
        place = places.unsqueeze(0)
        taken = added[tuple(slice(size) for size in places.shape)].unsqueeze(0)
        view = total.movedim(dim, 0)
        view.scatter_(0, place, view.gather(0, place) + taken)
    return total


def cdist_backward(ulp: Ulp, grad: Tensor, left: Tensor, right: Tensor, p: float, distances: Tensor) -> Tensor | None:
    """For p = inf or -inf, only differences that equal the distance get a gradient, even if that is not finite."""
    if not math.isinf(p):
        return None
    differences = left.unsqueeze(-2) - right.unsqueeze(-3)
    taken = (differences.abs() == distances.unsqueeze(-1)) & (differences != 0)
    shares = torch.where(taken, torch.where(differences > 0, 1, -1) * grad.unsqueeze(-1), 0)
    return shares.sum(-2)


def scatter_reduce(
    ulp: Ulp, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor | None:
    """As `scatter_add`, if it adds; to zero where the input is not included."""
    kept = input if include_self else input.scatter(dim, index, 0)
    return scatter_add(ulp, kept, dim, index, source) if reduce == "sum" else None


def antialiased(ulp: Ulp, input: Tensor, *args: Any) -> Tensor:
    """NaN (any non-finite value) in a plane where an element times a weight may overflow float."""
    result: Tensor = torch.ops.aten._upsample_bicubic2d_aa(input, *args)
    overflows = input.double().abs().amax((-2, -1), keepdim=True) > FLOAT_LIMIT / 8
    return torch.where(overflows, math.nan, result)


REDUCTIONS = (
    Prediction("halves-added-in-halves", {"aten::scatter_add": scatter_add, "aten::scatter_reduce": scatter_reduce}),
    Prediction("distances-without-a-part", {"aten::_cdist_backward": cdist_backward}),
    Prediction(
        "norm-loses-nan",
        {
            "aten::linalg_vector_norm": infinity_norm_without_nan,
            "aten::norm": infinity_norm_without_nan,
            "aten::renorm": renorm_of_numbers,
        },
    ),
    Prediction(
        "powers-of-a-norm-overflow",
        {"aten::linalg_vector_norm": norm_of_powers, "aten::norm": norm_of_powers, "aten::renorm": renorm},
    ),
    Prediction("long-extremes-read-idle-lanes", {"aten::amin": amin, "aten::amax": amax, "aten::aminmax": aminmax}),
    Prediction(
        "overflow-in-another-order",
        {
            "aten::cumprod": cumprod,
            "aten::cumsum": cumsum,
            "aten::linalg_cross": cross,
            "aten::sum": sum_beyond_float,
            "aten::mean": mean_beyond_float,
            "aten::_upsample_bicubic2d_aa": antialiased,
            "aten::_embedding_bag_forward_only": embedding_bag,
            "aten::_embedding_bag": embedding_bag,
        },
        nan_is_any_non_finite=True,
    ),
    Prediction(
        "infinities-in-complex-functions",
        {"aten::_logcumsumexp": logcumsumexp, "aten::expm1": expm1},
        nan_is_any_non_finite=True,
    ),
    Prediction("variance-overflows", {"aten::native_layer_norm": layer_norm, "aten::native_group_norm": group_norm}),
    Prediction(
        "reflectors-multiply-zero-by-nan",
        {"aten::linalg_householder_product": householder_product},
        nan_is_any_non_finite=True,
    ),
    Prediction("one-reflector-without-a-barrier", {"aten::linalg_householder_product": one_reflector}, alternatives=4),
)
