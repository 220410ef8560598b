"""What a sick Mac does, for the rehearsal: MPSMITH_POSED_FAULT names one of FAULTS."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# After so many cases, the process's command buffers are ignored.
CASES_UNTIL_IGNORED = 30
SECONDS_OF_THE_FIRST_COMPILE = 20.0
# The case whose kernel hangs or writes outside of its output, and how many cases later its process ends by that.
CASE_AT_FAULT = "opinfo:cos:float32:0"
CASES_UNTIL_THE_END = 40


class Memory:
    """Nothing can be allocated on the device, as in some virtual machines."""

    def install(self, tensor: Any) -> None:
        """Let each copy to the device fail."""
        usual = tensor.to

        def to(self: Any, *args: Any, **options: Any) -> Any:
            if any(str(argument).startswith("mps") for argument in (*args, *options.values())):
                raise RuntimeError("MPS backend out of memory (MPS allocated: 0 bytes, max allowed: 7.93 GB)")
            return usual(self, *args, **options)

        tensor.to = to


class Ignored:
    """After an unseen fault, the device executes nothing more: results are zeros."""

    def __init__(self, cases: int = CASES_UNTIL_IGNORED) -> None:
        self.left = cases

    def install(self, tensor: Any) -> None:
        """Let what is read from the device be zeros, once the fault has happened."""
        usual = tensor.cpu

        def cpu(self_: Any, *args: Any, **options: Any) -> Any:
            read = usual(self_, *args, **options)
            return read if self.left > 0 or self_.device.type != "mps" else read.zero_()

        tensor.cpu = cpu

    def judge(self, module: Any) -> None:
        """Count the cases, and zero the outputs of those after the fault."""
        usual = module.Trial._run_on_device

        def run_on_device(trial: Any) -> Any:
            self.left -= 1
            execution = usual(trial)
            if self.left <= 0:
                _zero(execution)
            return execution

        module.Trial._run_on_device = run_on_device


def _zero(execution: Any) -> None:
    for output in _outputs_on_mps(execution):
        output.zero_()


def _outputs_on_mps(execution: Any) -> list[Any]:
    """The tensors on mps among the outputs, without their graphs."""
    torch = sys.modules["torch"]
    tensors = (output for output in execution.outputs if isinstance(output, torch.Tensor))
    return [tensor.detach() for tensor in tensors if tensor.device.type == "mps"]


class WritesOutside:
    """One case's kernel writes past its buffer: its own result is right, those of later cases in its process are not.

    What it has overwritten is what they read, such as constants that MPSGraph keeps, and at last the process itself.
    The canary sees nothing of it.
    """

    def __init__(self) -> None:
        self.later = -1

    def install(self, tensor: Any) -> None:
        """Nothing: the fault comes with a case."""

    def judge(self, module: Any) -> None:
        """Change the outputs of the cases after the one at fault."""
        usual = module.Trial._run_on_device

        def run_on_device(trial: Any) -> Any:
            execution = usual(trial)
            if trial._seed_cpu.args[1] == CASE_AT_FAULT:
                self.later = max(self.later, 0)
            elif self.later >= 0:
                self.later += 1
                _corrupt_first(execution)
            if self.later > CASES_UNTIL_THE_END:
                os.kill(os.getpid(), signal.SIGSEGV)
            return execution

        module.Trial._run_on_device = run_on_device


def _corrupt_first(execution: Any) -> None:
    for output in _outputs_on_mps(execution):
        if output.numel():
            output[(slice(0, 1),) * output.dim()] = 1


class SlowFirstCompile:
    """The first work of each process waits for the compiler service."""

    def install(self, tensor: Any) -> None:
        """Let the first wait for the device take seconds."""
        waits = iter([SECONDS_OF_THE_FIRST_COMPILE])
        _at_each_wait(tensor, lambda: time.sleep(next(waits, 0)))


class Threads:
    """A second thread that uses the device ends the process (pytorch #197805)."""

    def install(self, tensor: Any) -> None:
        """Let each wait for the device look at its thread."""
        users = set[int]()

        def look() -> None:
            users.add(threading.get_ident())
            if len(users) > 1:
                print("a second thread uses the mps device", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGSEGV)

        _at_each_wait(tensor, look)


class Abort:
    """Metal's assertion ends the process at the first copy back."""

    def install(self, tensor: Any) -> None:
        """Let a wait for the device end the process."""

        def end() -> None:
            print("-[IOGPUMetalCommandBuffer validate]:214: failed assertion", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)

        _at_each_wait(tensor, end)


class Hang:
    """synchronize never returns, as after a shader that traps (pytorch #144634)."""

    def install(self, tensor: Any) -> None:
        """Let each wait for the device last for ever."""
        _at_each_wait(tensor, _wait_for_ever)


class HangsLater:
    """One case's kernel hangs. `system`: from then on the device hangs in every process."""

    def __init__(self, system: bool = False) -> None:
        self.system = system
        self.hung = Path("the device hangs")

    def install(self, tensor: Any) -> None:
        """Let each wait for the device last for ever, once the whole system hangs."""
        _at_each_wait(tensor, lambda: _wait_for_ever() if self.hung.exists() else None)

    def judge(self, module: Any) -> None:
        """Let the case at fault never end."""
        usual = module.Trial._run_on_device

        def run_on_device(trial: Any) -> Any:
            execution = usual(trial)
            if trial._seed_cpu.args[1] == CASE_AT_FAULT:
                if self.system:
                    self.hung.touch()
                _wait_for_ever()
            return execution

        module.Trial._run_on_device = run_on_device


def _wait_for_ever() -> None:
    """As in C: Ctrl-C does not end it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        signal.pause()


def _at_each_wait(tensor: Any, act: Callable[[], None]) -> None:
    """Act each time before the host waits for the device."""

    def waiting(usual: Any) -> Any:
        def wait(self: Any, *args: Any, **options: Any) -> Any:
            if self.device.type == "mps":
                act()
            return usual(self, *args, **options)

        return wait

    for name in ("cpu", "item", "tolist"):
        setattr(tensor, name, waiting(getattr(tensor, name)))
    mps = sys.modules["torch"].mps
    synchronize = mps.synchronize
    mps.synchronize = lambda: (act(), synchronize())[1]


FAULTS: dict[str, Callable[[], Any]] = {
    "oom": Memory,
    "ignored": Ignored,
    "ignored at once": partial(Ignored, 1),
    "out-of-bounds write": WritesOutside,
    "abort": Abort,
    "hang": Hang,
    "hang in one case": HangsLater,
    "hang after one case": partial(HangsLater, system=True),
    "slow first compile": SlowFirstCompile,
    "threads": Threads,
}


def chosen() -> Any:
    """The fault that the environment names; None if it names none."""
    name = os.environ.get("MPSMITH_POSED_FAULT")
    return FAULTS[name]() if name else None
