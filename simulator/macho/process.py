"""A process that holds a release's own libraries and calls their operators."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from ..errors import MachOError
from ..mpsgraph.limits import rows
from ..upstream.host_work import HostWork, parse_host_work
from .building import cxx_library, driver, frameworks, graphs, loader
from .kernel_requests import KernelRequests
from .machine import arm64_command
from .shared_memory import SharedMemory, pickled, tensors
from .traces import MetalTrace, parse_trace

if TYPE_CHECKING:
    from torch import Tensor

    from ..air.library import AirLibrary

LIBRARIES = ("libomp.dylib", "libc10.dylib", "libtorch_cpu.dylib")


class OperatorError(MachOError):
    """An operator of the release raised an error with this message. `kind`: the name of its class in Python."""

    def __init__(self, message: str, kind: str = "RuntimeError") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Registered:
    """Whether an overload has a CPU kernel and an MPS kernel in a release."""

    cpu: bool
    mps: bool


@dataclass(frozen=True)
class Computed:
    """The result of a call on mps.

    Attributes:
        described: the returned values; tensors as `shared_memory.tensors` takes them, valid until the next call.
        described_written: likewise, the arguments that its schema declares as written, in order.
        recording: its calls of Metal, without the bytes of buffers.
        work: the other work of operators' kernels, by overload.
    """

    described: list[Any]
    described_written: list[Any]
    recording: str
    work: dict[str, HostWork]

    @property
    def results(self) -> list[Any]:
        """The returned values: tensors on the CPU over shared memory."""
        converted: list[Any] = tensors(self.described)
        return converted

    @property
    def written(self) -> list[Any]:
        """Likewise, the arguments that its schema declares as written."""
        converted: list[Any] = tensors(self.described_written)
        return converted

    @property
    def trace(self) -> MetalTrace:
        """The calls of Metal."""
        return parse_trace(self.recording)


class HostProcess:
    """The libraries of one release, in a process that ends with the `with` statement. Raises MachOError.

    Args:
        torch: the folder `torch` of a macOS wheel, with `lib` and `include`.
        macos: the version of macOS that the release sees; with it, calls are made on mps. None for CPU calls.
        kernels: for traces, the names of the kernels that the release ships.
        library: the kernels of the release; with them calls compute on mps, launched by the release's own code.
    """

    def __init__(
        self,
        torch: Path,
        macos: tuple[int, int] | None = None,
        kernels: Sequence[str] = (),
        library: AirLibrary | None = None,
    ) -> None:
        own = [torch / "lib" / name for name in LIBRARIES]
        if macos is not None:
            own = [frameworks(), *own, graphs(torch)]
        self._command = command([cxx_library(), *own, driver(torch)])
        task = [] if macos is None else ["trace" if library is None else "compute", *map(str, macos)]
        whole = [*self._command, "driver", *task]
        self._names = tempfile.NamedTemporaryFile("w", prefix="mpsmith-")  # noqa: SIM115  (closed with the process)
        self._names.write("\n".join(kernels))
        self._names.flush()
        environment = os.environ | {"MPSMITH_KERNEL_NAMES": self._names.name}
        self._memory = None if library is None else SharedMemory()
        self._requests = KernelRequests(library)
        files = []
        if self._memory is not None:
            environment |= self._memory.environment
            files.append(self._memory.file)
        self._process = subprocess.Popen(
            whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, pass_fds=files
        )
        if macos is not None:
            table = "".join("\t".join(map(str, row)) + "\n" for row in rows()).encode()
            self._send("the limits of MPSGraph", _request("limits", table))

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._names.close()
        if self._memory is not None:
            self._memory.close()

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def operators(self) -> dict[str, Registered]:
        """Every overload that the release registers, such as `aten::add.Tensor`; determined in a separate process."""
        done = subprocess.run([*self._command, "driver", "operators"], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise MachOError(f"the release's libraries cannot be run: {_exit_reason(done.returncode)}")
        lines = (line.split(" ") for line in done.stdout.splitlines())
        return {name: Registered(cpu == "1", mps == "1") for name, cpu, mps in lines}

    def call(self, overload: str, *arguments: object) -> tuple[Any, ...]:
        """Call an overload with all its arguments in order: tensors on the CPU, numbers, strings, lists, None.

        A dtype, layout or memory format is torch's number for it, a device is its name. Raises OperatorError with the
        release's own message, MachOError when the process ends.
        """
        return tuple(self._loaded(overload, arguments))

    def trace(self, overload: str, *arguments: object) -> MetalTrace:
        """The calls of Metal that a call on mps makes, without running kernels. Needs `macos`. Raises as `call` does.

        Also raises OperatorError if the release sends a message that the stand-ins do not have.
        """
        return parse_trace(self._loaded(overload, arguments))

    def compute(self, overload: str, *arguments: object, state: Tensor | None = None) -> Computed:
        """Compute a call with all its arguments in order; tensors as in `Computed`. Needs `library`.

        Tensors on mps (the simulated device's) are on mps there, too, others on the CPU; dtypes and so on are torch's.
        What the call writes into its arguments is copied back. `state`: the state of the generator that the call draws
        from, in place of a generator among its arguments; it is updated.

        Raises OperatorError with the release's own message, also for a kernel's fault or a message that the stand-ins
        lack; MachOError for arguments that cannot be sent, and when the process ends.
        """
        if self._memory is None:
            raise MachOError("this process was started without the kernels of the release")
        sent = arguments if state is None else (*arguments, state)
        try:
            placed = tuple(self._memory.place(value) for value in sent)
            results, written, recording, work = pickle.loads(self._answer(overload, pickled(placed)))
            self._memory.take_back()
        finally:
            self._memory.forget_arguments()
        return Computed(results, written, recording, parse_host_work(work))

    def empty_cache(self) -> None:
        """Release cached memory on mps, and cached graphs if the release's `torch.mps.empty_cache` does (2.13.0 does).

        Raises OperatorError and MachOError as `compute` does.
        """
        ranges = self._answer("empty cache", b"").decode().splitlines()
        if self._memory is not None:
            self._memory.release(tuple(map(int, line.split())) for line in ranges)

    def _loaded(self, overload: str, arguments: tuple[object, ...]) -> Any:
        import torch

        saved = io.BytesIO()
        torch.save(arguments, saved)
        return torch.load(io.BytesIO(self._answer(overload, saved.getvalue())), weights_only=False)

    def _answer(self, overload: str, content: bytes) -> bytes:
        self._send(overload, _request(overload, content))
        while True:
            kind, _, size = _opened_pipe(self._process.stdout).readline().decode().strip().partition(" ")
            if not size:
                raise MachOError(f"{overload}: {_exit_reason(self._process.wait())}")
            answer = _opened_pipe(self._process.stdout).read(int(size))
            if kind.endswith("Error"):
                raise OperatorError(answer.decode("utf-8", "replace"), kind)
            if kind == "result":
                return answer
            self._send(overload, self._requests.answer(kind, answer))

    def _send(self, overload: str, message: bytes) -> None:
        try:
            stdin = _opened_pipe(self._process.stdin)
            stdin.write(message)
            stdin.flush()
        except BrokenPipeError:
            raise MachOError(f"{overload}: {_exit_reason(self._process.wait())}") from None


def _request(name: str, content: bytes) -> bytes:
    """A request as the driver reads it: two sizes, the name and the content."""
    return struct.pack("<2I", len(name.encode()), len(content)) + name.encode() + content


def command(libraries: Sequence[Path]) -> list[str]:
    """The command that maps these libraries in order; append a symbol and its arguments. Raises MachOError."""
    return [*arm64_command(), str(loader()), *map(str, libraries), "--"]


def _opened_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise MachOError("cannot open a pipe to the process that runs the release's libraries")
    return pipe


def _exit_reason(code: int) -> str:
    reasons = {97: "the loader refuses them", 98: "they crashed", 99: "they need a name that nothing here defines"}
    return f"{reasons.get(code, f'the process ended with {code}')}; its last lines say what happened"
