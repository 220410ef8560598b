"""An audit on a cluster from its start to its end: who takes part, one run for each kind of device, one store."""

from __future__ import annotations

import gc
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic

from ...model.selection import Settings
from ...store.records import Run
from ...store.store import Store
from ..progress import AuditProgress
from ..runner import as_recorded, audit_into, exclusive, resumable
from . import devices
from .connection import Connection
from .errors import ClusterError
from .execution import PATIENCE, ClusterExecution
from .fleet import Fleet
from .messages import AuditOptions, Introduction

# How long the workers that are there may take to say what they are: each loads torch for that.
SECONDS_TO_INTRODUCE = 300.0
# The same, where pip installs a release of torch first.
SECONDS_TO_INSTALL = 1800.0
# Objects that are made until Python looks for cycles among them.
OBJECTS_UNTIL_COLLECTION = 50_000

Device = Mapping[str, str]


def audit_on_cluster(
    settings: Settings,
    path: Path,
    address: str,
    *,
    resume: bool,
    per_device: bool,
    say: Callable[[str], None],
    release: str | None = None,
    patience: float = PATIENCE,
) -> list[Run]:
    """Run an audit on the workers of the Dask scheduler at `address`, into the store at `path`.

    Args:
        settings: of the audit; its number of workers means nothing here.
        path: the store.
        address: as Dask writes it: tcp://host:8786, or tls:// with its configuration.
        resume: go on with what was stopped there, on a cluster or on this machine.
        per_device: give each kind of device among the workers its own run.
        say: told what goes on.
        release: of torch, in an environment of its own on each worker; None for the torch that each has.
        patience: seconds after which what does not come back is given to another worker too.

    Raises:
        StoreError: the store cannot be used, or another audit is writing to it.
        MpsmithError: as `run_audit` does, and where the cluster cannot be used, or is there no more.
        KeyboardInterrupt: stopped by the user; what had finished is in the store.
    """
    with ExitStack() as ends:
        ends.enter_context(rare_collection())
        ends.enter_context(exclusive(path))
        store = ends.enter_context(Store.open_or_create(path))
        connection = ends.enter_context(Connection(address))
        unfinished = resumable(store) if resume else None
        if unfinished is not None:
            settings = as_recorded(unfinished, settings)
        options = AuditOptions.of(settings, uuid.uuid4().hex, release)
        # Whatever happens, no process of the audit stays behind on a machine that can be reached.
        ends.callback(connection.end_sessions, options.audit)
        seconds = SECONDS_TO_INTRODUCE if release is None else SECONDS_TO_INSTALL
        introduced = _introduced(connection, options, say, seconds)
        kinds = _kinds(introduced)
        if per_device:
            return _audit_each(kinds, settings, store, unfinished, connection, options, introduced, say, patience)
        device = devices.device_of(unfinished.environment) if unfinished else _commonest(kinds)
        fleet = Fleet(connection, options, device, say, introduced=introduced)
        execution = ClusterExecution(store, fleet, Event(), patience)
        return [audit_into(store, settings, unfinished, say, lambda *_: nullcontext(execution))]


@contextmanager
def rare_collection() -> Iterator[None]:
    """Let Python look for cycles less often: rows and groups have none, and it would go over all of them each time."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _introduced(
    connection: Connection, options: AuditOptions, say: Callable[[str], None], seconds: float
) -> dict[str, Introduction]:
    """What the workers that are there say that they are. Raises ClusterError where there is none."""
    fleet = Fleet(connection, options, None, say)
    begun = monotonic()
    fleet.look()
    if not fleet.silent:
        raise ClusterError(
            f"the Dask scheduler at {connection.address} has no worker (start one: dask worker {connection.address})"
        )
    while fleet.silent and monotonic() - begun < seconds:
        for _ in fleet.returned(0.5):
            pass
        fleet.look()
    for worker in fleet.silent:
        say(f"worker {worker} does not say what it is; it takes part when it does")
    found = {worker: it for worker, it in fleet.introduced.items() if worker in fleet.members}
    if not found:
        raise ClusterError(f"no worker of {connection.address} can take part (see above)")
    return found


def _kinds(introduced: Mapping[str, Introduction]) -> list[tuple[Device, int]]:
    """The kinds of device among workers, and how many workers are of each: the commonest first."""
    found = Counter(_key(devices.device_of(introduction.environment)) for introduction in introduced.values())
    return [(dict(device), workers) for device, workers in sorted(found.items(), key=lambda kind: (-kind[1], kind[0]))]


def _commonest(kinds: Sequence[tuple[Device, int]]) -> Device:
    """The kind of device that most workers have. Raises ClusterError where two are as common."""
    device, workers = kinds[0]
    if len(kinds) > 1 and kinds[1][1] == workers:
        differs = devices.difference(kinds[1][0], device)
        raise ClusterError(
            f"the workers differ: some have {differs} (--per-device gives each kind of device its own run)"
        )
    return device


def _audit_each(
    kinds: Sequence[tuple[Device, int]],
    settings: Settings,
    store: Store,
    unfinished: Run | None,
    connection: Connection,
    options: AuditOptions,
    introduced: Mapping[str, Introduction],
    say: Callable[[str], None],
    patience: float,
) -> list[Run]:
    """A run for each kind of device, at the same time; with `unfinished`, those of the audit that it belongs to."""
    several = partial(AuditProgress, alone=False)
    before = _newest_by_device(store, unfinished.settings) if unfinished else {}
    stopped = Event()

    def audited(device: Device) -> Run:
        earlier = before.get(_key(device))
        if earlier is not None and earlier.finished is not None:
            say(f"run {earlier.id} ({devices.in_words(device)}) is finished")
            return earlier

        def say_of(text: str) -> None:
            say(f"{devices.in_words(device)}: {text}")

        fleet = Fleet(connection, options, device, say_of, introduced=introduced, others_take_part=True)
        with Store.open_to_add(store.path) as own:
            execution = ClusterExecution(own, fleet, stopped, patience)
            return audit_into(own, settings, earlier, say_of, lambda *_: nullcontext(execution), several)

    with ThreadPoolExecutor(len(kinds)) as threads:
        runs = [threads.submit(audited, device) for device, _ in kinds]
        try:
            wait(runs)
        except BaseException:
            stopped.set()
            raise
    return [run.result() for run in runs]


def _newest_by_device(store: Store, settings: Mapping[str, object]) -> dict[tuple[tuple[str, str], ...], Run]:
    """Of each kind of device, the newest run with these settings."""
    return {_key(devices.device_of(run.environment)): run for run in store.runs() if run.settings == settings}


def _key(device: Device) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(device.items()))
