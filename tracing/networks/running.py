"""Runs networks in processes of their own, with limits, and goes on where it was stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ...audit.running.isolated import scratch_folder
from ...audit.running.worker_exit import exit_of
from ...audit.running.worker_processes import worker_processes
from ...simulator.opening import DeviceKind
from . import process
from .answers import Answers
from .catalog import Network
from .observation import Mode, Observation, Outcome


@dataclass(frozen=True)
class Asked:
    """What is to be run, where, and within which limits; see `process.Options`."""

    networks: Sequence[Network]
    modes: Sequence[Mode]
    device: DeviceKind = DeviceKind.AUTO
    profile: str | None = None
    workers: int = 2
    timeout: float = 300.0
    memory: int = 8 << 30
    fresh: bool = False


def observations(
    asked: Asked,
    *,
    folder: Path | None = None,
    told: Callable[[Observation, int], None] = lambda observation, left: None,
) -> list[Observation]:
    """What becomes of each network in each mode, in this order; what is known from an earlier run is not run again.

    `folder`: where that is kept, by default in the cache. `told`: gets each observation of this run as soon as it is
    there, and how many are to come. Networks whose library was not installed are tried again.
    Raises MpsmithError where there is no such device or builder.
    """
    answers = Answers(asked.device.value, asked.profile, folder)
    if asked.fresh:
        answers.forget()
    wanted = [(network, mode) for network in asked.networks for mode in asked.modes]
    recorded = {(network.name, mode): answers.known(network, mode) for network, mode in wanted}
    # What was not installed then may be installed now.
    found = {run: known for run, known in recorded.items() if known and known.outcome is not Outcome.not_installed}
    open_ones = [(network, mode) for network, mode in wanted if (network.name, mode) not in found]
    for network, observation in _observed(asked, open_ones):
        answers.add(network, observation)
        found[network.name, observation.mode] = observation
        told(observation, len(wanted) - len(found))
    return [found[network.name, mode] for network, mode in wanted]


def _observed(asked: Asked, tasks: Sequence[tuple[Network, Mode]]) -> Iterator[tuple[Network, Observation]]:
    """Each task's observation as soon as it is there."""
    if not tasks:
        return
    with scratch_folder() as scratch, _pool(asked, scratch, len(tasks)) as pool:
        running: dict[Future[dict[str, Any]], tuple[Network, Mode]] = {
            pool.schedule(process.run, args=task): task for task in tasks
        }
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                network, mode = running.pop(future)
                try:
                    observation = Observation.from_json(future.result())
                except ProcessExpired as expired:
                    death = exit_of(expired, scratch)
                    outcome = Outcome.timeout if death.timed_out else Outcome.died
                    reason = f"more than {asked.timeout:g} s of processor time" if death.timed_out else str(death)
                    observation = Observation(network.name, mode, outcome, reason)
                yield network, observation


def _pool(asked: Asked, scratch: Path, tasks: int) -> AbstractContextManager[ProcessPool]:
    options = process.Options(asked.device, asked.profile, asked.timeout, asked.memory, scratch, os.getpid())
    return worker_processes(min(asked.workers, tasks), process.start, options)
