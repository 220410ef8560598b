"""Loads the simulated mps device: `device="mps"` on a machine without one, with host memory and CPU kernels.

Load it once in a process, before the first backward. Results come from the CPU: mark them `simulated`.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from dataclasses import dataclass
from typing import Any

from ..errors import SimulatorError
from . import autograd_engine, kernel_plan, python_surface
from . import build as device_build
from .coverage_profile import CoverageProfile

FALLBACK_VARIABLE = "PYTORCH_ENABLE_MPS_FALLBACK"
OLDEST_TORCH = (2, 7)

_loading = threading.Lock()
_profile: CoverageProfile | None = None


@dataclass(frozen=True)
class OperatorCalls:
    """Counts of an operator's calls on the simulated device.

    Attributes:
        native: calls of a native kernel.
        fallback: calls that ran on the CPU through torch's CPU fallback.
        error: calls refused with NotImplementedError, without fallback.
    """

    native: int
    fallback: int
    error: int


def load(profile: CoverageProfile) -> None:
    """Load the simulated mps device for the rest of this process. Loading an equal profile again does nothing.

    Raises:
        SimulatorError: another profile is loaded; torch has a real mps device or is too old; a backward has run
            already; PYTORCH_ENABLE_MPS_FALLBACK is not a number; or the device cannot be built (see `device_build`).
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
    """The coverage profile of the loaded simulated device, or None."""
    return _profile


def set_fallback_enabled(enabled: bool) -> None:
    """Make operators without a kernel run on the CPU, or raise; by default the environment decides, as on a Mac."""
    _control().set_fallback_enabled(enabled)


def fill_fresh_memory(enabled: bool) -> None:
    """Fill new memory with NaN, -1 and true instead of zeros, which makes unwritten values visible.

    The default is True if `MPSMITH_METAL_MODE` is `checked`.
    """
    _control().fill_fresh_memory(enabled)


def counters() -> dict[str, OperatorCalls]:
    """The calls of every operator ("aten::add.Tensor") since the last reset, by name."""
    return dict(sorted(_table(_control().all_calls()).items()))


def reset_counters() -> None:
    """Reset all counts, and all pending results of the drains."""
    _control().reset_counters()


def drain_calls() -> dict[str, OperatorCalls]:
    """The calls since the last `drain_calls`, in order of first call; the cost depends only on these calls.

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
    """The control operators of the C++ library."""
    if _profile is None:
        raise SimulatorError("the simulated mps device is not loaded in this process; call load() first")
    import torch

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
        raise SimulatorError("this torch is built with mps, for a Mac; mps is simulated on Linux only")
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise SimulatorError(f"the simulated mps device needs torch {oldest} or newer, not {torch.__version__}")


def _activate(profile: CoverageProfile, fallback: bool) -> None:
    import torch

    from ..metal.modes import mode_from_environment

    device_build.load_library()
    kernels = kernel_plan.plan(profile)
    control = torch.ops.mpsmith_simulator

    def register() -> None:
        control.activate(kernels.native, kernels.sparse, kernels.always_fallback)

    if autograd_engine.has_started(register):
        if torch.version.cuda is not None:
            raise SimulatorError(
                f"torch {torch.__version__} is built for CUDA, and its autograd takes no mps device beside that; "
                "install the build for the CPU: --extra-index-url https://download.pytorch.org/whl/cpu"
            )
        raise SimulatorError(
            "a backward has run in this process already, and torch's autograd engine counts its devices only once; "
            "load the simulated mps device before the first backward"
        )
    register()
    control.set_fallback_enabled(fallback)
    control.fill_fresh_memory(mode_from_environment() == "checked")
    control.set_torch_commit(torch.version.git_version or "unknown")
    python_surface.install()
    atexit.register(autograd_engine.end_threads)
