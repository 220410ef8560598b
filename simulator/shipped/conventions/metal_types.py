"""Names and numbers of dtypes in kernels: `scalarToMetalTypeString` and `c10::ScalarType` of torch's host code."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ..plan import Declined

_NAMES: Final = {
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat",
    torch.int64: "long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.bool: "bool",
    torch.complex64: "float2",
    torch.complex32: "half2",
    torch.uint64: "ulong",
    torch.uint32: "uint",
    torch.uint16: "ushort",
}

_NUMBERS: Final = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.complex32: 8,
    torch.complex64: 9,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.uint16: 27,
    torch.uint32: 28,
    torch.uint64: 29,
}


def metal_name(dtype: torch.dtype) -> str:
    """The name of a dtype in the names of kernels.

    Raises:
        Declined: Metal has no such type, so no kernel has it either.
    """
    name = _NAMES.get(dtype)
    if name is None:
        raise Declined(f"no kernel for {str(dtype).removeprefix('torch.')}")
    return name


def scalar_type(dtype: torch.dtype) -> int:
    """The number of a dtype in the arguments of converting kernels.

    Raises:
        Declined: kernels do not support the dtype.
    """
    number = _NUMBERS.get(dtype)
    if number is None:
        raise Declined(f"no kernel for {str(dtype).removeprefix('torch.')}")
    return number


def is_integral(dtype: torch.dtype) -> bool:
    """Whether a dtype is neither floating point nor complex; bool is integral."""
    return not (dtype.is_floating_point or dtype.is_complex)


def as_bytes(tensor: Tensor) -> Tensor:
    """The memory from a tensor's first element on as bytes, for kernels that get the type as a number."""
    memory = torch.empty(0, dtype=torch.uint8, device="cpu")
    storage = tensor.untyped_storage()
    offset = int(tensor.storage_offset()) * tensor.element_size()
    return memory.set_(storage, offset, (storage.nbytes() - offset,), (1,))
