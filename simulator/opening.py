"""Opens the mps device of a process: the real one on a Mac, the simulated one elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import MpsmithError

if TYPE_CHECKING:
    from .device.coverage_profile import CoverageProfile
    from .fallback_recorders import FallbackRecorder

OLDEST_TORCH = (2, 7)
COMPRESSED_LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")

# What the simulated device cannot do although a Mac can, or may: error text -> reason.
SIMULATOR_LIMITS = {
    "new_compressed_tensor": "the simulated device has no sparse compressed tensors",
    "Values and compressed tensor instance": "the simulated device has no sparse compressed tensors",
    "DispatchStub.cpp": "this torch was built without the mps branch of the operator's kernel",
    "Expected storage != nullptr": "the simulated device has no copy-on-write storages",
}

# Finds the coverage of the simulated device by its name; None names that of the installed torch.
FindProfile = Callable[[str | None], "CoverageProfile"]


class DeviceKind(str, Enum):
    """Which mps device to open: the real one where there is one, unless the simulated one is requested."""

    AUTO = "auto"
    MPS = "mps"
    SIMULATED = "simulated"


@dataclass(frozen=True)
class MpsDevice:
    """An mps device that this process can use.

    Attributes:
        simulated: whether it is the simulated device. Its results are not evidence about a Mac.
        profile: the torch release whose coverage the simulated device has; None on a real device.
        recorder: attributes fallbacks to operators.
    """

    simulated: bool
    profile: str | None
    recorder: FallbackRecorder

    def cannot_run(self, inputs: Iterable[Any]) -> str:
        """The reason why this device cannot run a case with these inputs; "" if it can."""
        if self.simulated:
            for value in inputs:
                layout = str(getattr(value, "layout", "")).removeprefix("torch.")
                if layout in COMPRESSED_LAYOUTS:
                    return f"the simulated device has no {layout} tensors"
        return ""

    def simulator_limit(self, message: str) -> str:
        """The limit of the simulator that caused this error message; "" when the error may come from mps."""
        if self.simulated:
            return next((reason for text, reason in SIMULATOR_LIMITS.items() if text in message), "")
        return ""


def open_device(kind: DeviceKind, find_profile: FindProfile, profile_name: str | None = None) -> MpsDevice:
    """Make `device="mps"` usable in this process.

    Raises MpsmithError if torch is absent or too old, if a real device is required and there is none, or if the
    simulated device cannot be built.
    """
    torch = import_torch()
    real = torch.backends.mps.is_available()
    if kind is DeviceKind.MPS and not real:
        raise MpsmithError(f"no mps device: {_why_no_mps(torch)}")
    if real and kind is not DeviceKind.SIMULATED:
        if profile_name is not None:
            raise MpsmithError("--profile is for the simulated device; a real mps device has its own coverage")
        from .fallback_recorders import WarningRecorder

        return MpsDevice(False, None, WarningRecorder())
    from .device import loading

    profile = find_profile(profile_name)
    loading.load(profile)
    return _simulated_device(profile.release)


@cache
def device_of_this_process(find_profile: FindProfile) -> MpsDevice:
    """The mps device of this machine: the real one, or the simulated one with the coverage of the installed torch.

    A simulated device that is already loaded keeps its coverage. Raises MpsmithError if no device can be opened.
    """
    from .device import loading

    loaded = loading.loaded_profile()
    return open_device(DeviceKind.AUTO, find_profile) if loaded is None else _simulated_device(loaded.release)


def _simulated_device(release: str) -> MpsDevice:
    """The loaded simulated device; Metal source and extensions of Objective-C++ now compile as on a Mac."""
    from . import metal
    from .air import metallib
    from .fallback_recorders import CounterRecorder
    from .objc import torch_hook

    metal.install()
    metallib.install()
    torch_hook.install()
    return MpsDevice(True, release, CounterRecorder())


def import_torch() -> Any:
    """The torch module. Raises MpsmithError if it is absent or older than this project supports."""
    try:
        import torch
    except ImportError as error:
        raise MpsmithError(f"torch cannot be imported: {error} (pip install torch)") from error
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise MpsmithError(f"torch {torch.__version__} is too old: mpsmith needs {oldest} or newer")
    return torch


def require_simulation(command: str) -> None:
    """Raise MpsmithError on a Mac, for a command that needs the simulated device."""
    from .device import loading

    if import_torch().backends.mps.is_built() and not loading.is_loaded():
        raise MpsmithError(
            f"{command} needs the simulated mps device, which runs on Linux only; this torch is built with mps, for a "
            "Mac, so nothing was run"
        )


def _why_no_mps(torch: Any) -> str:
    if not torch.backends.mps.is_built():
        return f"torch {torch.__version__} was built without MPS (use --device simulated)"
    return "macOS is older than 14 or there is no Apple GPU, and on a Mac mps cannot be simulated"
