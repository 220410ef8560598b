"""What kernels are given to read: of the dtype and shape that they read it as, with the CPU's texts where it is not.

A kernel takes the bytes of another dtype for its own, and reads what lies behind a tensor that is too short: so every
tensor that is bound is checked here or converted on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

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


def require_device(x: torch.Tensor, others: dict[str, torch.Tensor | None], operator: str) -> None:
    """Raise RuntimeError unless all tensors are on the device of `x`; `others` are named for the message."""
    for name, other in others.items():
        if other is not None and other.device != x.device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {x.device} and "
                f"{other.device}! (when checking argument {name} of {operator})"
            )


def require_scalar_type(x: torch.Tensor, dtype: torch.dtype) -> None:
    """Raise RuntimeError, in the words of the CPU's accessors, for a tensor of another dtype."""
    if x.dtype != dtype:
        raise RuntimeError(f"expected scalar type {scalar_type(dtype)} but found {scalar_type(x.dtype)}")


def require_sizes(x: torch.Tensor, sizes: Sequence[int], name: str) -> None:
    """Raise RuntimeError for a tensor of another shape; `name` is the argument's in torch's messages."""
    if tuple(x.shape) != tuple(sizes):
        raise RuntimeError(f"expected sizes {list(sizes)} for `{name}` but got sizes {list(x.shape)}")


def number_of(name: str, word: str | None, numbers: Mapping[str, int]) -> int:
    """The number that a kernel gets for the word of an argument `name`; 0 where there is none.

    Raises RuntimeError for a word that is none of these.
    """
    if word is None:
        return 0
    if word not in numbers:
        raise RuntimeError(f"{name} argument must be one of {', '.join(numbers)}, got {word}")
    return numbers[word]


def not_implemented(kernel: str, dtype: torch.dtype) -> NotImplementedError:
    """What the CPU raises, in its words, where its `kernel` of this name does not take a dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")


def require_lapack_dtype(x: torch.Tensor, kernel: str) -> None:
    """Raise NotImplementedError in the CPU's words, which name its `kernel`, for a dtype that LAPACK does not have."""
    if x.dtype not in (torch.float32, torch.complex64):
        raise not_implemented(kernel, x.dtype)
