"""The auditor audited: faults are put into the simulated device, and it has to find every one of them.

Each round arms one fault of every class, each in another operator, and audits those operators in worker processes as
any audit does. A last round without faults shows the false alarms.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..findings.audited_surface import audited_surface
from ..findings.explanations import Explainer, explainer_of
from ..findings.store import Store, StoredCase
from ..running.runner import run_audit
from ..selection import DeviceKind, Samples, Settings
from ..verdicts import CaseVerdict
from .plan import CONTROLS, DTYPES, FAULT_CLASSES, SOURCES, FaultClass, PlantedFault, operators, rounds

# Seconds of processor time: right operators take milliseconds. One that hangs asleep is waited for five times as long.
TIMEOUT = 4.0
# What is no evidence against the device.
SILENT = (CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED)


@dataclass(frozen=True)
class FaultFinding:
    """What the audit said of one fault.

    Attributes:
        planted: the fault.
        cases: how many cases of the operator say what is wrong with it.
        others: how many say that something else is wrong: the consequences of a fault, or a mistake of the auditor's.
        shown_by: the first case that says what is wrong, or else the first that says anything, in one line.
    """

    planted: PlantedFault
    cases: int
    others: int
    shown_by: str

    @property
    def result(self) -> str:
        """ "found", "misattributed" (only ever called something else) or "missed"."""
        if self.cases:
            return "found"
        return "misattributed" if self.others else "missed"


@dataclass(frozen=True)
class SelfTest:
    """What the audits with faults found, and what one without faults had to say.

    Attributes:
        findings: one for each fault.
        accusations: cases of operators without a fault that did not pass while other operators had one, a line each.
        false_alarms: cases that did not pass in the run without faults and that no rule explains, a line each.
        explained: how many cases did not pass there and are explained by a rule.
        executed: cases with faults in the device, of all rounds.
        executed_clean: cases of the run without faults.
        seconds: wall time of everything.
    """

    findings: list[FaultFinding]
    accusations: list[str]
    false_alarms: list[str]
    explained: int
    executed: int
    executed_clean: int
    seconds: float

    def counts(self) -> dict[str, Counter[str]]:
        """For each class of faults, how many were found, missed and misattributed."""
        counted: dict[str, Counter[str]] = {}
        for finding in self.findings:
            counted.setdefault(finding.planted.fault_class.name, Counter())[finding.result] += 1
        return counted

    @property
    def passed(self) -> bool:
        """Every fault found, nothing held against anything else, and cases were executed."""
        all_found = all(finding.result == "found" for finding in self.findings)
        return all_found and not self.accusations and not self.false_alarms and self.executed > 0 < self.executed_clean


@dataclass
class _Round:
    findings: list[FaultFinding] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    explained: int = 0
    executed: int = 0


def self_test(
    *, workers: int, say: Callable[[str], None], classes: Sequence[FaultClass] = FAULT_CLASSES, timeout: float = TIMEOUT
) -> SelfTest:
    """Run the audits and compare what they say with what was done to the device.

    Args:
        workers: how many processes execute cases.
        say: receives a line for people now and then.
        classes: the faults.
        timeout: seconds of processor time that one case may take.

    Raises:
        MpsmithError: the simulated device cannot be had here (a Mac has a real one), or no worker can start.
    """
    start = time.monotonic()
    planned = rounds(classes)
    every = operators(planted for faults in planned for planted in faults)
    faulty = [_round(faults, (*operators(faults), *CONTROLS), workers, timeout, say) for faults in planned]
    clean = _round([], (*every, *CONTROLS), workers, timeout, say)
    return SelfTest(
        findings=[finding for each in faulty for finding in each.findings],
        accusations=[line for each in faulty for line in each.strays],
        false_alarms=clean.strays,
        explained=clean.explained,
        executed=sum(each.executed for each in faulty),
        executed_clean=clean.executed,
        seconds=time.monotonic() - start,
    )


def _round(
    faults: Sequence[PlantedFault], audited: Sequence[str], workers: int, timeout: float, say: Callable[[str], None]
) -> _Round:
    settings = Settings(
        ops=tuple(audited),
        dtypes=DTYPES,
        sources=SOURCES,
        samples=Samples.DEFAULT,
        device=DeviceKind.SIMULATED,
        workers=workers,
        timeout=timeout,
        faults=tuple(str(planted.fault) for planted in faults),
    )
    say(f"self-test: {len(faults)} faults in {len(audited)} operators" if faults else "self-test: no faults")
    with tempfile.TemporaryDirectory(prefix="mpsmith-self-test-") as folder:
        path = Path(folder) / "store.sqlite"
        run = run_audit(settings, path, resume=False, say=lambda text: None)
        explainer = explainer_of(run, audited_surface(run))
        with Store.open(path) as store:
            return judged(faults, list(store.cases(run.id)), explainer)


def judged(faults: Sequence[PlantedFault], cases: Sequence[StoredCase], explainer: Explainer) -> _Round:
    """What the cases of one audit say of the faults that were armed in it.

    Whatever else did not pass, skipped cases and failed references included, is a stray unless a rule explains it.
    """
    by_operator: dict[str, list[StoredCase]] = {}
    for case in cases:
        by_operator.setdefault(case.group.operator, []).append(case)
    judgement = _Round(executed=sum(case.outcome.verdict.executed for case in cases))
    judgement.findings = [_finding(planted, by_operator.pop(planted.operator, [])) for planted in faults]
    others = [case for rest in by_operator.values() for case in rest]
    non_passes = [case for case in others if case.outcome.verdict is not CaseVerdict.PASSED]
    judgement.strays = [_line(case) for case in non_passes if explainer.rule_for(case) is None]
    judgement.explained = len(non_passes) - len(judgement.strays)
    return judgement


def _finding(planted: PlantedFault, cases: Sequence[StoredCase]) -> FaultFinding:
    speaking = [case for case in cases if not _is_silent(case)]
    right = [case for case in speaking if planted.fault_class.is_shown_by(case.outcome, planted.fault)]
    shown_by = next(map(_line, [*right, *speaking]), "")
    return FaultFinding(planted, len(right), len(speaking) - len(right), shown_by)


def _is_silent(case: StoredCase) -> bool:
    return case.outcome.verdict in SILENT


def _line(case: StoredCase) -> str:
    outcome = case.outcome
    said = outcome.message or ", ".join(outcome.fallbacks)
    return f"{case.label} ({case.inputs}): {outcome.verdict.value}, {said}"
