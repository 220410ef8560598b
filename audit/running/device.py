"""The mps device that is audited: the real one on a Mac, the simulated one elsewhere."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ... import __version__
from ...errors import MpsmithError
from ..judging.judge import Recorder
from ..model.selection import DeviceKind
from ..model.verdicts import CaseVerdict, Outcome

OLDEST_TORCH = (2, 7)
COMPRESSED_LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


@dataclass(frozen=True)
class AuditedDevice:
    """An mps device ready for use in this process.

    Attributes:
        simulated: whether it is the simulated device. Then no result is evidence about a Mac.
        profile: the torch release whose coverage the simulated device has, or None on a real one.
        recorder: attributes fallbacks to operators.
    """

    simulated: bool
    profile: str | None
    recorder: Recorder

    def cannot_run(self, inputs: Iterable[Any]) -> str:
        """Why this device cannot be asked about a case with these inputs, or "" when it can."""
        if self.simulated:
            for value in inputs:
                layout = str(getattr(value, "layout", "")).removeprefix("torch.")
                if layout in COMPRESSED_LAYOUTS:
                    return f"the simulated device has no {layout} tensors"
        return ""

    def beyond_simulation(self, outcome: Outcome) -> str:
        """Why an outcome tells of the simulator and not of mps, or "" when it may tell of mps."""
        if self.simulated and outcome.verdict is CaseVerdict.WRONG:
            return next((why for text, why in BEYOND_SIMULATION.items() if text in outcome.message), "")
        return ""


# What the simulated device cannot do although a Mac can, or may: by its error text, the reason of the skip.
BEYOND_SIMULATION = {
    "new_compressed_tensor": "the simulated device has no sparse compressed tensors",
    "Values and compressed tensor instance": "the simulated device has no sparse compressed tensors",
    "DispatchStub.cpp": "this torch was built without the mps branch of the operator's kernel",
    "Expected storage != nullptr": "the simulated device has no copy-on-write storages",
}


def open_device(kind: DeviceKind, profile_name: str | None) -> AuditedDevice:
    """Make `device="mps"` usable in this process and say which device it is.

    Raises MpsmithError where torch is absent or too old, where a real device is wanted and there is none, or where
    the simulated one cannot be built.
    """
    torch = import_torch()
    real = torch.backends.mps.is_available()
    if kind is DeviceKind.MPS and not real:
        raise MpsmithError(f"no mps device: {_why_no_mps(torch)} (use --device simulated)")
    if real and kind is not DeviceKind.SIMULATED:
        if profile_name is not None:
            raise MpsmithError("--profile is for the simulated device; a real mps device has its own coverage")
        from ..judging.fallbacks import WarningRecorder

        return AuditedDevice(False, None, WarningRecorder())
    from ...simulator import extensions, metal
    from ...simulator.device import loading as simulated_device
    from ..judging.fallbacks import CounterRecorder
    from ..releases.surface.profiles import profile

    simulated_profile = profile(profile_name)
    simulated_device.load(simulated_profile)
    metal.install()  # kernels that a package brings compile there as they do on a Mac
    extensions.install()  # and so do its extensions of Objective-C++
    return AuditedDevice(True, simulated_profile.release, CounterRecorder())


@cache
def device_of_this_process() -> AuditedDevice:
    """The mps device that is there: the real one, or the simulated one with the coverage of the installed torch.

    A simulated device that is loaded already stays, whatever its coverage.
    Raises MpsmithError where neither can be had.
    """
    from ...simulator import extensions, metal
    from ...simulator.device import loading

    loaded = loading.loaded_profile()
    if loaded is None:
        return open_device(DeviceKind.AUTO, None)
    from ..judging.fallbacks import CounterRecorder

    metal.install()
    extensions.install()
    return AuditedDevice(True, loaded.release, CounterRecorder())


def import_torch() -> Any:
    """The torch module. Raises MpsmithError where it is absent or older than this project supports."""
    try:
        import torch
    except ImportError as error:
        raise MpsmithError(f"torch cannot be imported: {error} (pip install torch)") from error
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise MpsmithError(f"torch {torch.__version__} is too old: mpsmith needs {oldest} or newer")
    return torch


def environment(device: AuditedDevice) -> dict[str, Any]:
    """What the results depend on: versions, machine, device and every PYTORCH_MPS_* variable."""
    import torch

    return {
        "mpsmith": __version__,
        "torch": str(torch.__version__),  # a string of its own class would bring torch to whoever reads the answer
        "python": platform.python_version(),
        "os": platform.platform(),
        "machine": platform.machine(),
        "chip": chip(),
        "cpu": cpu_kernels(),
        "simulated": device.simulated,
        "profile": device.profile,
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith("PYTORCH_MPS_")},
    }


def cpu_kernels() -> str:
    """Which of the CPU's kernels torch and oneDNN choose on this processor: the references come from them."""
    import torch

    half = [f"oneDNN in {dtype}" for dtype, ask in _ONEDNN.items() if _answer(ask)]
    return ", ".join([torch.backends.cpu.get_cpu_capability(), *half])


# The dtypes of half precision that oneDNN may compute in, and the operator that says whether it does here.
_ONEDNN = {"bfloat16": "_is_mkldnn_bf16_supported", "float16": "_is_mkldnn_fp16_supported"}


def _answer(name: str) -> bool:
    """What an operator of torch.ops.mkldnn without arguments says; False where this build has no oneDNN."""
    import torch

    try:
        return bool(getattr(torch.ops.mkldnn, name)())
    except (AttributeError, RuntimeError):
        return False


def chip() -> str:
    """The processor's name as the system gives it, or its architecture where it gives none."""
    if platform.system() == "Darwin":
        answer = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() or platform.machine()
    return platform.processor() or platform.machine()


def _why_no_mps(torch: Any) -> str:
    if not torch.backends.mps.is_built():
        return f"torch {torch.__version__} was built without MPS"
    return "macOS is too old or the machine has no Apple GPU"
