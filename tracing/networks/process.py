"""A worker process that runs networks one after the other, so that a crash or a hang fails one network.

Nothing here imports torch before `start` has set the environment variables that libtorch reads once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audit.model import time_limit
from ...audit.running.worker_exit import at_risk, capture_output
from ...audit.running.worker_limits import end_with_parent, limit_memory
from ...errors import MpsmithError
from ...simulator.opening import DeviceKind
from .catalog import Network
from .observation import Mode

if TYPE_CHECKING:
    from ..process import TracedDevice


@dataclass(frozen=True)
class Options:
    """Options of a worker process.

    Attributes:
        device: the mps device; `profile` the coverage of the simulated one.
        timeout: seconds of processor time that one network in one mode may take, `memory` the bytes of the process.
        scratch: a folder for the output of a crash.
        parent: the process that waits for it.
    """

    device: DeviceKind
    profile: str | None
    timeout: float
    memory: int
    scratch: Path
    parent: int


_PACKAGE = Path(__file__).resolve().parents[2]

_options: Options | None = None
_opened: TracedDevice | None = None
_failure: MpsmithError | None = None


def start(options: Options) -> None:
    """Prepare this process. An error is kept for the first network, because a pool restarts failing processes."""
    global _options, _opened, _failure
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    time_limit.prepare()
    os.environ |= {"PYTORCH_ENABLE_MPS_FALLBACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    os.environ |= {"DIFFUSERS_VERBOSITY": "error", "MPSMITH_KERNELS": "off"}
    warnings.simplefilter("ignore")
    threading.Thread(target=end_with_parent, args=(options.parent,), daemon=True).start()
    capture_output(options.scratch)
    # In a clone, `import kernels` in transformers would find this package's folder instead of Hugging Face's package.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _PACKAGE]
    _options = options
    try:
        import torch

        from ..process import TracedDevice

        torch.set_num_threads(1)
        _opened = TracedDevice.of(options.device, options.profile)
    except MpsmithError as error:
        _failure = error
    limit_memory(options.memory)


def run(network: Network, mode: Mode) -> dict[str, Any]:
    """An observation as JSON data, which the parent can read without the user's modules."""
    if _failure is not None:
        raise _failure
    assert _options is not None
    assert _opened is not None
    from .execution import observe

    with at_risk(_options.timeout):
        return observe(network, mode, _opened).to_json()
