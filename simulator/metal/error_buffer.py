"""The buffer that TORCH_REPORT_ERROR of c10/metal/error.h writes to inside a kernel."""

from __future__ import annotations

import ctypes

from ..errors import MetalRuntimeError
from .binding import Buffer

_COUNT = 30


class _Message(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char * 128),
        ("function", ctypes.c_char * 128),
        ("message", ctypes.c_char * 250),
        ("line", ctypes.c_uint32),
    )


class _Messages(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("messages", _Message * _COUNT))


class ErrorBuffer:
    """The error buffer of a call."""

    def __init__(self) -> None:
        self._memory = _Messages()
        address = ctypes.addressof(self._memory)
        self.buffer = Buffer(address, address, ctypes.sizeof(_Messages), self._memory)

    def raise_first(self) -> None:
        """Raise the first error that the kernel reported, and clear the buffer, as torch does when it synchronizes.

        Raises:
            torch.AcceleratorError: as torch does; MetalRuntimeError without torch.
        """
        if not self._memory.count:
            return
        self._memory.count = 0
        first = self._memory.messages[0]
        text = first.message.decode(errors="replace")
        location = f"{first.file.decode(errors='replace')}:{first.line} in {first.function.decode(errors='replace')}"
        import sys

        torch = sys.modules.get("torch")
        kind = getattr(torch, "AcceleratorError", MetalRuntimeError)
        raise kind(f"{text} ({location})")
