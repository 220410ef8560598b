"""Triangular systems of complex64, which the native kernels refuse, solvers that use them, and `cholesky`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..runtime import rows
from ..runtime.layout import broadcast, expanded
from ..runtime.operands import require_scalar_type, require_square
from ..runtime.outputs import copy_to_output, empty_results, on_meta, out_form, require_castable
from ..runtime.rows import is_too_long, launch_rows, row_group, short_launches
from ..runtime.shader import Shader, reporting
from ..runtime.signatures import keep, planned, plans

_shader = Shader(__file__)
# A thread waits so often for each row that is solved, one after another; a few times more where there are thousands.
_STEPS_OF_ROW = 48
_aten = torch.ops.aten
_TILE = 16  # as in the Metal source
_CASTS_OF_PRODUCT = {2: "int32", 3: "int32", 4: "int32"}
# What torch's own kernels on mps refuse.
_REFUSED = frozenset({torch.complex64})


def linalg_solve_triangular(
    self: torch.Tensor,
    B: torch.Tensor,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> torch.Tensor:
    """`linalg_solve_triangular`: X of self X = B, or of X self = B unless `left`."""
    matrices = self.resolve_conj()
    shape, systems = planned(_plan_of_triangular, (matrices, B), upper, left, unitriangular)
    vectors = _vectors(expanded(B, shape), left)
    _solve(vectors, matrices if left else matrices.mT, systems)
    return vectors.mT if left else vectors


def _plan_of_triangular(
    matrices: torch.Tensor, sides: torch.Tensor, upper: bool, left: bool, unit: bool
) -> tuple[torch.Size, _Systems]:
    """The shape of the solution, and the systems. Raises what the CPU raises."""
    overload, flags = _aten.linalg_solve_triangular.default, {"upper": upper, "left": left, "unitriangular": unit}
    shape = _shape_of_solution(matrices, sides, overload, [matrices, sides], **flags)
    require_scalar_type(sides, matrices.dtype)
    return shape, _systems(matrices if left else matrices.mT, shape, ((upper == left, unit),), left)


def triangular_solve(
    self: torch.Tensor,
    A: torch.Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`triangular_solve`: the solution, and a copy of the matrices."""
    arguments = [self, A, upper, transpose, unitriangular]
    shape = _shape_of_solution(A, self, _aten.triangular_solve.default, arguments)
    require_scalar_type(self, A.dtype)
    vectors = _vectors(expanded(self, shape), True)
    copies = A.expand(*shape[:-2], *A.shape[-2:]).clone()
    matrices = (copies.mT if transpose else copies).resolve_conj()
    _solve(vectors, matrices, _systems(matrices, shape, ((upper != transpose, unitriangular),)))
    return vectors.mT, copies


def linalg_lu_solve(
    LU: torch.Tensor,  # noqa: N803
    pivots: torch.Tensor,
    B: torch.Tensor,  # noqa: N803
    *,
    left: bool = True,
    adjoint: bool = False,
) -> torch.Tensor:
    """`linalg_lu_solve`: X of A X = B or A^H X = B, or of X A = B or X A^H = B unless `left`, for A = P L U."""
    factors = LU.resolve_conj() if LU.is_conj() else LU
    signature = (
        (_plan_of_lu, left, adjoint, factors.dtype, factors.shape, factors.stride(), factors.get_device()),
        (pivots.dtype, pivots.shape, pivots.stride(), pivots.get_device()),
        (B.dtype, B.shape, B.stride(), B.get_device()),
    )
    plan = plans.get(signature) or keep(signature, _plan_of_lu(factors, pivots, B, left, adjoint))
    vectors = _vectors(B if plan.shape is None else B.expand(plan.shape), left)
    # X A = B is A^T X^T = B^T. The factors of a transposed A are applied in reverse order, and the exchanges last.
    if left != adjoint:
        _exchange(vectors, pivots, plan)
        _solve(vectors, factors, plan.systems)
    else:
        _solve(vectors, factors.mT, plan.systems)
        _exchange(vectors, pivots, plan)
    return vectors.mT if left else vectors


class _LuPlan(NamedTuple):
    """What `linalg_lu_solve` does with tensors of a signature."""

    shape: torch.Size | None  # of the solution; None if B has it
    systems: _Systems
    of_pivots: tuple[int, ...] | None  # to which they are expanded and copied; None if they stay
    exchange: list[int]  # the numbers of the kernel


def _plan_of_lu(factors: torch.Tensor, pivots: torch.Tensor, sides: torch.Tensor, left: bool, adjoint: bool) -> _LuPlan:
    """The plan. Raises what the CPU raises."""
    overload, given = _aten.linalg_lu_solve.default, [factors, pivots, sides]
    fits = pivots.shape == factors.shape[:-1]
    shape = _shape_of_solution(factors, sides, overload, given, fits, left=left, adjoint=adjoint)
    if pivots.dtype != torch.int32:  # the meta kernel checks this only for tensors that are not on meta
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    require_scalar_type(sides, factors.dtype)
    in_order = left != adjoint
    triangles = ((False, True), (True, False)) if in_order else ((False, False), (True, True))
    systems = _systems(factors if in_order else factors.mT, shape, triangles, left, adjoint)
    count, n = (shape[-1], shape[-2]) if left else shape[-2:]
    numbers = [count, n, pivots.shape[-1], int(not in_order), systems.vectors]
    of_pivots = (*shape[:-2], pivots.shape[-1])
    stays = pivots.shape == of_pivots and pivots.is_contiguous()
    return _LuPlan(None if sides.shape == shape else shape, systems, None if stays else of_pivots, numbers)


