"""Metal compute kernels on an NVIDIA GPU: compiled to PTX with clang, launched by the driver, called as on a Mac.

What runs here is right or wrong under real parallelism and real atomics, and meets the limits of real memory. It is a
GPU, and not Apple's: whatever it shows is marked *NVIDIA*.
"""

from .driver import Driver, default_driver
from .errors import NoNvidiaDriverError, NvidiaError, NvidiaTimeoutError
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
