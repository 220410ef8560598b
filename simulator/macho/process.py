"""A process that holds a release's own libraries, and calls their operators."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..errors import MachOError
from .building import cxx_library, driver, frameworks, loader
from .machine import arm64_command
from .traces import MetalTrace, parse_trace

LIBRARIES = ("libomp.dylib", "libc10.dylib", "libtorch_cpu.dylib")


class OperatorError(MachOError):
    """An operator of the release raised an error; the message is its own."""


@dataclass(frozen=True)
class Registered:
    """For which dispatch keys an overload has a kernel in a release."""

    cpu: bool
    mps: bool


class HostProcess:
    """The libraries of one release, in a process that ends with the `with` statement.

    Args:
        torch: the folder `torch` of a macOS wheel, with `lib` and `include`.
        macos: None, or the version of macOS that the release sees; then its calls are traced on mps.
        kernels: for traces, the names of the kernels that the release ships.

    Raises:
        MachOError: this machine cannot run or build it.
    """

    def __init__(self, torch: Path, macos: tuple[int, int] | None = None, kernels: Sequence[str] = ()) -> None:
        below = [cxx_library()] if macos is None else [cxx_library(), frameworks()]
        self._command = command([*below, *(torch / "lib" / name for name in LIBRARIES), driver(torch)])
        task = [] if macos is None else ["trace", *map(str, macos)]
        whole = [*self._command, "driver", *task]
        self._names = tempfile.NamedTemporaryFile("w", prefix="mpsmith-")  # noqa: SIM115  (closed with the process)
        self._names.write("\n".join(kernels))
        self._names.flush()
        environment = os.environ | {"MPSMITH_KERNEL_NAMES": self._names.name}
        self._process = subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._names.close()

    def operators(self) -> dict[str, Registered]:
        """Every overload that the release registers, such as `aten::add.Tensor`; asked in a separate process."""
        done = subprocess.run([*self._command, "driver", "operators"], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise MachOError(f"the release's libraries cannot be run: {_ending(done.returncode)}")
        lines = (line.split(" ") for line in done.stdout.splitlines())
        return {name: Registered(cpu == "1", mps == "1") for name, cpu, mps in lines}

    def call(self, overload: str, *arguments: object) -> tuple[Any, ...]:
        """The results of an overload for all its arguments in order: tensors on the CPU, numbers, texts, lists, None.

        A dtype, a layout and a memory format are torch's numbers, a device is its name. Raises OperatorError with the
        release's own message, MachOError when the process ends.
        """
        return tuple(self._answer(overload, arguments))

    def trace(self, overload: str, *arguments: object) -> MetalTrace:
        """What the call asks of Metal with its tensors on mps; no kernel computes. Only with `macos`. Raises as `call`.

        OperatorError also where the release sends a message that the stand-ins do not have, such as one to MPSGraph.
        """
        return parse_trace(self._answer(overload, arguments))

    def _answer(self, overload: str, arguments: tuple[object, ...]) -> Any:
        import torch

        pickled = io.BytesIO()
        torch.save(arguments, pickled)
        content = pickled.getvalue()
        try:
            stdin = _pipe(self._process.stdin)
            stdin.write(f"{overload} {len(content)}\n".encode() + content)
            stdin.flush()
        except BrokenPipeError:
            raise MachOError(f"{overload}: {_ending(self._process.wait())}") from None
        stdout = _pipe(self._process.stdout)
        kind, _, size = stdout.readline().decode().strip().partition(" ")
        if not size:
            raise MachOError(f"{overload}: {_ending(self._process.wait())}")
        answer = stdout.read(int(size))
        if kind == "error":
            raise OperatorError(answer.decode("utf-8", "replace"))
        return torch.load(io.BytesIO(answer), weights_only=False)


def command(libraries: Sequence[Path]) -> list[str]:
    """The command that maps these libraries in order; a symbol and its arguments follow. Raises MachOError."""
    return [*arm64_command(), str(loader()), *map(str, libraries), "--"]


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise MachOError("the process of the release's libraries has no pipe")
    return pipe


def _ending(code: int) -> str:
    reasons = {97: "the loader refuses them", 98: "they crashed", 99: "they need a name that nothing here defines"}
    return f"{reasons.get(code, f'the process ended with {code}')}; its last lines say what happened"
