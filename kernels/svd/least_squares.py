"""Least squares as a composite: products with the pseudoinverse from a singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.autocast import without_autocast
from ..runtime.convergence import warn_of_the_cpu
from ..runtime.operands import require_device, scalar_type
from ..runtime.outputs import refuse_internal_overlap, resize_output
from .decomposition import decompose

_aten = torch.ops.aten
_NAME = "torch.linalg.lstsq"
# The largest exponent of normal float32 numbers and of their scales.
_MOST = 126
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@without_autocast
def linalg_lstsq_out(
    self: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    solution: torch.Tensor,
    residuals: torch.Tensor,
    rank: torch.Tensor,
    singular_values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """`linalg_lstsq.out`: the shortest of all least-squares solutions for `b`, with every driver.

    Both operands are scaled by powers of two first, as in LAPACK, so that no square and no inverse overflows.

    The driver decides, as on the CPU, what else is returned: residuals except for gelsy, the rank except for gels,
    singular values for gelsd and gelss. Residuals need full rank of every matrix, so gelsd and gelss read the ranks
    back, as the CPU's do. A call of gels with a matrix that may not have full rank goes to the CPU, which may raise; so
    does a call with one that is not finite, or with no matrix.
    """
    side = _checked(self, b, driver, solution, residuals, rank, singular_values)
    if self.dtype not in (torch.float32, torch.complex64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    driver = driver or "gelsy"
    m, n = self.shape[-2:]
    # Without a rank to determine, each column may have its own scale, as in QR.
    scaled = (-2,) if driver == "gels" and m >= n else (-2, -1)
    exponents, of_side = _exponents(self, scaled), _exponents(side, (-2, -1))
    matrices, side_by_side = self * exponents.neg().exp2(), side * of_side.neg().exp2()
    outputs = solution, residuals, rank, singular_values
    factors = decompose(matrices, _NAME) if matrices.numel() else None
    if factors is None:
        return _filled(outputs, _aten.linalg_lstsq(self.cpu(), b.cpu(), rcond, driver=driver))
    left, values, right = factors
    unit = torch.finfo(values.dtype).eps * max(m, n) if rcond is None else rcond
    kept = values > 0 if driver == "gels" else values > unit * values[..., :1]
    tiny = torch.finfo(values.dtype).eps * max(m, n)
    if driver == "gels" and bool((values <= tiny * values[..., :1]).any()):
        # LAPACK raises if its triangular factor has a zero. Where it has one, the value here is of rounding errors.
        warn_of_the_cpu(_NAME, "a matrix may not have full rank")
        return _filled(outputs, _aten.linalg_lstsq(self.cpu(), b.cpu(), rcond, driver=driver))
    inverse = torch.where(kept, values.reciprocal(), 0).unsqueeze(-1)

    def nearest(sides: torch.Tensor) -> torch.Tensor:
        solved: torch.Tensor = right.mH @ (inverse * (left.mH @ sides))
        return solved

    answer = nearest(side_by_side)
    answer = answer + nearest(side_by_side - matrices @ answer)  # reduces the rounding error of the factors
    rest = side_by_side - matrices @ answer
    answer = _times_power_of_two(answer, of_side - exponents.mT)
    ranks = kept.sum(-1) if side.numel() else kept.new_zeros(kept.shape[:-1], dtype=torch.int64)
    results = [answer.squeeze(-1) if side.dim() > b.dim() else answer, *(values.new_empty(0) for _ in range(3))]
    if driver != "gels":
        results[2] = ranks
    if driver in ("gelsd", "gelss"):
        results[3] = _times_power_of_two(values, exponents.squeeze(-1))
    if m > n and driver != "gelsy" and (driver == "gels" or bool((ranks == n).all())):
        results[1] = _times_power_of_two(rest.abs().square().sum(-2), 2 * of_side.squeeze(-1))
    return _filled(outputs, results)


def _filled(
    outputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], results: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    for output, result in zip(outputs, results, strict=True):
        resize_output(output, result.shape)
        refuse_internal_overlap(output)
        output.copy_(result)
    return outputs


def _exponents(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    """Float32, of size 1 in `dims`: the exponent of the largest element; 0 if it is not finite."""
    if x.numel() == 0:
        return torch.zeros(*x.shape[:-2], 1, 1, device=x.device)
    parts = torch.view_as_real(x.resolve_conj()).abs().amax(-1) if x.is_complex() else x.abs()
    exponents: torch.Tensor = parts.amax(dims, keepdim=True).log2().floor()
    return exponents.nan_to_num(0.0, 0.0, 0.0).clamp(-_MOST, _MOST)


def _times_power_of_two(x: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    """The product in two steps, because a power of two may be out of the range of float32."""
    half = (exponents / 2).floor()
    return x * half.exp2() * (exponents - half).exp2()


def _checked(
    a: torch.Tensor,
    b: torch.Tensor,
    driver: str | None,
    solution: torch.Tensor,
    residuals: torch.Tensor,
    rank: torch.Tensor,
    singular_values: torch.Tensor,
) -> torch.Tensor:
    """The right-hand sides as matrices, after the checks of the CPU. Raises what the CPU raises."""
    if a.dim() < 2:
        raise RuntimeError(f"{_NAME}: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError(f"{_NAME}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{_NAME}: Expected input and other to have the same dtype, but got input's dtype {scalar_type(a.dtype)} "
            f"and other's dtype {scalar_type(b.dtype)}"
        )
    if not 0 <= a.dim() - b.dim() <= 1:
        raise RuntimeError(
            f"{_NAME}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    is_vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    side = b.unsqueeze(-1) if is_vector else b
    if a.shape[-2] != side.shape[-2]:
        raise RuntimeError(f"{_NAME}: input.size(-2) should match other.size(-{1 if is_vector else 2})")
    if side.dim() < a.dim() and b.shape[0] not in (1, a.shape[0]):
        raise RuntimeError(
            f"The size of tensor a ({a.shape[0]}) must match the size of tensor b ({b.shape[0]}) at non-singleton "
            "dimension 0"
        )
    outputs = {"solution": solution, "residuals": residuals, "rank": rank, "singular_values": singular_values}
    require_device(a, {"other": b, **outputs}, _NAME)
    real = a.dtype.to_real()
    dtypes = (a.dtype, real, torch.int64, real)
    for (name, output), dtype in zip(outputs.items(), dtypes, strict=True):
        if not torch.can_cast(dtype, output.dtype):
            raise RuntimeError(
                f"{_NAME}: Expected {name} to be safely castable from {scalar_type(dtype)} dtype, but got {name} with "
                f"dtype {scalar_type(output.dtype)}"
            )
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"{_NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    return side
