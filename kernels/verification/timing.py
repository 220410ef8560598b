"""Times a call with our kernel, without it, and on the CPU."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import MpsmithError
from ..runtime import catalog, dispatcher
from ..runtime.registration import registered, use
from .computing import require_computing
from .workload import Workload

_ROUNDS = 7
_ROUND_SECONDS = 0.05


@dataclass(frozen=True)
class Timing:
    """Median times of one call in milliseconds.

    Attributes:
        operator: the overload that was timed.
        elements: of the largest tensor, approximately.
        kernel: with our kernel; None if the running torch has a kernel, which ours does not replace.
        without: without our kernel: torch's own kernel or the CPU fallback, see `without_is`; None if that fails.
        without_is: "native" or "fallback", or why there is no time.
        cpu: the same call with tensors on the CPU.
    """

    operator: str
    elements: int
    kernel: float | None
    without: float | None
    without_is: str
    cpu: float


def measure(family: str, elements: int) -> Timing:
    """Time the workload of a family. To time an operator that torch lacks without our kernel, enable fallbacks.

    Raises MpsmithError for a family without a workload, and StoppedDeviceError if the device has stopped computing.
    """
    work = workload_of(family)
    torch.manual_seed(0)
    arguments = work.arguments(elements)
    on_mps = [moved(argument, "mps") for argument in arguments]
    with use(*catalog.overloads(family)):
        answered = work.operator in registered()
        kernel = median_milliseconds(work.call, on_mps, torch.mps.synchronize) if answered else None
    with use():
        native = dispatcher.has_mps_kernel(work.operator)
        try:
            with warnings.catch_warnings():  # that it falls back is in the result
                warnings.simplefilter("ignore")
                without = median_milliseconds(work.call, on_mps, torch.mps.synchronize)
            without_is = "native" if native else "fallback"
        except NotImplementedError:
            without, without_is = None, "refused: PYTORCH_ENABLE_MPS_FALLBACK is off"
    require_computing(family)
    cpu = median_milliseconds(work.call, list(arguments), lambda: None)
    return Timing(work.operator, elements, kernel, without, without_is, cpu)


def workload_of(family: str) -> Workload:
    """The WORKLOAD of the family's `cases.py`. Raises MpsmithError for a family without one."""
    workload: Workload | None = getattr(catalog.part_of(family, "cases"), "WORKLOAD", None)
    if workload is None:
        raise MpsmithError(f"nothing to time for {family}: write its WORKLOAD in kernels/{family}/cases.py")
    return workload


def moved(argument: Any, device: str) -> Any:
    """Move the tensors in an argument of a workload, also those in lists, to the device."""
    if isinstance(argument, torch.Tensor):
        return argument.to(device)
    return [moved(item, device) for item in argument] if isinstance(argument, list) else argument


def median_milliseconds(call: Callable[..., Any], arguments: list[Any], wait: Callable[[], None]) -> float:
    """The median time of a call over several rounds, each long enough for the resolution of the clock."""
    call(*arguments)
    wait()
    start = time.perf_counter()
    call(*arguments)
    wait()
    calls = max(1, int(_ROUND_SECONDS / max(time.perf_counter() - start, 1e-6)))
    rounds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            call(*arguments)
        wait()
        rounds.append((time.perf_counter() - start) / calls * 1e3)
    return statistics.median(rounds)
