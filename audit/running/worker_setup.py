"""Prepares a worker process: the device, its kernels and faults, the case sources and the store.

Nothing here may import torch before `start` has set the fallback variable: libtorch reads it once, when it loads.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import MpsmithError
from ..model import time_limit
from ..store.records import STRICT
from ..store.store import Store
from .compiled import compiled_sources, require_compiler
from .device_health import DeviceHealth
from .host_code import HostCode, load_host_code
from .outcome_cache import OutcomeCache, outcome_cache
from .pending_rows import PendingRows
from .worker_exit import capture_output
from .worker_limits import device_memory_of_a_worker, end_with_parent, limit_memory
from .worker_tasks import WorkerOptions

if TYPE_CHECKING:
    from ...simulator.opening import MpsDevice
    from ..model.case import CaseSource
    from ..shipped.kernels import AuditedKernels


@dataclass
class Worker:
    """The state of this worker process."""

    options: WorkerOptions
    sources: dict[str, CaseSource]
    device: MpsDevice
    store: Store
    shipped: AuditedKernels | None
    host_code: HostCode | None
    pending: PendingRows
    outcomes: OutcomeCache | None = None
    health: DeviceHealth | None = None
    frozen: set[str] = field(default_factory=set)

    @property
    def runs_host_code(self) -> bool:
        """Whether the audit runs PyTorch's own host code."""
        return self.host_code is not None or not self.device.simulated

    def require_device(self) -> None:
        """End this process if it has a real device that no longer computes."""
        if self.health is not None:
            self.health.require()


_worker: Worker | None = None
_failure: MpsmithError | None = None


def start(options: WorkerOptions) -> None:
    """Prepare this process: called once by the pool before any task.

    A pool restarts a worker whose initializer fails again and again, so a failure is kept and raised by the first task.
    """
    global _worker, _failure
    try:
        _worker = _prepare(options)
    except MpsmithError as error:
        _failure = error
    except Exception as error:
        _failure = MpsmithError(f"a worker cannot start: {type(error).__name__}: {error}")


def _prepare(options: WorkerOptions) -> Worker:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    time_limit.prepare()
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "0" if options.mode == STRICT else "1"
    warnings.simplefilter("ignore")
    threading.Thread(target=end_with_parent, args=(options.parent,), daemon=True).start()

    import torch

    from ...simulator.opening import open_device
    from ..cases.calls.cpu_kernels import register as register_references
    from ..cases.sources import case_sources
    from ..releases.coverage.refusals import refuse_as_profile
    from ..releases.surface.profiles import coverage_profile
    from .environment import environment
    from .processor_independence import choose_kernels_of_any_processor

    choose_kernels_of_any_processor()
    torch.set_num_threads(1)
    device = open_device(options.settings.device, coverage_profile, options.settings.profile)
    shipped = _interpose_shipped_kernels(options, device)
    register_references()
    folder, macos = options.settings.host_code, options.settings.macos
    host_code = load_host_code(folder, macos.value if macos else None, device) if folder else None
    _inject_faults(options.settings.faults, device)
    if device.profile is not None:
        refuse_as_profile(device.profile)
    sources = case_sources(options.settings.imports)
    if options.settings.compiled is not None:
        require_compiler(device)
        sources |= compiled_sources()
    store = Store.open_to_add(options.store)
    capture_output(options.scratch)
    limit_memory(options.settings.memory_limit)
    memory = device_memory_of_a_worker(options.settings.workers)
    health = DeviceHealth(options.scratch, memory) if not device.simulated else None
    outcomes = outcome_cache(options.settings, environment(device)) if options.settings.compiled is not None else None
    pending = PendingRows(store, health.require) if health else PendingRows(store)
    return Worker(options, sources, device, store, shipped, host_code, pending, outcomes, health)


def _interpose_shipped_kernels(options: WorkerOptions, device: MpsDevice) -> AuditedKernels | None:
    """Let the simulated device compute with the kernels that a release ships, if the user requests one."""
    release = options.settings.shipped
    if release is None:
        return None
    if not device.simulated:
        raise MpsmithError("--shipped is for the simulated device; a real one launches its own kernels")
    from ..releases.wheel.shipped import shipped_library
    from ..shipped.case_launches import put_under_device

    return put_under_device(shipped_library(release), release, options.scratch)


def _inject_faults(faults: tuple[str, ...], device: MpsDevice) -> None:
    """Inject the faults of a self-test into the simulated device."""
    if not faults:
        return
    if not device.simulated:
        raise MpsmithError("faults can be put into the simulated device only (use --device simulated)")
    from ...simulator.device.faults import Fault, inject

    for text in faults:
        inject(Fault.parse(text))


def current_worker() -> Worker:
    """The state of this process. Raises the error of `start` if that failed."""
    if _failure is not None:
        raise _failure
    if _worker is None:
        raise RuntimeError("the worker process was not started")
    return _worker
