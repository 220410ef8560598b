"""Injects each fault into the code generator in a separate process, which a faulty kernel may end."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from pebble import ProcessExpired, ProcessPool

from ....errors import MpsmithError
from .faults import Found, GeneratorFault, find

# Seconds for one fault; the slowest takes a tenth of this on an idle machine.
LONGEST = 300.0
# The number of cases of a group to try.
MOST_CASES = 12


@dataclass(frozen=True)
class TriedFault:
    """A fault and the case that found it; None if no case did."""

    fault: GeneratorFault
    found: Found | None


def try_all(faults: Sequence[GeneratorFault], say: Callable[[str], None]) -> list[TriedFault]:
    """Try all faults. Raises MpsmithError without the simulated device, or if a fault's line does not occur."""
    tried = []
    with ProcessPool(max_workers=1, initializer=_start, context=get_context("spawn")) as pool:
        for number, fault in enumerate(faults, 1):
            found = _found(pool, fault)
            say(f"{number} of {len(faults)}: {fault.name}: {f'found by {found.case}' if found else 'NOT FOUND'}")
            tried.append(TriedFault(fault, found))
    return tried


def _found(pool: ProcessPool, fault: GeneratorFault) -> Found | None:
    try:
        found: Found | None = pool.schedule(_find, args=(fault,), timeout=LONGEST).result()
        return found
    except ProcessExpired as error:
        return Found(fault.shown_by[0], "crash", f"the process ended: {error}")
    except TimeoutError:
        return Found(fault.shown_by[0], "timeout", f"no result in {LONGEST:.0f} s")


def _start() -> None:
    warnings.simplefilter("ignore")
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"


def _find(fault: GeneratorFault) -> Found | None:
    import torch

    from ....simulator.opening import device_of_this_process
    from ...cases.sources import case_sources
    from ...compiled.scenarios import ScenarioSource
    from ...releases.surface.profiles import coverage_profile

    torch.set_num_threads(1)
    device = device_of_this_process(coverage_profile)
    if not device.simulated:
        raise MpsmithError("generator faults need the simulated device; this machine has a real one")
    sources = {**case_sources(()), ScenarioSource.name: ScenarioSource()}
    with tempfile.TemporaryDirectory() as folder:
        return find(fault, sources, device.recorder, Path(folder), MOST_CASES)