def cholesky(self: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """`cholesky`, by torch's own `linalg_cholesky_ex`: without a kernel on mps since torch 2.14."""
    require_square(self, "cholesky")
    if not self.numel():
        return torch.empty(self.shape, dtype=self.dtype, device=self.device)
    factor, info = torch.linalg.cholesky_ex(self, upper=upper)
    torch._linalg_check_errors(info, "cholesky", is_matrix=self.dim() == 2)
    return factor  # type: ignore[no-any-return]


def cholesky_out(self: torch.Tensor, upper: bool = False, *, out: torch.Tensor) -> torch.Tensor:
    """`cholesky.out`: casts the result to the dtype of `out`."""
    require_castable(self.dtype, out.dtype)
    return copy_to_output(out, cholesky(self, upper))


def cholesky_inverse(self: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """`cholesky_inverse`: of L L^H, or of U^H U where `upper`."""
    matrices, dtype, shape = self.resolve_conj() if self.is_conj() else self, self.dtype, self.shape
    signature = _plan_of_inverse, upper, dtype, shape, matrices.stride(), matrices.get_device()
    systems, n, count, side = plans.get(signature) or keep(signature, _plan_of_inverse(matrices, upper))
    device = self.device
    vectors = torch.eye(n, dtype=dtype, device=device)
    if len(shape) > 2:
        vectors = vectors.expand(shape).contiguous()
    _solve(vectors, matrices, systems)
    # Transposed, so that the result has columns in contiguous memory, as the meta kernel says.
    transposed = torch.empty_like(vectors, memory_format=torch.contiguous_format)
    kernel = _shader.kernel("triangular_product", device)
    for part in short_launches(count, n**3):
        first, threads = part.start, (side, side, part.stop - part.start)
        group, casts = (_TILE, _TILE, 1), _CASTS_OF_PRODUCT
        kernel(transposed, vectors, n, int(upper), first, threads=threads, group_size=group, arg_casts=casts)
    return transposed.mT


def _plan_of_inverse(matrices: torch.Tensor, upper: bool) -> tuple[_Systems, int, int, int]:
    """The systems, their size, how many matrices, and the size in whole tiles. Raises what the CPU raises."""
    if not _are_square(matrices):
        empty_results(_aten.cholesky_inverse.default, [matrices, upper], torch.device("meta"))
    *batch, n, _ = matrices.shape
    systems = _systems(matrices, matrices.shape, ((upper, False),), False, of_identity=True)
    return systems, n, math.prod(batch) if n else 0, -(-n // _TILE) * _TILE


def linalg_inv_ex(A: torch.Tensor, *, check_errors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: N803
    """`linalg_inv_ex`, from torch's own LU factorization: complex64 since 2.14."""
    if not _are_square(A):
        empty_results(_aten.linalg_inv_ex.default, [A], torch.device("meta"), check_errors=check_errors)
    factors, pivots, infos = torch.linalg.lu_factor_ex(A)
    if check_errors:
        torch._linalg_check_errors(infos, "linalg.inv_ex", is_matrix=A.dim() == 2)
    identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    return linalg_lu_solve(factors, pivots, identity), infos


def _are_square(x: torch.Tensor) -> bool:
    """Whether nothing is to be refused. What does not fit goes to the meta kernel: its first call loads sympy."""
    shape = x.shape
    return len(shape) >= 2 and shape[-1] == shape[-2]


def _shape_of_solution(
    matrices: torch.Tensor, sides: torch.Tensor, overload: Any, given: list[Any], fits: bool = True, **flags: bool
) -> torch.Size:
    """The shape of X. Where an argument may be refused, the overload's meta kernel does so or returns it."""
    batch, along = matrices.shape[:-2], -2 if flags.get("left", True) else -1
    fits = fits and _are_square(matrices) and sides.dim() >= 2 and matrices.dtype == sides.dtype
    if not (fits and sides.shape[along] == matrices.shape[-1]):
        return empty_results(overload, given, torch.device("meta"), **flags)[0].shape
    same = batch == sides.shape[:-2]
    return sides.shape if same else torch.Size((*broadcast(batch, sides.shape[:-2]), *sides.shape[-2:]))


def _vectors(x: torch.Tensor, as_columns: bool) -> torch.Tensor:
    """A copy whose rows are the vectors to solve for."""
    copy = (x.mT if as_columns else x).clone(memory_format=torch.contiguous_format)
    return copy.resolve_conj() if copy.is_conj() else copy


class _Systems(NamedTuple):
    """Triangular systems that are solved one after the other for the rows of a tensor."""

    vectors: int  # how many rows
    n: int
    products: int  # of all rows, in one system
    batch: tuple[int, ...] | None  # to which matrices are expanded before they get one dimension; None if they stay
    numbers: list[list[int]]  # of the kernel for each system, for all rows
    threads: tuple[int, int]
    group: tuple[int, int]


def _systems(
    matrices: torch.Tensor,
    shape: Sequence[int],
    triangles: Sequence[tuple[bool, bool]],
    left: bool = True,
    conjugates: bool = False,
    of_identity: bool = False,
) -> _Systems:
    """The systems M v = v of a solution of this shape, whose columns are the vectors if `left`, else its rows.

    `triangles`: which triangle of M is read, and whether its diagonal is taken for ones. `of_identity`: the vectors are
    the columns of the identity; what stays zero is not computed.
    """
    *batch, rows, columns = shape
    count, n = (columns, rows) if left else (rows, columns)
    whole = (*batch, n, n)
    flat = on_meta(matrices).expand(whole)
    flat = flat.reshape(math.prod(batch), n, n) if len(batch) > 1 else flat
    strides = flat.stride() if batch else (0, *flat.stride())
    numbers = [[count, n, *strides, *map(int, (*triangle, conjugates, of_identity)), 0] for triangle in triangles]
    stays = matrices.shape == whole and len(batch) <= 1
    vectors, group = math.prod(batch) * count, row_group(n)
    products = vectors * 2 * n * n
    return _Systems(vectors, n, products, None if stays else whole, numbers, (group, vectors), (group, 1))


def _solve(vectors: torch.Tensor, matrices: torch.Tensor, systems: _Systems) -> None:
    """Solve the systems in place."""
    count, n, products, batch, numbers, threads, group = systems
    if not products:
        return
    if is_too_long("linalg.solve_triangular", _STEPS_OF_ROW * n, "{} rows", n):
        for *_, upper, unit, conjugates, _, _ in numbers:
            on_cpu = matrices.cpu().conj() if conjugates else matrices.cpu()
            options = {"upper": bool(upper), "unitriangular": bool(unit)}
            vectors.copy_(torch.linalg.solve_triangular(on_cpu, vectors.mT.cpu(), **options).mT)
        return
    if batch is not None:
        matrices = matrices.expand(batch)
        matrices = matrices.reshape(math.prod(batch[:-2]), n, n) if len(batch) > 3 else matrices
    kernel = _shader.kernel("solve_triangle", vectors.device)
    if products <= rows.MOST_PRODUCTS:
        for of_system in numbers:
            kernel(vectors, matrices, of_system, threads=threads, group_size=group)
        return
    for part in short_launches(count, 2 * n * n):
        for of_system in numbers:
            launch_rows(kernel, part.stop - part.start, group[0], vectors, matrices, [*of_system[:-1], part.start])


def _exchange(vectors: torch.Tensor, pivots: torch.Tensor, plan: _LuPlan) -> None:
    """Apply the row exchanges of the factorization to the elements of each row of `vectors`."""
    if plan.systems.products:
        pivots = pivots if plan.of_pivots is None else pivots.expand(plan.of_pivots).contiguous()
        kernel, numbers = _shader.kernel("exchange", vectors.device), plan.exchange
        kernel(vectors, pivots, numbers, threads=numbers[-1], group_size=None, arg_casts=None, **reporting(3))


linalg_solve_triangular_out = out_form(linalg_solve_triangular, "linalg_solve_triangular.out")
triangular_solve_out = out_form(triangular_solve, "triangular_solve.X", ["X", "M"])
linalg_lu_solve_out = out_form(linalg_lu_solve, "linalg_lu_solve.out")
linalg_inv_ex_out = out_form(linalg_inv_ex, "linalg_inv_ex.inverse", ["inverse", "info"])
cholesky_inverse_out = out_form(cholesky_inverse, "cholesky_inverse.out")

KERNELS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("aten::cholesky", cholesky),
    ("aten::cholesky.out", cholesky_out),
)
OVERRIDES = (
    ("aten::linalg_solve_triangular", linalg_solve_triangular, _REFUSED),
    ("aten::linalg_solve_triangular.out", linalg_solve_triangular_out, _REFUSED),
    ("aten::triangular_solve", triangular_solve, _REFUSED),
    ("aten::triangular_solve.X", triangular_solve_out, _REFUSED),
    ("aten::linalg_lu_solve", linalg_lu_solve, _REFUSED),
    ("aten::linalg_lu_solve.out", linalg_lu_solve_out, _REFUSED),
    ("aten::linalg_inv_ex", linalg_inv_ex, _REFUSED),
    ("aten::linalg_inv_ex.inverse", linalg_inv_ex_out, _REFUSED),
    ("aten::cholesky_inverse", cholesky_inverse, _REFUSED),
    ("aten::cholesky_inverse.out", cholesky_inverse_out, _REFUSED),
)
