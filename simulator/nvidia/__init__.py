"""Metal compute kernels on an NVIDIA GPU: compiled to PTX with clang, launched by the driver, called as on a Mac.

This tests kernels with real parallelism, atomics and memory limits. It is not Apple's GPU: results are marked *NVIDIA*.
"""

from ..errors import NoNvidiaDriverError, NvidiaError, NvidiaTimeoutError
from .driver import Driver, default_driver
from .library import NvidiaKernel, NvidiaLibrary, synchronize
from .library import compile_library as compile
from .torch_hook import install

__all__ = [
    "Driver",
    "NoNvidiaDriverError",
    "NvidiaError",
    "NvidiaKernel",
    "NvidiaLibrary",
    "NvidiaTimeoutError",
    "compile",
    "default_driver",
    "install",
    "synchronize",
]
