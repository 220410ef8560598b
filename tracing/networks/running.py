"""Runs networks in worker processes with limits, and resumes after a stop."""

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
from .catalog import Network
from .observation import Mode, NetworkObservation, NetworkOutcome
from .observation_cache import ObservationCache


@dataclass(frozen=True)
class RunOptions:
    """The networks, modes, device and limits of a run; see `process.Options`."""

    networks: Sequence[Network]
    modes: Sequence[Mode]
    device: DeviceKind = DeviceKind.AUTO
    profile: str | None = None
    workers: int = 2
    timeout: float = 300.0
    memory: int = 8 << 30


def observations(
    options: RunOptions,
    *,
    folder: Path | None = None,
    before: Callable[[], object] = lambda: None,
    report: Callable[[NetworkObservation, int], None] = lambda observation, left: None,
) -> list[NetworkObservation]:
    """The observation of each network in each mode, in this order; cached ones are not run again.

    `folder`: for the cache. `before`: called if any network is to be run. `report`: receives each new observation and
    how many are left. Networks whose library was not installed are tried again.
    Raises MpsmithError if the device or a builder does not exist.
    """
    cache = ObservationCache(options.device.value, options.profile, folder)
    tasks = [(network, mode) for network in options.networks for mode in options.modes]
    cached = {(network.name, mode): cache.get(network, mode) for network, mode in tasks}
    done = {run: hit for run, hit in cached.items() if hit and hit.outcome is not NetworkOutcome.not_installed}
    missing = [(network, mode) for network, mode in tasks if (network.name, mode) not in done]
    if missing:
        before()
    for network, observation in _observed(options, missing):
        cache.add(network, observation)
        done[network.name, observation.mode] = observation
        report(observation, len(tasks) - len(done))
    return [done[network.name, mode] for network, mode in tasks]


def _observed(
    options: RunOptions, tasks: Sequence[tuple[Network, Mode]]
) -> Iterator[tuple[Network, NetworkObservation]]:
    """The observation of each task as soon as it is done."""
    if not tasks:
        return
    with scratch_folder() as scratch, _pool(options, scratch, len(tasks)) as pool:
        running: dict[Future[dict[str, Any]], tuple[Network, Mode]] = {
            pool.schedule(process.run, args=task): task for task in tasks
        }
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                network, mode = running.pop(future)
                try:
                    observation = NetworkObservation.from_json(future.result())
                except ProcessExpired as expired:
                    ended = exit_of(expired, scratch)
                    outcome = NetworkOutcome.timeout if ended.timed_out else NetworkOutcome.died
                    reason = f"more than {options.timeout:g} s of processor time" if ended.timed_out else str(ended)
                    observation = NetworkObservation(network.name, mode, outcome, reason)
                yield network, observation


def _pool(options: RunOptions, scratch: Path, tasks: int) -> AbstractContextManager[ProcessPool]:
    worker = process.Options(options.device, options.profile, options.timeout, options.memory, scratch, os.getpid())
    return worker_processes(min(options.workers, tasks), process.start, worker)
