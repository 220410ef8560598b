"""The simulated mps device: `device="mps"` on a machine that has none, backed by host memory and the CPU's kernels.

Load it once a process, before the first backward. Results are the CPU's: mark them `simulated` wherever they are shown.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import device_build, kernel_plan, python_surface
from .coverage_profile import CoverageProfile
from .errors import SimulatorError
from .kernel_plan import KernelPlan

FALLBACK_VARIABLE = "PYTORCH_ENABLE_MPS_FALLBACK"
OLDEST_TORCH = (2, 7)
# How the forked child of _backward_works_in_a_fork says no, and how long it may take before it is ended.
_BACKWARD_FAILED = 3
_FORK_SECONDS = 20
_THREAD_END_SECONDS = 5

_loading = threading.Lock()
_profile: CoverageProfile | None = None


@dataclass(frozen=True)
class OperatorCalls:
    """How often an operator reached the simulated device, and how it ended there.

    Attributes:
        native: calls that an operator listed as native took.
        fallback: calls that ran on the CPU through torch's CPU fallback.
        error: calls refused with NotImplementedError, the fallback being off.
    """

    native: int
    fallback: int
    error: int


def load(profile: CoverageProfile) -> None:
    """Put the simulated mps device in place for the rest of this process; loading an equal profile again does nothing.

    Raises:
        SimulatorError: another profile is loaded; torch has a real mps device or is too old; a backward has run
            already; PYTORCH_ENABLE_MPS_FALLBACK is no number; or the device cannot be built (see `device_build`).
    """
    global _profile
    with _loading:
        if _profile == profile:
            return
        if _profile is not None:
            raise SimulatorError(
                f"the simulated mps device is loaded with the coverage of {_profile.release}; "
                f"start another process for that of {profile.release}"
            )
        fallback = _fallback_from_environment()
        _check_torch()
        _activate(profile, fallback)
        _profile = profile


def is_loaded() -> bool:
    """Whether this process has the simulated mps device."""
    return _profile is not None


def loaded_profile() -> CoverageProfile | None:
    """The coverage profile that the simulated device was loaded with, or None."""
    return _profile


def set_fallback_enabled(enabled: bool) -> None:
    """Run operators without a kernel on the CPU, or refuse them; at first the environment decides, as on a Mac."""
    _control().set_fallback_enabled(enabled)


def counters() -> dict[str, OperatorCalls]:
    """The exact calls of every operator ("aten::add.Tensor") since the last reset."""
    return _table(_control().all_calls())


def reset_counters() -> None:
    """Set every count to zero and forget what the drains have not reported."""
    _control().reset_counters()


def drain_calls() -> dict[str, OperatorCalls]:
    """The calls since the last `drain_calls`, in order of first call; costs only what was touched.

    Does not change `counters()`, and is independent of `drain_fallbacks`.
    """
    return _table(_control().drain_calls())


def drain_fallbacks() -> list[str]:
    """The operators that fell back to the CPU since the last `drain_fallbacks`, in order of first fallback."""
    names: list[str] = _control().drain_fallbacks()
    return names


def _table(columns: tuple[list[str], list[int], list[int], list[int]]) -> dict[str, OperatorCalls]:
    return {name: OperatorCalls(*calls) for name, *calls in zip(*columns, strict=True)}


def _control() -> Any:
    """The operators by which the C++ side is driven."""
    import torch

    if _profile is None:
        raise SimulatorError("the simulated mps device is not loaded in this process; call load() first")
    return torch.ops.mpsmith_simulator


def _fallback_from_environment() -> bool:
    text = os.environ.get(FALLBACK_VARIABLE)
    if text is None:
        return False
    try:
        return int(text) != 0
    except ValueError:
        raise SimulatorError(f"{FALLBACK_VARIABLE} should be 0 or 1, not {text!r}") from None


def _check_torch() -> None:
    import torch

    if torch.backends.mps.is_built():
        raise SimulatorError("this torch has a real mps device; the simulated one is for machines without")
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise SimulatorError(f"the simulated mps device needs torch {oldest} or newer, not {torch.__version__}")


def _activate(profile: CoverageProfile, fallback: bool) -> None:
    import torch

    device_build.load_library()
    kernels = kernel_plan.plan(profile)
    control = torch.ops.mpsmith_simulator
    if _may_have_run_backward() and not _backward_works_in_a_fork(lambda: _register(control, kernels)):
        raise SimulatorError(
            "a backward has run in this process already, and torch's autograd engine counts its devices only once; "
            "load the simulated mps device before the first backward"
        )
    _register(control, kernels)
    control.set_fallback_enabled(fallback)
    control.set_torch_commit(torch.version.git_version or "unknown")
    python_surface.install()
    atexit.register(_end_autograd_threads)


def _register(control: Any, kernels: KernelPlan) -> None:
    control.activate(kernels.native, kernels.sparse, kernels.always_fallback)


def _end_autograd_threads() -> None:
    """Wait until the engine's device threads are gone, at the end of the process.

    A thread that needs python's lock to let go of the last graph, or of its own python state, when python is going
    away already, aborts the process.
    """
    import torch

    torch.ops.mpsmith_simulator.stop_autograd_threads()
    deadline = time.monotonic() + _THREAD_END_SECONDS
    while _has_autograd_thread() and time.monotonic() < deadline:
        time.sleep(0.001)


def _has_autograd_thread() -> bool:
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith("pt_autograd"):
                return True
    return False


def _may_have_run_backward() -> bool:
    """False only if it is certain: this is the only thread, and it has recorded nothing for autograd."""
    import torch

    return torch._C._autograd._get_sequence_nr() > 0 or threading.active_count() > 1


def _backward_works_in_a_fork(register: Callable[[], None]) -> bool:
    """Try the device in a copy of this process: the engine does not tell whether it has started.

    Trying it here would leave a half-loaded device behind where it fails, and would start the device's autograd
    thread where it works, after which no child process can run a backward.
    """
    import torch

    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _BACKWARD_FAILED
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_FORK_SECONDS)
        register()
        with contextlib.suppress(RuntimeError):
            torch.ones((), device="mps", requires_grad=True).backward()  # type: ignore[no-untyped-call]
            os._exit(0)
        os._exit(_BACKWARD_FAILED)
    finally:
        os._exit(0)
