"""Metal kernels for operators that PyTorch lacks on mps: importing this package registers the finished ones.

Only overloads without a kernel of the running torch are touched. `MPSMITH_KERNELS=off` registers nothing,
`MPSMITH_KERNELS=aten::mode,aten::take` only these.
"""

from .runtime.catalog import Kernel, UnknownKernelError
from .runtime.registration import (
    KernelStatus,
    State,
    disable,
    enable,
    enable_from_environment,
    registered,
    status,
    use,
)

__all__ = [
    "Kernel",
    "KernelStatus",
    "State",
    "UnknownKernelError",
    "disable",
    "enable",
    "registered",
    "status",
    "use",
]

enable_from_environment()
