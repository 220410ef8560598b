"""Collects evidence on this machine: runs an audit, verifies the kernels, and makes one file of both.

A working folder keeps the results store. The audit of a stopped collection continues there.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ... import __version__
from ...audit.findings.audited_surface import audited_surface
from ...audit.findings.measurements import Verdicts, measurements_of
from ...audit.findings.summary import verdicts
from ...audit.model.selection import Settings
from ...audit.model.verdicts import CaseVerdict
from ...audit.running.runner import run_audit
from ...audit.store.records import Run
from ...audit.store.store import Store
from ...registry.torch_release import public_version
from .files import EvidenceError
from .kernel_runs import KernelTask, OpenDevice, run_kernels
from .machine import is_mac, is_virtual, machine_facts
from .preflight import require_working_device
from .privacy import PrivateNames, message_of
from .schema import LISTED, LONGEST_MESSAGE, STRICT, AuditPart, DtypeRow, EvidenceFile, FailingCases, OverloadRow

STORE = "audit.sqlite"


@dataclass(frozen=True)
class Collection:
    """The selection of what is collected.

    Attributes:
        settings: of the audit.
        families: kernel families by name; empty to skip the kernels.
        folder: the working folder.
        open_device: makes mps usable for kernels, see `kernel_runs.OpenDevice`.
    """

    settings: Settings
    families: Sequence[str]
    folder: Path
    open_device: OpenDevice


def collect(
    collection: Collection,
    say: Callable[[str], None],
    family_done: Callable[[str], None] = lambda family: None,
    private: PrivateNames | None = None,
) -> EvidenceFile:
    """Audit, verify and time on this machine's device.

    Args:
        collection: what to collect.
        say: receives lines of progress.
        family_done: receives the name of each finished kernel family.
        private: names to remove from messages; by default those of this user and this machine.

    Raises:
        PreflightError: the real device of this machine does not work.
        MpsmithError: there is no device, or the work cannot be stored.
        KeyboardInterrupt: the user stopped it; the same collection continues there.
    """
    private = private or PrivateNames.of_this_machine()
    if is_mac() and is_virtual():
        raise EvidenceError("this Mac is a virtual machine, whose GPU is not that of its chip: it gives no evidence")
    tried = require_working_device(collection.settings.device, say)
    store = collection.folder / STORE
    _run_audit(collection.settings, store, say)
    with Store.open(store) as opened:
        run = opened.latest_run()
        audit = audit_part(opened, run, private)
    if not audit.executed:
        raise EvidenceError("no case was executed, so there is no evidence: ask for other operators (--ops)")
    tasks = [KernelTask(family, collection.open_device, run.simulated, private) for family in collection.families]
    kernels = run_kernels(tasks, family_done)
    return EvidenceFile(
        format="mpsmith-evidence",
        version=1,
        mpsmith=__version__,
        collected=datetime.now(timezone.utc).replace(microsecond=0),
        simulated=run.simulated,
        machine=machine_facts(run.environment, private),
        preflight=tried.part(private) if tried else None,
        audit=audit,
        kernels=kernels,
    )


def audit_part(store: Store, run: Run, private: PrivateNames) -> AuditPart:
    """The verdicts, counts and failing cases of a run; `private` names are removed from its messages."""
    judged = verdicts(store, run, audited_surface(run))
    totals: Counter[CaseVerdict] = Counter()
    for cases in judged.totals.values():
        totals.update(cases)
    return AuditPart(
        simulated=run.simulated,
        samples=str(run.settings.get("samples", "default")),
        seed=int(run.settings.get("seed", 0)),
        ops=list(run.settings.get("ops", ())),
        dtypes=list(run.settings.get("dtypes", ())),
        sources=list(run.settings.get("sources", ())),
        complete=judged.run.complete,
        executed=judged.run.executed,
        cases={verdict: totals[verdict] for verdict in CaseVerdict if totals[verdict]},
        overloads=overload_rows(judged),
        failing=_failing(store, run, private),
    )


def overload_rows(summary: Verdicts) -> dict[str, OverloadRow]:
    """A row for each overload with evidence whose operator was measured, see `measurements_of`."""
    measured = {measurement.operator for measurement in measurements_of(summary)}
    return {
        overload.name: OverloadRow(
            dispatch=overload.dispatch,
            through=list(overload.inner_fallbacks),
            dtypes={
                dtype: DtypeRow(verdict=evidence.verdict, cases=dict(evidence.cases))
                for dtype, evidence in overload.dtypes.items()
            },
        )
        for overload in summary.overloads
        if overload.dtypes and overload.operator in measured
    }


def _failing(store: Store, run: Run, private: PrivateNames) -> dict[str, list[FailingCases]]:
    """The cases with verdicts of LISTED by group; those with the same verdict and message together."""
    positions: dict[tuple[str, CaseVerdict, str], list[int]] = {}
    redacted: dict[str, str] = {}
    for key, position, verdict, message in store.messages(run.id, LISTED):
        if message not in redacted:
            redacted[message] = message_of(message, private, LONGEST_MESSAGE)
        group = key.label + (STRICT if key.mode == "strict" else "")
        positions.setdefault((group, verdict, redacted[message]), []).append(position)
    failing: dict[str, list[FailingCases]] = {}
    for (group, verdict, message), at in positions.items():
        failing.setdefault(group, []).append(FailingCases(verdict=verdict, message=message, positions=at))
    return failing


def _run_audit(settings: Settings, store: Path, say: Callable[[str], None]) -> None:
    """Complete an audit with these settings in the store: reuse, resume or begin one."""
    newest = _newest_run(store)
    same = newest is not None and newest.settings == settings.recorded()
    if newest is not None and (changed := _changed_since(newest)):
        say(f"the audit in {store} is of another {changed}: a new one begins")
        same = False
    if newest is not None and same and newest.finished is not None:
        say(f"the audit is in {store} already")
        return
    run_audit(settings, store, resume=same, say=say)


def _newest_run(path: Path) -> Run | None:
    if not path.exists():
        return None
    with Store.open(path) as store:
        return store.newest_run()


def _changed_since(run: Run) -> str:
    """Which of torch, mpsmith and the system changed since the run; "" if none did."""
    try:
        torch = version("torch")
    except PackageNotFoundError:  # a source tree: the audit itself finds out
        torch = str(run.environment["torch"])
    now = {"mpsmith": __version__, "torch": public_version(torch), "os": platform.platform()}
    before = {**run.environment, "torch": public_version(str(run.environment["torch"]))}
    return ", ".join(name for name, value in now.items() if before.get(name, value) != value)
