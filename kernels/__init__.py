"""Metal kernels for operators that PyTorch lacks on mps. Importing this package registers the finished ones.

Only overloads without a kernel in the running torch are affected, and calls that its kernels refuse.
`MPSMITH_KERNELS=off` registers nothing, `MPSMITH_KERNELS=aten::mode,aten::take` only these.
"""

from typing import Any

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


def __getattr__(name: str) -> Any:
    """Return `mpsmith_case_sources`, which an audit reads from every package, so that kernels do not import `audit`."""
    if name == "mpsmith_case_sources":
        from .verification.source import KernelSource

        return [KernelSource()]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


enable_from_environment()
