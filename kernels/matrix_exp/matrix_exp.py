"""The matrix exponential: a Taylor polynomial of the scaled matrix, squared as often as its norm requires."""

from __future__ import annotations

import math

import torch

from ..runtime import rows
from ..runtime.autocast import without_autocast
from ..runtime.layout import launch_elements
from ..runtime.operands import require_device, require_square, require_supported
from ..runtime.outputs import contiguous_output, finish, refuse_internal_overlap, require_dtype
from ..runtime.rows import launch_rows, short_launches
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_HALVES = frozenset({torch.float16, torch.bfloat16})
# The polynomial of degree 16 is off by less than half a unit of float32 for norms up to 2: 2^17 / 17! = 4e-10.
_LARGEST_NORM = 2.0
_DEGREE = 16
# A norm is below 2^128: it is never halved more often.
_MOST_SQUARES = 128
# The size of `square_small`'s matrices in threadgroup memory, its group, and the tile and group of `square_once`.
_SMALL, _GROUP, _TILE, _SIDE = 32, 256, 32, 16


@without_autocast
def linalg_matrix_exp(self: torch.Tensor) -> torch.Tensor:
    """`linalg_matrix_exp` of (..., n, n) in float32 or complex64; halves are rounded once, at the end.

    Each matrix of a batch is squared as often as it needs. Up to 32 rows the norms stay on the device; for larger
    matrices the largest number of squares is read back, because each of them is a launch.
    """
    _check_matrices(self)
    if self.dtype in _HALVES:
        return linalg_matrix_exp(self.float()).to(self.dtype)
    require_supported(self, "linalg_matrix_exp", (torch.float32, torch.complex64))
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n = self.shape[-1]
    if not out.numel():
        return out
    if n == 1:
        return out.copy_(self.exp())
    x = self.reshape(-1, n, n).contiguous()
    norm = x.abs().sum(-2).amax(-1)
    # A norm that is not finite gives a result that is not finite, however often it is squared.
    squares = (norm / _LARGEST_NORM).log2().ceil().nan_to_num(0.0, 0.0, 0.0).clamp(0, _MOST_SQUARES)
    halved = (squares / 2).floor()  # 2^-128 is not normal
    x = x * torch.exp2(-halved)[:, None, None] * torch.exp2(halved - squares)[:, None, None]
    return out.copy_(_squared(_polynomial(x), squares.to(torch.int32)).view(self.shape))


def _polynomial(x: torch.Tensor) -> torch.Tensor:
    """The Taylor polynomial with six products (M. S. Paterson and L. J. Stockmeyer, SIAM J. Computing 2, 1973)."""
    n = x.shape[-1]
    powers = torch.empty((5, *x.shape), dtype=x.dtype, device=x.device)
    powers[0] = torch.eye(n, dtype=x.dtype, device=x.device)
    powers[1] = x
    torch.bmm(x, x, out=powers[2])
    torch.bmm(powers[2], x, out=powers[3])
    torch.bmm(powers[2], powers[2], out=powers[4])
    terms = [1 / math.factorial(k) for k in range(_DEGREE + 1)]
    # Four cubic polynomials, the last with the highest power too: Horner's scheme in the fourth power.
    cubics = [[*terms[4 * i : 4 * i + 4], terms[_DEGREE] if i == 3 else 0.0] for i in range(4)]
    parts = torch.zeros((4, *x.shape), dtype=x.dtype, device=x.device)
    _combine(parts, powers, torch.tensor(cubics, dtype=x.dtype).to(x.device))
    total = parts[3]
    for part in (parts[2], parts[1], parts[0]):
        total = torch.baddbmm(part, total, powers[4])
    return total


