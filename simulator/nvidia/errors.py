"""What can go wrong between a kernel and an NVIDIA GPU."""

from __future__ import annotations

from ..metal.errors import MetalRuntimeError


class NvidiaError(MetalRuntimeError):
    """The driver refuses something, or a kernel did what the GPU does not forgive; the message says which."""


class NoNvidiaDriverError(NvidiaError):
    """This machine has no NVIDIA driver, no GPU, or one that is too old."""


class NvidiaTimeoutError(NvidiaError):
    """A kernel runs longer than it may. It cannot be stopped: the GPU is lost to this process."""


class PtxError(NvidiaError):
    """A kernel cannot be made into PTX: it needs what the GPU, or this machine's compiler, has not."""
