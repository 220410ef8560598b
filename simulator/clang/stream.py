"""Many compilations in one compiler process, because starting it takes as long as compiling a small file."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import threading
import weakref
from collections.abc import Callable, Sequence

from .compiler import Clang, Limits, limit

# So many inputs of a process are open from its start.
_INPUTS = 48
_HEADER, _SECTIONS = 64, struct.Struct("<Q10xHH")  # of an object file: where its table of sections is, which ends it


class CompilerStream:
    """Compiles LLVM modules one after the other, with the same flags of `clang -cc1 -x ir`.

    Each input is a pipe, so the process reads it when it is written. The process ends with this one, which holds the
    other ends of the pipes.
    """

    def __init__(self, clang: Clang, flags: Sequence[str], limits: Limits) -> None:
        self._clang, self._flags, self._limits = clang, flags, limits
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def object_file(self, source: bytes) -> bytes | None:
        """The object file of a module, with `-emit-obj`. None if the compiler refuses it: compile it alone then."""

        def read(process: _Process) -> bytes:
            process.send(source)
            return process.read(_size_of_object)

        return self._run(read)

    def assembly(self, source: bytes) -> str | None:
        """The text of a module, with `-emit-llvm`. None as for `object_file`."""

        def read(process: _Process) -> bytes:
            begin, end = (f"; ModuleID = '{process.send(module)}'".encode() for module in (source, b""))
            text = process.read(lambda output: output.find(end))
            return text[text.index(begin) :]

        text = self._run(read)
        return None if text is None else text.decode("utf-8", "replace")

    def _run(self, read: Callable[[_Process], bytes]) -> bytes | None:
        with self._lock:
            try:
                if self._process is None or self._process.inputs_left < 2:
                    self._process = None  # ends the old one first
                    self._process = _Process(self._clang, self._flags, self._limits)
                return read(self._process)
            except (OSError, ValueError):
                self._process = None
                return None


class _Process:
    """A compiler process with its pipes; both are closed with this object."""

    def __init__(self, clang: Clang, flags: Sequence[str], limits: Limits) -> None:
        pipes = [os.pipe() for _ in range(_INPUTS)]
        self._output, output = os.pipe()
        read_ends = [read for read, _ in pipes]
        self._inputs = [(f"/dev/fd/{read}", write) for read, write in pipes]
        names = (name for name, _ in self._inputs)
        self._left = b""
        self._seconds = limits.seconds
        try:
            process = subprocess.Popen(
                [str(clang.program), "clang", "-cc1", *flags, "-o", f"/dev/fd/{output}", "-x", "ir", *names],
                pass_fds=(*read_ends, output),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        finally:
            for descriptor in (*read_ends, output):
                os.close(descriptor)
        self.pid = process.pid
        limit(self.pid, limits)
        assert process.stderr is not None
        self._errors = process.stderr.fileno()
        weakref.finalize(self, _end, process, self._inputs, self._output)

    @property
    def inputs_left(self) -> int:
        """How many more inputs it can read."""
        return len(self._inputs)

    def send(self, source: bytes) -> str:
        """Send the next input; returns its name. Raises OSError if the process has ended."""
        name, pipe = self._inputs[0]
        with os.fdopen(pipe, "wb") as file:
            del self._inputs[0]
            file.write(source)
        return name

    def read(self, end_in: Callable[[bytes], int]) -> bytes:
        """The output up to the index that `end_in` returns; -1 means incomplete. Raises OSError if the process ends."""
        while (end := end_in(self._left)) < 0:
            ready, _, _ = select.select([self._output, self._errors], [], [], self._seconds)
            # A process that has read its last input ends both, and its output is whole.
            more = os.read(self._output, 1 << 16) if self._output in ready else b""
            if not more:
                raise OSError("the compiler refuses it, or takes too long")
            self._left += more
        output, self._left = self._left[:end], self._left[end:]
        return output


def _end(process: subprocess.Popen[bytes], inputs: Sequence[tuple[str, int]], output: int) -> None:
    process.kill()
    process.communicate()
    for descriptor in (output, *(pipe for _, pipe in inputs)):
        os.close(descriptor)


def _size_of_object(content: bytes) -> int:
    """The size of the ELF object at the start of these bytes, or -1 if it is not complete yet."""
    if len(content) < _HEADER:
        return -1
    offset, size, count = _SECTIONS.unpack_from(content, 0x28)
    end = offset + size * count
    return end if len(content) >= end else -1
