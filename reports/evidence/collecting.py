"""Collects evidence on this machine: the audit, then the kernels, then one file. What was stopped goes on.

A folder keeps the results store and the rows of finished kernels until the file is written, and afterwards; a new
collection in it takes what still stands. Nothing is written elsewhere but the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ... import __version__
from ...audit.model.selection import Settings
from ...audit.running.runner import run_audit
from ...audit.store.records import Run
from ...audit.store.store import Store
from ...registry.torch_release import public_version
from .audited import audit_part
from .errors import EvidenceError
from .kernel_runs import KernelTask, OpenDevice, run_kernels
from .machine import machine_facts
from .privacy import PrivateNames
from .schema import FORMAT, VERSION, EvidenceFile

STORE, KERNELS = "audit.sqlite", "kernels.jsonl"


@dataclass(frozen=True)
class Collection:
    """What is to be collected, and where the work is kept.

    Attributes:
        settings: of the audit.
        families: of kernels, by name; none where they are left out.
        folder: keeps what was done.
        open_device: makes mps usable for kernels, see `kernel_runs.OpenDevice`.
    """

    settings: Settings
    families: Sequence[str]
    folder: Path
    open_device: OpenDevice


def collect(
    collection: Collection,
    say: Callable[[str], None],
    advanced: Callable[[str], None] = lambda family: None,
    identity: PrivateNames | None = None,
) -> EvidenceFile:
    """Audit, verify and time on this machine's device, and return all of it.

    Args:
        collection: what, and where the work is kept.
        say: told what goes on.
        advanced: told each family of kernels that is done.
        identity: who is taken out of messages; the user and the host of this process by default.

    Raises:
        MpsmithError: there is no device, or the work cannot be stored.
        KeyboardInterrupt: stopped by the user; the same collection goes on there.
    """
    _make(collection.folder)
    with _alone(collection.folder):
        return _collected(collection, say, advanced, identity or PrivateNames.of_this_machine())


def _collected(
    collection: Collection, say: Callable[[str], None], advanced: Callable[[str], None], known: PrivateNames
) -> EvidenceFile:
    store = collection.folder / STORE
    _audited(collection.settings, store, say)
    with Store.open(store) as opened:
        run = opened.latest_run()
        audit = audit_part(opened, run, known)
    if not audit.executed:
        raise EvidenceError("no case was executed, so there is no evidence: ask for other operators (--ops)")
    _forget_other_device(collection.folder / KERNELS, run)
    tasks = [KernelTask(family, collection.open_device, run.simulated, known) for family in collection.families]
    kernels = run_kernels(tasks, collection.folder / KERNELS, advanced)
    return EvidenceFile(
        format=FORMAT,
        version=VERSION,
        mpsmith=__version__,
        collected=datetime.now(timezone.utc).replace(microsecond=0),
        simulated=run.simulated,
        machine=machine_facts(run.environment, known),
        audit=audit,
        kernels=kernels,
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvidenceError(f"{folder}: {error.strerror or error} (choose another folder with --work)") from error
    if not os.access(folder, os.W_OK):
        raise EvidenceError(f"{folder}: cannot be written (choose another folder with --work)")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder against a second collection, which would do the same work again. Raises EvidenceError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):  # others: a file system without locks
            os.close(descriptor)
            message = f"{folder}: another collection is at work in it (wait for its end, or choose another with --work)"
            raise EvidenceError(message) from error
    try:
        yield
    finally:
        os.close(descriptor)


def _audited(settings: Settings, store: Path, say: Callable[[str], None]) -> None:
    """Bring the store to a finished audit with these settings: nothing to do, to go on, or to begin."""
    newest = _newest_run(store)
    same = newest is not None and newest.settings == settings.recorded()
    if newest is not None and (changed := _changed_since(newest)):
        say(f"the audit in {store} is of another {changed}: a new one begins")
        same = False
    if newest is not None and same and newest.finished is not None:
        say(f"the audit is in {store} already")
        return
    run_audit(settings, store, resume=same, say=say)


def _changed_since(run: Run) -> str:
    """What is another one now than in a run that stands there; "" where it is still evidence of this machine."""
    try:
        torch = version("torch")
    except PackageNotFoundError:  # a source tree: the audit itself finds out
        torch = str(run.environment["torch"])
    now = {"mpsmith": __version__, "torch": public_version(torch), "os": platform.platform()}
    before = {**run.environment, "torch": public_version(str(run.environment["torch"]))}
    return ", ".join(name for name, value in now.items() if before.get(name, value) != value)


def _newest_run(path: Path) -> Run | None:
    if not path.exists():
        return None
    with Store.open(path) as store:
        return store.newest_run()


def _forget_other_device(finished: Path, run: Run) -> None:
    """Rows of kernels that ran with another torch or on another system are no part of this evidence."""
    noted = finished.with_suffix(".device")
    device = f"torch {run.environment['torch']}, {run.environment.get('os')}"
    if finished.exists() and (not noted.exists() or noted.read_text(encoding="utf-8") != device):
        finished.unlink()
    noted.write_text(device, encoding="utf-8")
