"""Least squares, composed: the pseudoinverse of a singular value decomposition, and products with it."""

from __future__ import annotations

import torch

from ..runtime.operands import require_device, scalar_type
from ..runtime.outputs import refuse_internal_overlap, resize_output

_aten = torch.ops.aten
_NAME = "torch.linalg.lstsq"
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


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
    """`linalg_lstsq.out`: of all that come closest to solving for `b` the shortest, whatever the driver's algorithm.

    The driver decides, as on the CPU, what else is returned: residuals but for gelsy, the rank but for gels, singular
    values for gelsd and gelss. Residuals come only where every matrix has full rank, so that gelsd and gelss read the
    ranks back, as the CPU's do.
    """
    side = _checked(self, b, driver, solution, residuals, rank, singular_values)
    if self.dtype not in (torch.float32, torch.complex64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    driver = driver or "gelsy"
    m, n = self.shape[-2:]
    left, values, right = _aten._linalg_svd(self, False, True)
    unit = torch.finfo(values.dtype).eps * max(m, n) if rcond is None else rcond
    kept = values > 0 if driver == "gels" else values > unit * values[..., :1]
    # Zeros alone are solved by zeros, as in LAPACK.
    if driver == "gels" and values.numel() and bool(((values[..., :1] > 0) & ~kept).any()):
        raise torch.linalg.LinAlgError(  # type: ignore[attr-defined]
            f"{_NAME}: The least squares solution could not be computed because the input matrix does not have full "
            f"rank (error code: {int(kept.sum(-1).min()) + 1})."
        )
    inverse = torch.where(kept, values.reciprocal(), 0).unsqueeze(-1)

    def nearest(sides: torch.Tensor) -> torch.Tensor:
        solved: torch.Tensor = right.mH @ (inverse * (left.mH @ sides))
        return solved

    found = nearest(side)
    found = found + nearest(side - self @ found)  # takes off what the rounding of the factors has left
    ranks = kept.sum(-1)
    results = {
        "solution": (solution, found.squeeze(-1) if side.dim() > b.dim() else found),
        "residuals": (residuals, values.new_empty(0)),
        "rank": (rank, ranks.new_empty(0) if driver == "gels" else ranks),
        "singular_values": (singular_values, values if driver in ("gelsd", "gelss") else values.new_empty(0)),
    }
    if m > n and driver != "gelsy" and (driver == "gels" or bool((ranks == n).all())):
        results["residuals"] = (residuals, (side - self @ found).abs().square().sum(-2))
    for output, result in results.values():
        resize_output(output, result.shape)
        refuse_internal_overlap(output)
        output.copy_(result)
    return solution, residuals, rank, singular_values


def _checked(
    a: torch.Tensor,
    b: torch.Tensor,
    driver: str | None,
    solution: torch.Tensor,
    residuals: torch.Tensor,
    rank: torch.Tensor,
    singular_values: torch.Tensor,
) -> torch.Tensor:
    """The right-hand sides as matrices, after the checks of the CPU, in its words."""
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
