"""Matrix products that Metal computes: of integers, of complex numbers with a long inner size, some narrow half ones.

The host code is aten/src/ATen/native/mps/operations/LinearAlgebra.mm; the rule for half was read from the 2.13.0
binary (`use_metal_mm`). All others run in MPSGraph or, from 2.15.0 on and with a vector, in a gemv kernel, for which
there is no convention. Kernels work in tiles of 16 x 16 and take strides in elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .metal_types import is_integral, metal_name

_TILE = 16
_LONGEST_COMPLEX = 2048
_NARROW = 16
_LARGEST_GAP = 15


def _needs_metal(left: Tensor, right: Tensor) -> bool:
    """Whether the host computes this product of two matrices in Metal, not in MPSGraph."""
    if is_integral(left.dtype):
        return True
    if left.is_complex():
        return left.shape[1] > _LONGEST_COMPLEX
    if left.dtype != torch.float16 or (left.shape[0] > _NARROW and right.shape[1] > _NARROW):
        return False
    if left.stride(1) != 1 or right.stride(0) != 1:
        return False
    gaps = left.stride(0) - left.shape[1], right.stride(1) - right.shape[0]
    return any(gap % 4 or gap > _LARGEST_GAP for gap in gaps)


def _require_metal(left: Tensor, right: Tensor) -> None:
    if not _needs_metal(left, right):
        raise Declined("MPSGraph, or a gemv kernel")


def _require_elements(left: Tensor, right: Tensor) -> None:
    if not left.numel() or not right.numel():
        raise Declined("a product over nothing, which the host fills")


def _require_integers(tensor: Tensor) -> None:
    if not is_integral(tensor.dtype):
        raise Declined("MPSGraph, or a gemv kernel")


def _tiles(width: int, height: int, depth: int = 1) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and group of whole tiles that cover a matrix or a batch of matrices."""
    return (-(-width // _TILE) * _TILE, -(-height // _TILE) * _TILE, depth), (_TILE, _TILE, 1)


def _mm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    left, right = call["self"], call["mat2"]
    _require_metal(left, right)
    return [_product(kernels, "matmul", call.result, left, right)]


def _product(kernels: ReleaseKernels, kernel: str, result: Tensor, left: Tensor, right: Tensor) -> KernelLaunch:
    _require_elements(left, right)
    name = required(kernels, f"{kernel}_{metal_name(left.dtype)}")
    arguments = {
        "mat1Data": left,
        "mat2Data": right,
        "outputData": result,
        "strides": _array(*left.stride(), *right.stride(), *result.stride()),
        "sizes": [*left.shape, result.shape[1]],
    }
    return KernelLaunch(name, arguments, *_tiles(result.shape[1], left.shape[0]))


def _int_mm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [_product(kernels, "int_mm", call.result, call["self"], call["mat2"])]


def _addmm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    left, right, result = call["mat1"], call["mat2"], call.result
    _require_metal(left, right)
    _require_elements(left, right)
    bias = call["self"].expand(result.shape)
    name = required(kernels, f"addmm_{metal_name(left.dtype)}")
    arguments = {
        "mat1Data": left,
        "mat2Data": right,
        "outputData": result,
        "biasData": bias,
        "alpha_beta": _numbers(call, left.dtype),
        "strides": _array(*left.stride(), *right.stride(), *result.stride(), *bias.stride()),
        "sizes": [*left.shape, result.shape[1]],
    }
    return [KernelLaunch(name, arguments, *_tiles(result.shape[1], left.shape[0]))]


def _array(*numbers: float) -> dict[str, object]:
    """Numbers as a `metal::array`, a struct with one member."""
    return {"__elems": list(numbers)}


def _numbers(call: Call, dtype: torch.dtype) -> dict[str, object]:
    """alpha and beta in the kernel's type."""
    alpha, beta = call["alpha"], call["beta"]
    if is_integral(dtype):
        return _array(int(alpha), int(beta))
    if not dtype.is_complex:
        return _array(float(alpha), float(beta))
    return _array(complex(alpha).real, complex(alpha).imag, complex(beta).real, complex(beta).imag)


# ------------------------------------------------------------------------------------------------- batches
def _bmm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    left, right, result = call["self"], call["mat2"], call.result
    _require_integers(left)
    return [_batched(kernels, "naive_bmm", result, left, right, {})]


def _with_bias(kernel: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        left, right, result = call["batch1"], call["batch2"], call.result
        _require_integers(left)
        bias = call["self"].expand(result.shape)
        more = {"biasData": bias, "alpha_beta": _numbers(call, left.dtype)}
        return [_batched(kernels, kernel, result, left, right, more)]

    return plan


def _batched(
    kernels: ReleaseKernels, kernel: str, result: Tensor, left: Tensor, right: Tensor, more: dict[str, object]
) -> KernelLaunch:
    """The launch for a batch, with strides innermost first. A result with one matrix for all has no batch stride."""
    _require_elements(left, right)
    name = required(kernels, f"{kernel}_{metal_name(left.dtype)}")
    tensors = [left, right, result, *(value for value in more.values() if isinstance(value, Tensor))]
    arguments = {
        "mat1Data": left,
        "mat2Data": right,
        "outputData": result,
        **more,
        "strides": _array(*(stride for tensor in tensors for stride in _innermost_first(tensor))),
        "sizes": [left.shape[1], left.shape[2], right.shape[2], left.shape[0]],
    }
    depth = left.shape[0] if result.dim() == 3 else 1
    return KernelLaunch(name, arguments, *_tiles(right.shape[2], left.shape[1], depth))


def _innermost_first(tensor: Tensor) -> tuple[int, int, int]:
    strides = tensor.stride()[::-1]
    return (*strides, 0) if len(strides) == 2 else strides  # type: ignore[return-value]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("mm", "mm.out"), _mm),
    **dict.fromkeys(("_int_mm", "_int_mm.out"), _int_mm),
    **dict.fromkeys(("addmm", "addmm_", "addmm.out"), _addmm),
    **dict.fromkeys(("bmm", "bmm.out"), _bmm),
    **dict.fromkeys(("baddbmm", "baddbmm_", "baddbmm.out"), _with_bias("naive_baddbmm")),
    **dict.fromkeys(("addbmm", "addbmm_", "addbmm.out"), _with_bias("naive_addbmm")),
}