def _squared(x: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """Each matrix to the power 2^squares."""
    count, n, _ = x.shape
    name = METAL_TYPES[x.dtype]
    if n <= _SMALL:
        kernel = _shader.kernel(f"square_small_{name}", x.device)
        for part in short_launches(count, _MOST_SQUARES * n**3):
            launch_rows(kernel, x[part].shape[0], _GROUP, x[part], squares[part], n, int32=True)
        return x
    if n**3 > rows.MOST_PRODUCTS:  # more than a launch of ours may compute
        for done in range(int(squares.max())):
            x = torch.where((squares > done)[:, None, None], torch.bmm(x, x), x)
        return x
    kernel = _shader.kernel(f"square_once_{name}", x.device)
    pair = (x, x.clone())
    tiles = -(-n // _TILE) * _SIDE
    for done in range(int(squares.max())):
        for part in short_launches(count, n**3):
            after, before, wanted = pair[(done + 1) % 2][part], pair[done % 2][part], squares[part]
            threads = (tiles, tiles, wanted.shape[0])
            kernel(
                *(after, before, wanted, [n, done]),
                threads=threads,
                group_size=(_SIDE, _SIDE, 1),
                arg_casts={3: "int32"},
            )
    return torch.where((squares % 2 == 0)[:, None, None], *pair)


def _check_matrices(x: torch.Tensor) -> None:
    """Raise what the CPU raises."""
    require_square(x, "linalg.matrix_exp")
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {x.dtype}")


def compute_linear_combination_out(
    input: torch.Tensor, coefficients: torch.Tensor, *, out: torch.Tensor
) -> torch.Tensor:
    """`_compute_linear_combination.out`: adds to `out`, (rows, ...), the combinations of `input`, (columns, ...)."""
    planned(_check_combination, (input, coefficients, out))
    sums = contiguous_output(out)
    if sums is not out:
        sums.copy_(out)
    _combine(sums, input[: coefficients.shape[1]].contiguous(), coefficients.contiguous())
    return finish(out, sums)


def _check_combination(x: torch.Tensor, coefficients: torch.Tensor, out: torch.Tensor) -> bool:
    """Raise what the CPU raises."""
    wanted = _shape_of_combinations(x, coefficients)
    require_dtype(out, x.dtype, "_compute_linear_combination")
    require_device(x, {"out": out}, "_compute_linear_combination")
    refuse_internal_overlap(out)
    for d, (found, size) in enumerate(zip(out.shape, wanted, strict=False)):
        if found != size:
            raise RuntimeError(
                f"The size of tensor a ({found}) must match the size of tensor b ({size}) at non-singleton dimension "
                f"{d}"
            )
    if out.dim() != len(wanted):
        raise RuntimeError(f"expected an output of shape {list(wanted)}, but got {list(out.shape)}")
    return True


def compute_linear_combination(input: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """`_compute_linear_combination`: a tensor of the combinations, one for each row of `coefficients`."""
    shape = planned(_shape_of_combinations, (input, coefficients))
    out = torch.zeros(shape, dtype=input.dtype, device=input.device)
    _combine(out, input[: coefficients.shape[1]].contiguous(), coefficients.contiguous())
    return out


def _combine(out: torch.Tensor, x: torch.Tensor, coefficients: torch.Tensor) -> None:
    """Launch over contiguous tensors; adds to `out`."""
    kernel = _shader.kernel(f"linear_combination_{METAL_TYPES[x.dtype]}", x.device)
    combinations, columns = coefficients.shape
    sizes = [combinations, columns, out.numel() // combinations]
    launch_elements(kernel, out.numel(), out, x, coefficients, sizes)


def _shape_of_combinations(x: torch.Tensor, coefficients: torch.Tensor) -> tuple[int, ...]:
    if not x.dim() or not x.numel():
        raise RuntimeError("Empty tensor not supported")
    if coefficients.dim() < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if coefficients.shape[1] > x.shape[0] or not coefficients.numel():
        raise RuntimeError("_compute_linear_combination: expected a coefficient for each of the inputs")
    if coefficients.dtype != x.dtype:
        raise RuntimeError(
            f"_compute_linear_combination: inputs and coefficients must have one dtype, got {x.dtype} and "
            f"{coefficients.dtype}"
        )
    require_supported(x, "_compute_linear_combination", METAL_TYPES)
    require_device(x, {"coefficients": coefficients}, "_compute_linear_combination")
    return (coefficients.shape[0], *x.shape[1:])


KERNELS = (
    ("aten::linalg_matrix_exp", linalg_matrix_exp),
    ("aten::_compute_linear_combination", compute_linear_combination),
    ("aten::_compute_linear_combination.out", compute_linear_combination_out),
)
