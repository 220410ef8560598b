"""Finds, from an exception, which stage between a call and its kernel refused the call."""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Iterator

from ...simulator.errors import CompilerLimitError, CompilerMissingError, InternalCompilerError, MetalSyntaxError
from .verdicts import CompiledVerdict

LONGEST_REASON = 400


def verdict_of_exception(error: BaseException) -> CompiledVerdict:
    """The verdict that an exception of a compiled call gives."""
    from torch._dynamo.exc import BackendCompilerFailed, Unsupported
    from torch._inductor.exc import InductorError

    chain = list(chain_of(error))
    if any(isinstance(exception, MemoryError) for exception in chain):
        return CompiledVerdict.CRASH
    if any(_is_of_metal(exception) for exception in chain):
        return CompiledVerdict.REJECTED
    if any(isinstance(exception, Unsupported) for exception in chain):
        return CompiledVerdict.CANNOT_TRACE
    if any(isinstance(exception, (InductorError, BackendCompilerFailed)) for exception in chain):
        return CompiledVerdict.NOT_LOWERED
    return CompiledVerdict.ERROR


def fault_of_this_machine(error: BaseException) -> BaseException | None:
    """The part of an exception that is about this machine and not the call: a full disk, a failing compiler."""
    return next(filter(_is_of_this_machine, chain_of(error)), None)


def _is_of_this_machine(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in _OUT_OF_ROOM
    return isinstance(error, (CompilerMissingError, CompilerLimitError, InternalCompilerError))


_OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EIO})


def _is_of_metal(error: BaseException) -> bool:
    """Whether the Metal compiler refused a source; torch wraps that in a SyntaxError with the source in it."""
    if isinstance(error, MetalSyntaxError):
        return True
    return isinstance(error, SyntaxError) and str(error).startswith("failed to compile")


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it came from, each once; Inductor keeps one as `inner_exception`."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        exception = waiting.pop(0)
        if exception is None or id(exception) in seen:
            continue
        seen.add(id(exception))
        yield exception
        waiting += [exception.__cause__, exception.__context__, getattr(exception, "inner_exception", None)]


def reason_of(error: BaseException) -> str:
    """The reason for the exception in one line: its text, or the function that raised it if it has no text."""
    verdict = verdict_of_exception(error)
    if verdict is CompiledVerdict.CRASH:
        return "out of memory"
    if verdict is CompiledVerdict.REJECTED and (refused := _refusal(error)):
        return refused[0]
    cause = _of_inductor(error) if verdict is CompiledVerdict.NOT_LOWERED else error
    name = type(cause).__name__
    if name == "CppCompileError" and (match := _FIRST_ERROR.search(str(cause))):
        return f"{name}: {_joined(match['message'])}"  # the host compiler's error, which follows pages of options
    text = _joined(_without_hints(str(cause)))
    if text:
        return f"{name}: {text}"
    frames = traceback.extract_tb(cause.__traceback__)
    return f"{name} in {frames[-1].name}" if frames else name


def _of_inductor(error: BaseException) -> BaseException:
    """The exception that Inductor wrapped in its own."""
    packed = (getattr(exception, "inner_exception", None) for exception in chain_of(error))
    return next((inner for inner in packed if isinstance(inner, BaseException)), error)


def _joined(text: str) -> str:
    return " ".join(text.split())[:LONGEST_REASON]


def _without_hints(text: str) -> str:
    """The message of an exception of torch.compile, without its hints."""
    return re.split(r"\s*(?:Set TORCHDYNAMO_VERBOSE|For more details about|Hint: |While executing )", text)[0]


def refused_line(error: BaseException) -> str:
    """The line of the generated source that the Metal compiler refuses, "" if it names none."""
    refused = _refusal(error)
    return refused[1] if refused else ""


def _refusal(error: BaseException) -> tuple[str, str] | None:
    """The Metal compiler's first error, and the line of the source that it is about."""
    for exception in chain_of(error):
        if _is_of_metal(exception) and (match := _FIRST_ERROR.search(str(exception))):
            return _joined(match["message"]), _joined(match["line"] or "")
    return None


# "program_source:6:13: error: call to 'sign' is ambiguous", then the line.
_FIRST_ERROR = re.compile(r"error: (?P<message>[^\n]*)(?:\n *(?:\d+ \| *)?(?P<line>[^\n]*))?")
