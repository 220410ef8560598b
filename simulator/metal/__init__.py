"""Metal compute kernels on the host: compiled with clang, run on the CPU, called as `torch.mps.compile_shader` is.

What runs here is simulated: it shows a kernel's logic, and says nothing about Apple's mathematics, speed or hardware.
"""

from ..clang import CompilerMissingError, Diagnostic
from .check import check, check_key
from .errors import MetalRuntimeError, MetalSyntaxError, MetalValueError, UndefinedLanesError
from .library import ShaderLibrary, SimulatedKernel
from .library import compile_library as compile
from .modes import Mode, checking, subnormals
from .reflection import ReflectedBuffer, ReflectedKernel, reflect
from .torch_hook import install

__all__ = [
    "CompilerMissingError",
    "Diagnostic",
    "MetalRuntimeError",
    "MetalSyntaxError",
    "MetalValueError",
    "Mode",
    "ReflectedBuffer",
    "ReflectedKernel",
    "ShaderLibrary",
    "SimulatedKernel",
    "UndefinedLanesError",
    "check",
    "check_key",
    "checking",
    "compile",
    "install",
    "reflect",
    "subnormals",
]
