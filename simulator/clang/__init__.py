"""Finds the compiler, runs it, reads its messages and caches its results.

It is the clang of the `ziglang` wheel, which compiles for every machine and needs nothing of the system. Callers choose
the target, the language and the headers.
"""

from ..errors import CompilerLimitError, CompilerMissingError, InternalCompilerError
from .cache import BuildCache
from .compiler import Clang, Limits, ToolRun, installed, locate
from .diagnostics import Diagnostic, Message, messages
from .stream import CompilerStream

__all__ = [
    "BuildCache",
    "Clang",
    "CompilerLimitError",
    "CompilerMissingError",
    "CompilerStream",
    "Diagnostic",
    "InternalCompilerError",
    "Limits",
    "Message",
    "ToolRun",
    "installed",
    "locate",
    "messages",
]
