"""Facts that the results of an audit depend on: versions, machine, device and environment variables."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import Any

from ... import __version__
from ...simulator.opening import MpsDevice


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
    """The kinds of CPU kernels that torch, MKL and oneDNN choose in this process; they compute the references."""
    import torch

    chosen = [torch.backends.cpu.get_cpu_capability()]
    if "MKL_CBWR" in os.environ:
        chosen.append(f"MKL {os.environ['MKL_CBWR']}")
    if torch._C._has_mkldnn and torch._C._get_mkldnn_enabled():
        chosen.append("oneDNN")
    return ", ".join(chosen)


def chip() -> str:
    """The processor's name as the system reports it, or its architecture if it reports none."""
    if platform.system() == "Darwin":
        answer = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() or platform.machine()
    return platform.processor() or platform.machine()
