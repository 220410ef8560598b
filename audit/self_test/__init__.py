"""The auditor audited: faults are put into the simulated device, and it has to find them.

The faults come by a seed (`generation`), each with a call that shows it. Those that do not meet are armed together
(`rounds`) and audited as any audit does, in worker processes; a first run without faults shows the false alarms.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...simulator.opening import DeviceKind
from ..findings.audited_surface import audited_surface
from ..findings.case_attribution import evidence_of
from ..findings.explanations import explain
from ..findings.faulty_overloads import at_fault
from ..findings.run_data import read_run
from ..model.selection import Samples, Settings
from ..model.verdicts import CaseVerdict
from ..running.runner import run_audit
from ..store.records import Run
from ..store.store import Store
from .findings import SILENT, CaseName, FaultFinding, accusations, finding_of, line
from .generator_process import generated
from .planted import PlantedFault
from .reach import reach_of
from .rounds import Round, rounds_of

# Seconds of processor time that a case may take: the slowest of the right ones takes four.
TIMEOUT = 30.0
# What the auditor has to reach.
LEAST_RECALL = 0.95
MOST_WRONG_BLAME = 0.02


@dataclass(frozen=True)
class Asked:
    """A self-test as it was asked for.

    Attributes:
        faults: how many.
        seed: which.
        classes: words of the names of classes; all where there are none.
        workers: how many processes execute cases.
        timeout: seconds of processor time that one case may take.
    """

    faults: int
    seed: int
    classes: tuple[str, ...] = ()
    workers: int = 1
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class SelfTest:
    """What the audits with faults found, and what one without faults had to say.

    Attributes:
        asked: what was asked for.
        findings: one for each fault.
        false_alarms: cases that did not pass in the run without faults and that no rule explains, a line each.
        explained: how many cases did not pass there and are explained by a rule.
        executed: cases with faults in the device, of all rounds.
        executed_clean: cases of the run without faults.
        rounds: how many rounds there were.
        seconds: wall time of everything.
    """

    asked: Asked
    findings: list[FaultFinding]
    false_alarms: list[str]
    explained: int
    executed: int
    executed_clean: int
    rounds: int
    seconds: float

    def counts(self) -> dict[str, Counter[str]]:
        """For each class of faults, how many were found, misattributed and missed."""
        counted: dict[str, Counter[str]] = {}
        for finding in sorted(self.findings, key=lambda each: each.planted.class_name):
            counted.setdefault(finding.planted.class_name, Counter())[finding.result] += 1
        return counted

    def share(self, result: str) -> float:
        """The share of faults with a result; 0 where there is no fault."""
        return sum(finding.result == result for finding in self.findings) / max(1, len(self.findings))

    @property
    def passed(self) -> bool:
        """Enough faults found, few misattributed, no false alarm, and something was executed."""
        return (
            self.share("found") >= LEAST_RECALL
            and self.share("misattributed") <= MOST_WRONG_BLAME
            and not self.false_alarms
            and self.executed > 0 < self.executed_clean
        )


def self_test(asked: Asked, folder: Path, say: Callable[[str], None]) -> SelfTest:
    """Run the audits and compare what they say with what was done to the device.

    Args:
        asked: what is wanted.
        folder: for the stores of the rounds; a round that is finished there is not run again.
        say: receives a line for people now and then.

    Raises:
        MpsmithError: the simulated device cannot be had here (a Mac has a real one), or no worker can start.
    """
    start = time.monotonic()
    reach = reach_of(asked.workers, say)
    planted = generated(asked.faults, asked.seed, asked.classes, say)
    rounds = rounds_of(planted, reach)
    everything = tuple(sorted({name for each in rounds for name in each.audited}))
    say(f"self-test: {len(planted)} faults in {len(rounds)} rounds, after a clean run over {len(everything)} entries")
    clean = _audited((), everything, asked, folder / "clean.sqlite")
    judged = _judged_clean(clean, folder / "clean.sqlite")
    findings: list[FaultFinding] = []
    executed = 0
    for number, each in enumerate(rounds, 1):
        store = folder / f"round-{number}.sqlite"
        run = _audited(each.faults, each.audited, asked, store)
        found, cases = _judged(each, run, store, judged.verdicts)
        findings += found
        executed += cases
        say(f"self-test: round {number} of {len(rounds)}: {_in_words(found)}; so far {_in_words(findings)}")
    return SelfTest(
        asked,
        sorted(findings, key=lambda finding: finding.planted.number),
        judged.false_alarms,
        judged.explained,
        executed,
        judged.executed,
        len(rounds),
        time.monotonic() - start,
    )


def _in_words(findings: Sequence[FaultFinding]) -> str:
    counted = Counter(finding.result for finding in findings)
    return f"{counted['found']} of {len(findings)} found"


def _audited(faults: Sequence[PlantedFault], entries: Sequence[str], asked: Asked, path: Path) -> Run:
    if path.exists():
        with Store.open(path) as store:
            runs = store.runs()
        if runs and runs[-1].finished is not None:
            return runs[-1]
    settings = Settings(
        ops=tuple(entries),
        samples=Samples.DEFAULT,
        device=DeviceKind.SIMULATED,
        workers=asked.workers,
        timeout=asked.timeout,
        faults=tuple(str(planted.fault) for planted in faults),
    )
    return run_audit(settings, path, resume=path.exists(), say=lambda text: None)


@dataclass(frozen=True)
class _Clean:
    verdicts: Mapping[CaseName, CaseVerdict]
    false_alarms: list[str]
    explained: int
    executed: int


def _judged_clean(run: Run, path: Path) -> _Clean:
    with Store.open(path) as store:
        data = read_run(store, run, only_verdicts=True)
    _, rule_of = explain(data, audited_surface(run))
    others = data.non_passes
    executed = sum(count.cases for count in data.counts if count.verdict.executed)
    alarms = [line(case) for case in others if case.label not in rule_of]
    verdicts = {(case.group, case.position): case.outcome.verdict for case in others}
    return _Clean(verdicts, alarms, len(others) - len(alarms), executed)


def _judged(
    there: Round, run: Run, path: Path, clean: Mapping[CaseName, CaseVerdict]
) -> tuple[list[FaultFinding], int]:
    """What the cases of a round say of its faults, and how many were executed."""
    with Store.open(path) as store:
        data = read_run(store, run, only_verdicts=True)
    surface = audited_surface(run)
    _, rule_of = explain(data, surface)
    evidence = evidence_of(data, surface, rule_of)
    failing = accusations(data.non_passes, clean, rule_of)
    executed = sum(count.cases for count in evidence.counts if count.verdict.executed)
    findings = []
    for planted in there.faults:
        entries = there.entries[planted]
        others = {other.fault.overload for other in there.faults} - {planted.fault.overload}
        its_own = [
            case
            for case in failing
            if case.group.operator in entries and not (case.at_fault and case.at_fault.overload in others)
        ]
        findings.append(finding_of(planted, entries, its_own, at_fault(evidence)))
    return findings, executed


__all__ = ["LEAST_RECALL", "MOST_WRONG_BLAME", "SILENT", "Asked", "SelfTest", "self_test"]
