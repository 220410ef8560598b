"""Checks of operands, with the CPU's error texts.

A kernel would misread a tensor of a wrong dtype, and read beyond the end of one that is too short. So every tensor is
checked or converted before it is bound.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import torch

FLOATING = frozenset({torch.float32, torch.float16, torch.bfloat16})

_SCALAR_TYPES = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.complex128: "ComplexDouble",
    torch.complex64: "ComplexFloat",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def scalar_type(dtype: torch.dtype) -> str:
    """The name of a dtype in torch's messages: Float, Long."""
    return _SCALAR_TYPES.get(dtype, str(dtype))


def require_device(x: torch.Tensor, others: Mapping[str, torch.Tensor | None], operator: str) -> None:
    """Raise RuntimeError unless all tensors are on the device of `x`; `others` are named for the message."""
    index = x.get_device()  # half the time of `device`, which makes an object; -1 for any device but a GPU
    for other in others.values():
        if other is not None and (other.get_device() != index or index < 0):
            _compare_devices(x, others, operator)


def _compare_devices(x: torch.Tensor, others: Mapping[str, torch.Tensor | None], operator: str) -> None:
    for name, other in others.items():
        if other is not None and other.device != x.device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {x.device} and "
                f"{other.device}! (when checking argument {name} of {operator})"
            )


def require_scalar_type(x: torch.Tensor, dtype: torch.dtype) -> None:
    """Raise RuntimeError, as the CPU's data accessors do, for a tensor of a different dtype."""
    if x.dtype != dtype:
        raise RuntimeError(f"expected scalar type {scalar_type(dtype)} but found {scalar_type(x.dtype)}")


def require_sizes(x: torch.Tensor, sizes: Sequence[int], name: str) -> None:
    """Raise RuntimeError for a tensor of a different shape; `name` is the argument's name in torch's messages."""
    if x.shape != (sizes if isinstance(sizes, tuple) else tuple(sizes)):
        raise RuntimeError(f"expected sizes {list(sizes)} for `{name}` but got sizes {list(x.shape)}")


def number_of(name: str, word: str | None, numbers: Mapping[str, int]) -> int:
    """The number that a kernel gets for the word of the argument `name`; 0 for None. Generated hosts call it.

    Raises RuntimeError for an unknown word.
    """
    if word is None:
        return 0
    if word not in numbers:
        raise RuntimeError(f"{name} argument must be one of {', '.join(numbers)}, got {word}")
    return numbers[word]


def require_supported(x: torch.Tensor, operator: str, dtypes: Container[torch.dtype] = FLOATING) -> None:
    """Raise NotImplementedError for a dtype that the operator's Metal kernels do not have."""
    if x.dtype not in dtypes:
        raise NotImplementedError(f"{operator} is not implemented for {x.dtype} on mps")


def wrap_dim(dim: int, dimensions: int) -> int:
    """The dimension counted from the front. Raises IndexError, as torch does, for one out of range."""
    if not -dimensions <= dim < dimensions:
        bounds = f"[{-dimensions}, {dimensions - 1}]"
        raise IndexError(f"Dimension out of range (expected to be in range of {bounds}, but got {dim})")
    return dim % dimensions


def require_square(x: torch.Tensor, operator: str) -> None:
    """Raise RuntimeError, as torch.linalg does, unless `x` is (..., n, n)."""
    if x.dim() < 2:
        raise RuntimeError(f"{operator}: The input tensor A must have at least 2 dimensions.")
    rows, columns = x.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{operator}: A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def not_implemented(kernel: str, dtype: torch.dtype) -> NotImplementedError:
    """The error that the CPU's `kernel` raises for a dtype without implementation."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")


def require_lapack_dtype(x: torch.Tensor, kernel: str) -> None:
    """Raise NotImplementedError, as the CPU's `kernel` does, for a dtype without a LAPACK routine on mps."""
    if x.dtype not in (torch.float32, torch.complex64):
        raise not_implemented(kernel, x.dtype)
