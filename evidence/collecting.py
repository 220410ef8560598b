"""Collects evidence on this machine: the audit, then the kernels, then one file. What was stopped goes on.

A folder keeps the results store and the rows of finished kernels until the file is written, and afterwards; a new
collection in it takes what still stands. Nothing is written elsewhere but the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from .._version import __version__
from ..audit.findings.store import Run, Store
from ..audit.running.runner import run_audit
from ..audit.selection import Settings
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
    known = identity or PrivateNames.of_this_machine()
    store = collection.folder / STORE
    _make(collection.folder)
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


def _audited(settings: Settings, store: Path, say: Callable[[str], None]) -> None:
    """Bring the store to a finished audit with these settings: nothing to do, to go on, or to begin."""
    newest = _newest_run(store)
    same = newest is not None and newest.settings == settings.recorded()
    if newest is not None and same and newest.finished is not None:
        say(f"the audit is in {store} already")
        return
    run_audit(settings, store, resume=same, say=say)


def _newest_run(path: Path) -> Run | None:
    if not path.exists():
        return None
    with Store.open(path) as store:
        return store.newest_run()


def _forget_other_device(finished: Path, run: Run) -> None:
    """Rows of kernels that another torch ran with are no part of this evidence."""
    release = finished.with_suffix(".torch")
    torch = str(run.environment["torch"])
    if finished.exists() and (not release.exists() or release.read_text(encoding="utf-8") != torch):
        finished.unlink()
    release.write_text(torch, encoding="utf-8")
