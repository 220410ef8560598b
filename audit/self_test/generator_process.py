"""The process that generates faults: it makes calls with changed arguments, which may end it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import get_context

from pebble import ProcessExpired, ProcessPool

from ...errors import MpsmithError
from .planted import PlantedFault

# Seconds for one fault; the largest calls take one.
LONGEST = 120.0
# The number of attempts for a fault: a process may end, and a fault may repeat an earlier one.
ATTEMPTS = 3

_calls: object = None
_overloads: list[str] = []


def generated(
    count: int, seed: int, class_names: Sequence[str] | None, say: Callable[[str], None]
) -> list[PlantedFault]:
    """At most `count` different faults from a seed; a class may give none.

    Raises MpsmithError without the simulated device, or for an unknown class.
    """
    with ProcessPool(max_workers=1, initializer=_start, context=get_context("spawn")) as pool:
        pool.schedule(_check, args=(class_names,)).result()
        planted: dict[str, PlantedFault] = {}
        for number in range(count):
            for attempt in range(ATTEMPTS):
                try:
                    made = pool.schedule(_generate, args=(number, seed, class_names, attempt), timeout=LONGEST).result()
                except (ProcessExpired, TimeoutError):
                    continue
                if made is not None and str(made.fault) not in planted:
                    planted[str(made.fault)] = made
                    break
            if number % 100 == 99:
                say(f"self-test: {number + 1} of {count} faults generated")
        return list(planted.values())


def _start() -> None:
    global _calls
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # torch's warnings about the changed calls


def _check(class_names: Sequence[str] | None) -> None:
    """Load the device and check the names of the classes."""
    global _calls
    import torch

    from ...simulator.device import kernel_plan
    from ...simulator.opening import DeviceKind, open_device
    from ..releases.coverage.refusals import refuse_as_profile
    from ..releases.surface.profiles import coverage_profile
    from .classes import chosen
    from .demonstration import BaseCalls

    torch.set_num_threads(1)
    if not _overloads:
        device = open_device(DeviceKind.SIMULATED, coverage_profile)
        if not device.simulated or device.profile is None:
            raise MpsmithError("the self-test needs the simulated device")
        # As in audits: a call that the release refuses cannot show a fault.
        refuse_as_profile(device.profile)
        _overloads.extend(sorted(f"aten::{name}" for name in kernel_plan.plan(coverage_profile(None)).native))
        _calls = BaseCalls()
    chosen(class_names)


def _generate(number: int, seed: int, class_names: Sequence[str] | None, attempt: int) -> PlantedFault | None:
    from .classes import chosen
    from .demonstration import BaseCalls
    from .generation import generate

    _check(class_names)
    assert isinstance(_calls, BaseCalls)
    return generate(number, seed, _overloads, _calls, chosen(class_names), attempt)
