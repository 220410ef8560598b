"""What the results of an audit depend on: versions, machine, device and environment variables."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import Any

from ... import __version__
from ...simulator.opening import MpsDevice

# The dtypes of half precision that oneDNN may compute in, and the operator that reports whether it does here.
_ONEDNN = {"bfloat16": "_is_mkldnn_bf16_supported", "float16": "_is_mkldnn_fp16_supported"}


def environment(device: MpsDevice) -> dict[str, Any]:
    """Versions, machine, device and every PYTORCH_MPS_* variable."""
    import torch

    return {
        "mpsmith": __version__,
        "torch": str(torch.__version__),  # a plain string: unpickling torch's own class would import torch
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
    """The CPU kernels that torch and oneDNN choose on this processor: they compute the references."""
    import torch

    half = [f"oneDNN in {dtype}" for dtype, query in _ONEDNN.items() if _onednn_supports(query)]
    return ", ".join([torch.backends.cpu.get_cpu_capability(), *half])


def _onednn_supports(query: str) -> bool:
    """The result of an operator of torch.ops.mkldnn without arguments; False if this build has no oneDNN."""
    import torch

    try:
        return bool(getattr(torch.ops.mkldnn, query)())
    except (AttributeError, RuntimeError):
        return False


def chip() -> str:
    """The processor's name as the system reports it, or its architecture if it reports none."""
    if platform.system() == "Darwin":
        answer = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() or platform.machine()
    return platform.processor() or platform.machine()
