"""Runs arm64 libraries for macOS on Linux: those of a macOS wheel of torch, with the host code of its release.

They run natively on an arm64 machine and in qemu-user elsewhere, always in a separate process. Nothing of torch, LLVM
or Apple is part of mpsmith: the loader has its own stand-ins for the system, and the C++ library is built on the user's
machine from what the ziglang package carries (Apache-2.0 with LLVM's exceptions; Darwin's headers there: APSL 2.0).
"""

from .machine import arm64_command
from .process import HostProcess

__all__ = ["HostProcess", "arm64_command"]
