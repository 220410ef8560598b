"""A whole self-test: faults are made, injected and audited, and what was found is counted.

A seed determines the faults (`generation`); each has a call that shows it. Faults that do not affect each other's
entries are injected together (`rounds`) and audited in worker processes. A first run without faults shows the false
positives.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...simulator.device.faults.fault import Fault
from ...simulator.opening import DeviceKind
from ..cases.sources.known_wrong import SOURCE as KNOWN_WRONG
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
from .findings import CaseName, FaultFinding, finding_of, line, new_failures
from .generator_process import generated
from .planted import PlantedFault, Trigger
from .reach import reach_of
from .rounds import Round, rounds_of

# Seconds of processor time that a case may take; the slowest correct case takes four.
TIMEOUT = 30.0
# The auditor passes with at least this recall, and at most this share of misattributed faults.
MIN_RECALL = 0.95
MAX_MISATTRIBUTED = 0.02


@dataclass(frozen=True)
class SelfTestOptions:
    """The options of a self-test.

    Attributes:
        faults: the number of faults.
        seed: determines the faults.
        classes: words in the names of fault classes; empty for all classes.
        workers: the number of processes that execute cases.
        timeout: seconds of processor time that one case may take.
    """

    faults: int
    seed: int
    classes: tuple[str, ...] = ()
    workers: int = 1
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class SelfTest:
    """The results of the audits with faults, and of the one without.

    Attributes:
        options: the options of the self-test.
        findings: one for each fault.
        false_alarms: unexplained non-passes of the run without faults, a line each.
        explained: the number of non-passes of that run that a rule explains.
        executed: the number of cases that ran with faults, in all rounds.
        executed_clean: the number of cases that ran without faults.
        rounds: the number of rounds.
        seconds: the total wall time.
    """

    options: SelfTestOptions
    findings: list[FaultFinding]
    false_alarms: list[str]
    explained: int
    executed: int
    executed_clean: int
    rounds: int
    seconds: float

    def counts(self) -> dict[str, Counter[str]]:
        """For each class of faults, the numbers found, misattributed and missed."""
        counted: dict[str, Counter[str]] = {}
        for finding in sorted(self.findings, key=lambda fault_finding: fault_finding.planted.class_name):
            counted.setdefault(finding.planted.class_name, Counter())[finding.result] += 1
        return counted

    def share(self, result: str) -> float:
        """The share of faults with this result; 0 without any fault."""
        return sum(finding.result == result for finding in self.findings) / max(1, len(self.findings))

    @property
    def passed(self) -> bool:
        """Whether recall and attribution are good enough, without a false positive and with executed cases."""
        return (
            self.share("found") >= MIN_RECALL
            and self.share("misattributed") <= MAX_MISATTRIBUTED
            and not self.false_alarms
            and self.executed > 0 < self.executed_clean
        )


def self_test(options: SelfTestOptions, folder: Path, say: Callable[[str], None]) -> SelfTest:
    """Run the audits and compare their results with the injected faults.

    Args:
        options: the options of the self-test.
        folder: the folder of the faults and the rounds' stores; what is finished is not done again.
        say: receives lines of progress.

    Raises:
        MpsmithError: this machine has a real mps device instead of the simulated one, or no worker can start.
    """
    start = time.monotonic()
    reach = reach_of(options.workers, say)
    planted = faults_of(options, folder, say)
    rounds = rounds_of(planted, reach)
    everything = tuple(sorted({name for fault_round in rounds for name in fault_round.audited}))
    say(f"self-test: {len(planted)} faults in {len(rounds)} rounds, after a clean run over {len(everything)} entries")
    clean = _audited((), everything, options, folder / "clean.sqlite")
    judged = _judged_clean(clean, folder / "clean.sqlite")
    findings: list[FaultFinding] = []
    executed = 0
    for number, fault_round in enumerate(rounds, 1):
        store = folder / f"round-{number}.sqlite"
        run = _audited(fault_round.faults, fault_round.audited, options, store)
        round_findings, cases = _judged(fault_round, run, store, judged.verdicts)
        findings += round_findings
        executed += cases
        say(f"self-test: round {number} of {len(rounds)}: {_in_words(round_findings)}; so far {_in_words(findings)}")
    return SelfTest(
        options,
        sorted(findings, key=lambda finding: finding.planted.number),
        judged.false_alarms,
        judged.explained,
        executed,
        judged.executed,
        len(rounds),
        time.monotonic() - start,
    )


def faults_of(options: SelfTestOptions, folder: Path, say: Callable[[str], None]) -> list[PlantedFault]:
    """The faults to inject. They are kept in the folder, since their generation takes minutes.

    Raises MpsmithError as `generated` does.
    """
    path = folder / "faults.json"
    try:
        return [
            PlantedFault(number, class_name, Fault.parse(fault), Trigger(call, scenario))
            for number, class_name, fault, call, scenario in json.loads(path.read_text())
        ]
    except (OSError, ValueError):
        pass  # none are kept, or the process was killed while it wrote
    planted = generated(options.faults, options.seed, options.classes, say)
    rows = [
        (made.number, made.class_name, str(made.fault), made.trigger.call, made.trigger.scenario) for made in planted
    ]
    path.write_text(json.dumps(rows))
    return planted


def _in_words(findings: Sequence[FaultFinding]) -> str:
    counted = Counter(finding.result for finding in findings)
    return f"{counted['found']} of {len(findings)} found"


def _audited(faults: Sequence[PlantedFault], entries: Sequence[str], options: SelfTestOptions, path: Path) -> Run:
    if path.exists():
        with Store.open(path) as store:
            runs = store.runs()
        if runs and runs[-1].finished is not None:
            return runs[-1]
    settings = Settings(
        ops=tuple(entries),
        samples=Samples.DEFAULT,
        device=DeviceKind.SIMULATED,
        workers=options.workers,
        timeout=options.timeout,
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
    current: Round, run: Run, path: Path, clean: Mapping[CaseName, CaseVerdict]
) -> tuple[list[FaultFinding], int]:
    """The findings for the faults of a round, and the number of executed cases."""
    with Store.open(path) as store:
        data = read_run(store, run, only_verdicts=True)
    surface = audited_surface(run)
    _, rule_of = explain(data, surface)
    evidence = evidence_of(data, surface, rule_of)
    failing = new_failures(data.non_passes, clean, rule_of)
    executed = sum(count.cases for count in evidence.counts if count.verdict.executed)
    findings = []
    for planted in current.faults:
        entries = current.entries[planted]
        others = {other.fault.overload for other in current.faults} - {planted.fault.overload}
        its_own = [
            case
            for case in failing
            if case.group.operator in entries
            and case.group.source != KNOWN_WRONG  # it would show each fault of a public report, being that report
            and not (case.at_fault and case.at_fault.overload in others)
        ]
        findings.append(finding_of(planted, entries, its_own, at_fault(evidence)))
    return findings, executed
