"""Eigenvalues and eigenvectors of general matrices, real and complex; a group of threads a matrix."""

from __future__ import annotations

import torch

from ..runtime.convergence import converged, warn_of_the_cpu
from ..runtime.operands import require_device, require_square, require_supported
from ..runtime.outputs import refuse_internal_overlap, resize_output
from ..runtime.rows import launch_rows, row_group
from ..runtime.shader import Shader

_shader = Shader(__file__)
_DTYPES = frozenset({torch.float32, torch.complex64})
# A group of threads computes a matrix. Larger ones could come near the time after which macOS ends a launch.
MOST_ROWS = 120
_NOT_FINITE = -1  # as in the Metal source
# Imaginary parts of a real matrix's eigenvalues are rounding up to this many units of its norm, for each row.
_UNITS_OF_ROUNDING = 2.0
_EPSILON = torch.finfo(torch.float32).eps


def linalg_eig(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`linalg_eig` of (..., n, n): complex64 eigenvalues, and vectors of length one in columns.

    For a real matrix the two values of a conjugate pair are adjacent, as in LAPACK; otherwise the order is undefined.
    """
    _check_matrices(self, "linalg.eig")
    if not self.numel():
        return _empty(self, self.shape[:-1]), _empty(self, self.shape)
    decomposed = _schur(self, with_vectors=True)
    if decomposed is None:
        of_the_cpu = torch.linalg.eig(self.cpu())
        return of_the_cpu.eigenvalues.to(self.device), of_the_cpu.eigenvectors.to(self.device)
    form, vectors = decomposed
    batch, n, _ = form.shape
    values, columns = _ordered(self, form)
    triangular, result = torch.empty_like(form), torch.empty_like(form)
    group = row_group(n)
    threads = -(-n // group) * group, batch
    operands = (triangular, form, values, columns, n)
    kernel = _shader.kernel("triangular_vectors", self.device)
    kernel(*operands, threads=threads, group_size=(group, 1), arg_casts={4: "int32"})
    turned = (result, torch.bmm(vectors, triangular), values, columns, [n, int(not self.is_complex())])
    kernel = _shader.kernel("unit_vectors", self.device)
    kernel(*turned, threads=threads, group_size=(group, 1), arg_casts={4: "int32"})
    return (values * _scale(self)[:, None]).view(self.shape[:-1]), result.view(self.shape)


def linalg_eig_out(
    self: torch.Tensor, *, eigenvalues: torch.Tensor, eigenvectors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`linalg_eig.out`."""
    _check_matrices(self, "linalg.eig")
    _prepare(self, {"eigenvalues": eigenvalues, "eigenvectors": eigenvectors})
    resize_output(eigenvalues, self.shape[:-1])
    resize_output(eigenvectors, self.shape)
    values, vectors = linalg_eig(self)
    return eigenvalues.copy_(values), eigenvectors.copy_(vectors)


def linalg_eigvals(self: torch.Tensor) -> torch.Tensor:
    """`_linalg_eigvals`: the eigenvalues alone."""
    _check_matrices(self, "linalg.eigvals")
    if not self.numel():
        return _empty(self, self.shape[:-1])
    decomposed = _schur(self, with_vectors=False)
    if decomposed is None:
        of_the_cpu: torch.Tensor = torch.linalg.eigvals(self.cpu())
        return of_the_cpu.to(self.device)
    values, _ = _ordered(self, decomposed[0])
    return (values * _scale(self)[:, None]).view(self.shape[:-1])


def linalg_eigvals_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`linalg_eigvals.out`."""
    _check_matrices(self, "linalg.eigvals")
    _prepare(self, {"eigenvalues": out})
    resize_output(out, self.shape[:-1])
    return out.copy_(linalg_eigvals(self))


def _schur(x: torch.Tensor, *, with_vectors: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The Schur form divided by `_scale`, and the unitary matrices; without vectors only the diagonals are valid.

    Returns None, after a warning, for matrices that are too large for one launch, or do not converge.
    Raises RuntimeError, as the CPU does, for a matrix that is not finite.
    """
    n = x.shape[-1]
    if n > MOST_ROWS:
        warn_of_the_cpu("linalg.eig", f"one launch would take too long for more than {MOST_ROWS} rows")
        return None
    form = (x.reshape(-1, n, n) / _scale(x)[:, None, None]).to(torch.complex64).contiguous()
    batch = form.shape[0]
    vectors = form.new_zeros(form.shape if with_vectors else (1,))
    if with_vectors:
        vectors.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    reflectors = form.new_empty((batch, n))
    rotations = form.new_empty((batch, n, 2))
    infos = torch.empty(batch, dtype=torch.int32, device=x.device)
    operands = (form, vectors, reflectors, rotations, infos, [n, int(with_vectors)])
    launch_rows(_shader.kernel("schur", x.device), batch, row_group(2 * n), *operands, int32=True)
    on_host = infos.cpu()
    if int(on_host.min()) == _NOT_FINITE:
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return (form, vectors) if converged(on_host, "linalg.eig") else None


def _scale(x: torch.Tensor) -> torch.Tensor:
    """A power of two near the largest element of each matrix, so that no square overflows or underflows."""
    peak = x.abs().amax((-2, -1)).reshape(-1)
    return peak.log2().floor().nan_to_num(0.0, 0.0, 0.0).clamp(-125, 126).exp2()


def _ordered(x: torch.Tensor, form: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The eigenvalues divided by `_scale`, and for each the column of its vector, or -1 minus that of its conjugate."""
    batch, n, _ = form.shape
    values = form.diagonal(dim1=-2, dim2=-1).clone(memory_format=torch.contiguous_format)
    ordered = torch.empty_like(values)
    columns, mates = (torch.empty((batch, room), dtype=torch.int32, device=x.device) for room in (n, 2 * n))
    operands = (ordered, columns, values, mates, _tolerances(x), [n, int(not x.is_complex())])
    launch_rows(_shader.kernel("order_values", x.device), batch, row_group(n), *operands, int32=True)
    return ordered, columns


def _tolerances(x: torch.Tensor) -> torch.Tensor:
    """The rounding error of the eigenvalues of each matrix, divided by `_scale`."""
    n = x.shape[-1]
    scaled = x.abs().reshape(-1, n, n) / _scale(x)[:, None, None]
    return scaled.square().sum((-2, -1)).sqrt() * (_UNITS_OF_ROUNDING * n * _EPSILON)


def _empty(x: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.complex64, device=x.device)


def _check_matrices(x: torch.Tensor, name: str) -> None:
    """Raise what the CPU raises."""
    require_square(x, name)
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}")
    require_supported(x, name, _DTYPES)


def _prepare(x: torch.Tensor, outputs: dict[str, torch.Tensor]) -> None:
    require_device(x, dict(outputs), "linalg.eig")
    for name, output in outputs.items():
        if output.dtype != torch.complex64:
            raise RuntimeError(
                f"torch.linalg.eig: Expected {name} to be safely castable from torch.complex64 dtype, "
                f"but got {name} with dtype {output.dtype}"
            )
        refuse_internal_overlap(output)


KERNELS = (
    ("aten::linalg_eig", linalg_eig),
    ("aten::linalg_eig.out", linalg_eig_out),
    ("aten::_linalg_eigvals", linalg_eigvals),
    ("aten::linalg_eigvals.out", linalg_eigvals_out),
)
