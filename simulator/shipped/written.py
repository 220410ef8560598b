"""The memory that a call writes: saved before the stand-in runs, restored or poisoned before the shipped kernel runs.

So no value of the stand-in can be taken for one of the kernel: an element that the kernel does not write stays poison.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from .call import host_alias

POISON = 0xA5
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True)
class Kept:
    """The saved bytes of a tensor, from its first element to its last."""

    tensor: Tensor
    address: int
    content: bytes

    @property
    def can_be_put_back(self) -> bool:
        """Whether the tensor still has the same memory."""
        return self.tensor.data_ptr() == self.address and extent(self.tensor) == len(self.content)

    def restore(self) -> None:
        """Restore the old content."""
        ctypes.memmove(self.address, self.content, len(self.content))


def keep(tensor: Tensor) -> Kept:
    """Save the bytes of a tensor of the device."""
    address = tensor.data_ptr()
    return Kept(tensor, address, ctypes.string_at(address, extent(tensor)))


def extent(tensor: Tensor) -> int:
    """Bytes from a tensor's first element to the end of its last."""
    if tensor.numel() == 0 or tensor.is_contiguous():
        return tensor.numel() * tensor.element_size()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(last + 1) * tensor.element_size()


def poison(tensor: Tensor) -> None:
    """Overwrite every element of a tensor, and nothing between them."""
    elements = tensor.numel()
    if not elements:
        return
    size = tensor.element_size()
    if tensor.is_contiguous() or extent(tensor) == elements * size:
        ctypes.memset(tensor.data_ptr(), POISON, elements * size)
        return
    tensor = host_alias(tensor)
    width = min(size, 8)
    integers = torch.empty(0, dtype=_INTEGERS[width], device="cpu")
    words = size // width
    integers.set_(
        tensor.untyped_storage(),
        tensor.storage_offset() * words,
        (*tensor.shape, words),
        (*(stride * words for stride in tensor.stride()), 1),
    )
    integers.fill_(int.from_bytes(bytes([POISON]) * width, "little", signed=width > 1))
