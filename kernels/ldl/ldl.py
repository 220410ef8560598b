"""LDL factorization of symmetric and Hermitian matrices in LAPACK's format, and solving with it; float32, complex64."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.layout import broadcast
from ..runtime.operands import require_supported
from ..runtime.outputs import check_outputs, empty_results, is_ready
from ..runtime.rows import is_too_long, launch_rows, row_group
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_aten = torch.ops.aten
_DTYPES = frozenset({torch.float32, torch.complex64})
_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def linalg_ldl_factor_ex_out(
    self: torch.Tensor,
    *,
    hermitian: bool = False,
    check_errors: bool = False,
    LD: torch.Tensor,  # noqa: N803
    pivots: torch.Tensor,
    info: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`linalg_ldl_factor_ex.out`: the lower triangle of `self`, (..., n, n), is factorized.

    `LD`: L below the diagonal, D on it and, for blocks of two, beside it. `pivots`: int32, counted from 1, negative for
    blocks of two. `info`: int32, zero, or the first step whose pivot was zero.
    """
    if self.dim() < 2:
        raise RuntimeError("torch.linalg.ldl_factor_ex: The input tensor A must have at least 2 dimensions.")
    n = self.shape[-1]
    ready = is_ready(LD, self.shape, self.dtype) and is_ready(info, self.shape[:-2], torch.int32)
    if not (ready and is_ready(pivots, self.shape[:-1], torch.int32)):
        outputs = {"LD": LD, "pivots": pivots, "info": info}
        dtypes = [self.dtype, torch.int32, torch.int32]
        options = {"hermitian": hermitian, "check_errors": check_errors}
        check_outputs(_aten.linalg_ldl_factor_ex.out, [self], outputs, dtypes, **options)
    if self.numel() == 0:
        info.zero_()
        return LD, pivots, info
    require_supported(self, "linalg_ldl_factor_ex", _DTYPES)
    if is_too_long("linalg.ldl_factor", n**3 // (3 * row_group(n)), f"{n} rows"):
        results = _aten.linalg_ldl_factor_ex(self.cpu(), hermitian=hermitian)
    else:
        factors = torch.tril(self).mT.contiguous()  # (..., column, row): column-major
        steps = torch.empty(self.shape[:-1], dtype=torch.int32, device=self.device)
        codes = torch.empty(self.shape[:-2], dtype=torch.int32, device=self.device)
        kernel = _shader.kernel(f"ldl_factor_{_suffix(self.dtype, hermitian)}", self.device)
        launch_rows(kernel, codes.numel(), row_group(n), factors, steps, codes, n, int32=True)
        results = factors.mT, steps, codes
    for output, result in zip((LD, pivots, info), results, strict=True):
        output.copy_(result)
    if check_errors:
        torch._linalg_check_errors(info, "torch.linalg.ldl_factor_ex", is_matrix=self.dim() == 2)
    return LD, pivots, info


def linalg_ldl_solve_out(
    LD: torch.Tensor,  # noqa: N803
    pivots: torch.Tensor,
    B: torch.Tensor,  # noqa: N803
    *,
    hermitian: bool = False,
    out: torch.Tensor,
) -> torch.Tensor:
    """`linalg_ldl_solve.out`: solves for `B`, (..., n, columns), with the factors of `linalg_ldl_factor_ex`.

    Batch dimensions broadcast. `pivots`: of any integer dtype. A matrix with a pivot out of range gives NaN; the CPU,
    which can read the pivots, raises.
    """
    plan = planned(_plan, (LD, pivots, B), hermitian)
    if not is_ready(out, plan.shape, B.dtype):
        check_outputs(_aten.linalg_ldl_solve.out, [LD, pivots, B], {"out": out}, [B.dtype], hermitian=hermitian)
    if out.numel() == 0:
        return out
    n = plan.numbers[0]
    if is_too_long("linalg.ldl_solve", n * n // SIMD_WIDTH, "{} rows", n):
        return out.copy_(torch.linalg.ldl_solve(LD.cpu(), pivots.cpu(), B.cpu(), hermitian=hermitian))
    if plan.converts:
        batch, pivots = plan.shape[:-2], pivots.to(torch.int32)
        LD, pivots, B = LD.expand(*batch, n, n), pivots.expand(*batch, n), B.expand(plan.shape)  # noqa: N806
    sides = B.mT.clone(memory_format=torch.contiguous_format)
    factors, steps = LD.mT.contiguous(), pivots.contiguous()
    kernel = _shader.kernel(plan.kernel, B.device)
    launch_rows(kernel, plan.vectors, SIMD_WIDTH, sides, factors, steps, plan.numbers)
    return out.copy_(sides.mT)


class _Plan(NamedTuple):
    """A solution."""

    shape: tuple[int, ...]
    converts: bool  # whether operands are expanded or cast first
    kernel: str
    vectors: int  # to solve for
    numbers: list[int]  # rows, and columns of a matrix of right-hand sides


def _plan(factors: torch.Tensor, pivots: torch.Tensor, sides: torch.Tensor, hermitian: bool) -> _Plan:
    """Raise what the CPU raises. What does not fit goes to the meta kernel: its first call loads sympy."""
    fits = factors.dim() >= 2 and sides.dim() >= 2 and factors.dtype == sides.dtype and pivots.dtype in _INTEGERS
    if not (fits and pivots.shape == factors.shape[:-1] and factors.shape[-1] == factors.shape[-2] == sides.shape[-2]):
        given, options = [factors, pivots, sides], {"hermitian": hermitian}
        empty_results(_aten.linalg_ldl_solve.default, given, torch.device("meta"), **options)
    require_supported(sides, "linalg_ldl_solve", _DTYPES)
    batch, (n, columns) = broadcast(factors.shape[:-2], sides.shape[:-2]), sides.shape[-2:]
    converts = pivots.dtype != torch.int32 or not factors.shape[:-2] == batch == sides.shape[:-2]
    kernel = f"ldl_solve_{_suffix(sides.dtype, hermitian)}"
    return _Plan((*batch, n, columns), converts, kernel, math.prod(batch) * columns, [n, columns])


def _suffix(dtype: torch.dtype, hermitian: bool) -> str:
    return METAL_TYPES[dtype] + ("_hermitian" if hermitian and dtype.is_complex else "")


KERNELS = (
    ("aten::linalg_ldl_factor_ex.out", linalg_ldl_factor_ex_out),
    ("aten::linalg_ldl_solve.out", linalg_ldl_solve_out),
)
