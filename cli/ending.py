"""Handles errors in writing a command's output."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import MpsmithError

MAY_BE_EMPTY = ("--flags",)
# What a write to standard output fails with, without the name of a file.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(TyperGroup):
    """The commands of mpsmith; `written` turns their output errors into user errors."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, without an empty value: an unset variable of a shell would mean the current folder."""
        own = args[:1] if args[:1] == ["trace"] else args  # the others are a program's
        for word, following in zip(own, [*own[1:], None], strict=True):
            option, *value = word.partition("=")
            is_empty = following == "" or value == ["=", ""]
            if option.startswith("--") and is_empty and not (option in MAY_BE_EMPTY or self._is_flag(ctx, own, option)):
                raise MpsmithError(f"{option} has an empty value; name one, or leave {option} out")
        return super().parse_args(ctx, args)

    def _is_flag(self, ctx: Any, words: list[str], option: str) -> bool:
        """Whether the option of the command that the words name takes no value."""
        command: Any = self
        for word in words:
            command = getattr(command, "commands", {}).get(word, command)
        return any(option in (*p.opts, *p.secondary_opts) and p.is_flag for p in command.params)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with written():
            return super().invoke(ctx)


def open_closed_streams() -> None:
    """Open standard streams that the shell closed (`>&-`), because the next opened file would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            if nothing != number:
                os.close(nothing)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


@contextmanager
def written() -> Iterator[None]:
    """Turn an OSError with a file name, a full disk or a missing torch into an MpsmithError.

    If the reader of the output has ended (head, less), the command ends with 0.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, because errors cannot be reported when the interpreter ends
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MpsmithError("torch is not installed here (pip install torch); `mpsmith doctor` says more") from error
    except BrokenPipeError as error:
        if not _pipe_is_broken():
            raise
        _drop_output()
        raise typer.Exit(0) from error
    except OSError as error:
        if error.filename is None and error.errno not in NO_ROOM:
            raise  # a library's error
        if error.filename is None:
            _drop_output()
        cache = os.environ.get("MPSMITH_CACHE")
        hint = f" (MPSMITH_CACHE is {cache})" if cache and str(error.filename).startswith(cache) else ""
        raise MpsmithError(f"{error.filename or 'cannot write the output'}: {error.strerror}{hint}") from error


@contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Drop further output if the reader of the pipe has ended; what follows the block still runs."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not _pipe_is_broken():
            raise
        _drop_output()


def _pipe_is_broken() -> bool:
    """Whether standard output is a pipe without a reader."""
    output = select.poll()
    output.register(sys.stdout.fileno(), select.POLLOUT)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in output.poll(0))


def _drop_output() -> None:
    """Redirect standard output to nothing, so that the interpreter does not fail again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
