"""What can go wrong between a piece of Metal source and its result, and as which exception."""

from ...errors import MpsmithError


class MetalSyntaxError(MpsmithError, SyntaxError, RuntimeError):
    """The Metal source does not compile; `filename` and `lineno` are those of the Metal source.

    torch raises SyntaxError from `compile_shader`, and a RuntimeError in its older releases: programs that catch
    either of them are met.
    """

    def __init__(self, message: str, filename: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.filename = filename
        self.lineno = line

    def __str__(self) -> str:
        return self.msg


class MetalRuntimeError(MpsmithError, RuntimeError):
    """A kernel cannot be called this way, or did something that a GPU would not forgive."""


class UndefinedLanesError(MetalRuntimeError):
    """A kernel's result hangs on what inactive lanes of a SIMD group hold, which Metal leaves undefined.

    The arguments hold what the kernel computes where such lanes hold zero, as Apple silicon was measured to give.
    """


class MetalValueError(MpsmithError, ValueError):
    """An argument's value is out of range, such as a threadgroup that is too large."""
