"""One way to find the compiler, run it, read its messages and cache its answers.

It is the clang of the `ziglang` wheel, which compiles for every machine and needs nothing of the system. Which target,
language and headers a program is compiled for is the business of those who use this room.
"""

from .cache import BuildCache
from .compiler import Clang, Limits, ToolRun, installed, locate
from .diagnostics import Diagnostic, Message, messages
from .errors import CompilerLimitError, CompilerMissingError, InternalCompilerError

__all__ = [
    "BuildCache",
    "Clang",
    "CompilerLimitError",
    "CompilerMissingError",
    "Diagnostic",
    "InternalCompilerError",
    "Limits",
    "Message",
    "ToolRun",
    "installed",
    "locate",
    "messages",
]
