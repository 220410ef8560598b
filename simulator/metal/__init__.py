"""Metal compute kernels on the host: compiled with clang, run on the CPU, called like `torch.mps.compile_shader`.

This is a simulation. It shows a kernel's logic. It shows nothing about Apple's mathematics, speed or hardware.
"""

from ..clang import CompilerMissingError, Diagnostic
from ..errors import MetalRuntimeError, MetalSyntaxError, MetalValueError, UndefinedLanesError
from .check import check, check_key
from .compiler import METAL_VERSIONS, MetalVersion
from .library import ShaderLibrary, SimulatedKernel
from .library import compile_library as compile
from .modes import Mode, checking, subnormals
from .torch_hook import install

__all__ = [
    "METAL_VERSIONS",
    "CompilerMissingError",
    "Diagnostic",
    "MetalRuntimeError",
    "MetalSyntaxError",
    "MetalValueError",
    "MetalVersion",
    "Mode",
    "ShaderLibrary",
    "SimulatedKernel",
    "UndefinedLanesError",
    "check",
    "check_key",
    "checking",
    "compile",
    "install",
    "subnormals",
]
