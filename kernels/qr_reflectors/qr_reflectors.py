"""QR factorization into Householder reflectors, and products with their Q; float32, complex64."""

from __future__ import annotations

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.operands import require_device, require_lapack_dtype, scalar_type
from ..runtime.outputs import check_outputs, is_ready, on_meta, refuse_internal_overlap, resize_output
from ..runtime.rows import MOST_THREADS, launch_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
# One group computes this many reflectors, before all groups apply them to the remaining columns.
_PANEL = 32
# One group factorizes a matrix with at most this many reflectors completely.
_ALONE = 64
_CASTS_OF_REFLECT = dict.fromkeys(range(3, 11), "int32")


def geqrf(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`geqrf`: R and below it the reflectors of Q, (..., m, n), column-major, and tau, (..., min(m, n))."""
    if self.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    require_lapack_dtype(self, "geqrf_cpu")
    columns = self.mT.clone(memory_format=torch.contiguous_format)
    taus = torch.empty(*self.shape[:-2], min(self.shape[-2:]), dtype=self.dtype, device=self.device)
    factorize(columns, taus)
    return columns.mT, taus


def geqrf_a(self: torch.Tensor, *, a: torch.Tensor, tau: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`geqrf.a`: outputs may have any dtype to which the result can be cast."""
    if self.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    require_device(self, {"a": a, "tau": tau}, "torch.geqrf")
    for name, output in (("a", a), ("tau", tau)):
        _require_castable(self, name, output)
    factors, taus = geqrf(self)
    for output, result in ((a, factors), (tau, taus)):
        if output.shape != result.shape and output.numel() == 0:
            output.resize_(result.shape).as_strided_(result.shape, result.stride())
        resize_output(output, result.shape)
        refuse_internal_overlap(output)
        output.copy_(result)
    return a, tau


def ormqr(
    self: torch.Tensor, input2: torch.Tensor, input3: torch.Tensor, left: bool = True, transpose: bool = False
) -> torch.Tensor:
    """`ormqr`: the product of `input3` and the Q of `self` and `input2`, the results of geqrf."""
    fits = _fits(self, input2, input3, left)
    shape = input3.shape if fits else _aten.ormqr(*map(on_meta, (self, input2, input3)), left, transpose).shape
    require_lapack_dtype(self, "ormqr_cpu")
    if fits and left and input3.numel():
        require_device(self, {"tau": input2, "other": input3}, "torch.ormqr")
        return _product(self, input2, input3, left=left, transpose=transpose)
    result = torch.empty((*shape[:-2], shape[-1], shape[-2]), dtype=self.dtype, device=self.device).mT
    return ormqr_out(self, input2, input3, left, transpose, out=result)


def _fits(reflectors: torch.Tensor, taus: torch.Tensor, other: torch.Tensor, left: bool) -> bool:
    """Whether nothing is to be refused. What does not fit goes to the meta kernel: its first call loads sympy."""
    shape, of_other = tuple(reflectors.shape), tuple(other.shape)
    if not (len(shape) == len(of_other) >= 2 and reflectors.dtype == taus.dtype == other.dtype):
        return False
    *batch, rows, columns = shape
    fits = rows == of_other[-2 if left else -1] and taus.shape == (*batch, min(rows, columns))
    return fits and of_other[:-2] == shape[:-2]


def ormqr_out(
    self: torch.Tensor,
    input2: torch.Tensor,
    input3: torch.Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    """`ormqr.out`."""
    require_device(self, {"tau": input2, "other": input3, "result": out}, "torch.ormqr")
    if out.dtype != self.dtype:
        raise RuntimeError(
            "torch.ormqr: Expected input and result to have the same dtype, but input has dtype"
            f"{scalar_type(self.dtype)} and result has dtype {scalar_type(out.dtype)}"
        )
    if not (_fits(self, input2, input3, left) and is_ready(out, input3.shape, self.dtype)):
        check_outputs(_aten.ormqr.out, [self, input2, input3, left, transpose], {"out": out}, [None])
    side = -2 if left else -1
    if input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    require_lapack_dtype(self, "ormqr_cpu")
    if out.numel() == 0:
        return out
    return out.copy_(_product(self, input2, input3, left=left, transpose=transpose))


def _product(
    reflectors: torch.Tensor, taus: torch.Tensor, other: torch.Tensor, *, left: bool, transpose: bool
) -> torch.Tensor:
    """A new tensor; column-major if `left`."""
    # C Q is the adjoint of (the adjoint of Q) times (the adjoint of C).
    columns = (other.mT if left else other.conj()).clone(memory_format=torch.contiguous_format)
    adjoint = transpose if left else not transpose
    apply_reflectors(columns, reflectors.mT.contiguous(), taus.contiguous(), adjoint=adjoint)
    return columns.mT if left else columns.conj()


def factorize(columns: torch.Tensor, taus: torch.Tensor) -> None:
    """Compute reflectors in place; the columns of the matrices are the rows of `columns`, (..., n, m), contiguous."""
    n, m = columns.shape[-2:]
    reflectors, batch = min(m, n), columns.numel() // max(m * n, 1)
    if reflectors == 0 or batch == 0:
        return
    width = reflectors if reflectors <= _ALONE else _PANEL
    kernel = _shader.kernel(f"qr_panel_{METAL_TYPES[columns.dtype]}", columns.device)
    for first in range(0, reflectors, width):
        last = min(first + width, reflectors)
        alone = width == reflectors and n <= 2 * _ALONE
        operands = (columns, taus, m, n, first, last, n if alone else last)
        launch_rows(kernel, batch, MOST_THREADS, *operands, int32=True)
        if last < n and not alone:
            _reflect(columns, columns, taus, skipped=last, first=first, last=last, adjoint=True)


def apply_reflectors(columns: torch.Tensor, factors: torch.Tensor, taus: torch.Tensor, *, adjoint: bool) -> None:
    """Replace C by Q C, or by the adjoint of Q times C, in place.

    `columns`: the columns of C as rows, (..., c, m), contiguous. `factors`: the result of `factorize`, (..., n, m).
    """
    _reflect(columns, factors, taus, skipped=0, first=0, last=taus.shape[-1], adjoint=adjoint)


def _reflect(
    columns: torch.Tensor,
    factors: torch.Tensor,
    taus: torch.Tensor,
    *,
    skipped: int,
    first: int,
    last: int,
    adjoint: bool,
) -> None:
    targets, m = columns.shape[-2:]
    groups = (columns.numel() // max(m * targets, 1)) * (targets - skipped)
    if groups == 0:
        return
    kernel = _shader.kernel(f"qr_reflect_{METAL_TYPES[columns.dtype]}", columns.device)
    sizes = (m, targets, skipped, factors.shape[-2], taus.shape[-1], first, last, int(adjoint))
    threads, group = (SIMD_WIDTH, groups), (SIMD_WIDTH, 1)
    kernel(columns, factors, taus, *sizes, threads=threads, group_size=group, arg_casts=_CASTS_OF_REFLECT)


def _require_castable(x: torch.Tensor, name: str, output: torch.Tensor) -> None:
    if not torch.can_cast(x.dtype, output.dtype):
        raise RuntimeError(
            f"torch.geqrf: Expected {name} to be safely castable from {scalar_type(x.dtype)} dtype, but got {name} "
            f"with dtype {scalar_type(output.dtype)}"
        )


def _fake_geqrf(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    *batch, m, n = self.shape
    return self.new_empty((*batch, n, m)).mT, self.new_empty((*batch, min(m, n)))


FAKES = (("aten::geqrf", _fake_geqrf),)

KERNELS = (
    ("aten::geqrf", geqrf),
    ("aten::geqrf.a", geqrf_a),
    ("aten::ormqr", ormqr),
    ("aten::ormqr.out", ormqr_out),
)
