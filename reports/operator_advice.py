"""Advice about an operator: whether it works, since which release, and what to do if it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..audit.findings.known_reports import ReportResult, ReportStatus
from ..audit.findings.results import OperatorSummary, OverloadSummary
from ..audit.model.verdicts import CaseVerdict, OverloadVerdict
from .release_history import OperatorReleases, ReleaseHistory
from .table import shortened
from .wording import GRADE_MEANING

ISSUES = "https://github.com/pytorch/pytorch/issues/"

WORKS: dict[OverloadVerdict, str] = {
    OverloadVerdict.NATIVE: "Yes: right results from its own kernel on mps.",
    OverloadVerdict.COMPOSITE: "Yes: right results, composed of operators that run on mps.",
    OverloadVerdict.FALLBACK: "Not on the GPU: it runs on the CPU, and its data are copied there and back.",
    OverloadVerdict.MISSING: "No: mps has no kernel for it.",
    OverloadVerdict.WRONG: "It runs, and most of what was tried gives wrong results.",
    OverloadVerdict.DTYPE_GAP: "In part: it refuses some dtypes or inputs that the CPU takes.",
    OverloadVerdict.CRASH: "No: it ends the process, or runs out of memory.",
    OverloadVerdict.TIMEOUT: "No: it does not finish in time.",
    OverloadVerdict.REFERENCE_FAILED: "Not known: the CPU itself failed, so there was nothing to compare with.",
    OverloadVerdict.UNREACHABLE: "Not known: no call of it was executed.",
}
# Statuses of finished kernels; a `scaffolded` one is not finished.
FINISHED = ("implemented", "verified", "upstreamed")
LACKING = (OverloadVerdict.MISSING, OverloadVerdict.FALLBACK)
BROKEN = (OverloadVerdict.WRONG, OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT)


@dataclass(frozen=True)
class Step:
    """One thing to do: a sentence with a command or a link."""

    text: str
    command: str = ""
    link: str = ""

    def as_data(self) -> dict[str, str]:
        """The parts that are not empty, by name."""
        parts = {"text": self.text, "command": self.command, "link": self.link}
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True)
class OperatorAdvice:
    """The advice about one operator. `row` has a letter for each release; "" without release data."""

    works: tuple[str, ...]
    since: str
    row: str
    steps: tuple[Step, ...]

    def as_data(self) -> dict[str, Any]:
        """The advice as data for the page's script."""
        return {
            "works": list(self.works),
            "since": self.since,
            "row": self.row,
            "steps": [step.as_data() for step in self.steps],
        }


def advice_for(
    operator: OperatorSummary,
    reason: str,
    history: ReleaseHistory | None,
    reports: Sequence[ReportResult],
    overloads: Sequence[OverloadSummary] = (),
    *,
    simulated: bool,
) -> OperatorAdvice:
    """The advice about one operator.

    Args:
        operator: its summary.
        reason: one line on why it has its verdict.
        history: the release data, if known.
        reports: the upstream reports of wrong results that name it.
        overloads: its overloads; the operator has the worst verdict of those that were executed.
        simulated: whether the device was simulated.
    """
    releases = history.of(operator.name) if history else None
    return OperatorAdvice(
        works=tuple(_works(operator, reason, overloads, simulated=simulated)),
        since=_since(operator, history, releases),
        row=releases.row if releases else "",
        steps=tuple(_steps(operator, releases, reports)),
    )


def works_in_part(operator: OperatorSummary, overloads: Sequence[OverloadSummary]) -> bool:
    """Whether some of its overloads work on mps although the operator does not."""
    return not operator.verdict.is_support and any(o.executed and o.verdict.is_support for o in overloads)


def _works(
    operator: OperatorSummary, reason: str, overloads: Sequence[OverloadSummary], *, simulated: bool
) -> list[str]:
    sentences = [WORKS[operator.verdict]]
    if works_in_part(operator, overloads):
        words = {o.name: "right" if o.verdict.is_support else o.verdict.value for o in overloads if o.executed}
        sentences = [f"In part, by overload: {_by_word(words, joined=': ')}."]
    if operator.verdict.is_support and operator.breakages:
        sentences = ["Mostly: most calls tried are right on mps itself, and some are not."]
    beside = {dtype: found[0].value for dtype, found in operator.dtype_breakages.items() if found}
    if beside:
        sentences.append(f"In some cases: {_by_word(beside, every=len(operator.dtypes))}.")
    verdicts = {dtype: verdict.value for dtype, verdict in operator.dtypes.items()}
    if len(set(verdicts.values())) > 1:
        sentences.append(f"By dtype: {_by_word(verdicts)}.")
    if reason and operator.verdict in (*BROKEN, OverloadVerdict.UNREACHABLE, OverloadVerdict.DTYPE_GAP):
        sentences.append(f"{reason}.")
    if operator.grade is not None:
        sentences.append(f"Evidence: {operator.grade.value}: {GRADE_MEANING[operator.grade]}.")
    if simulated:
        sentences.append("The device was simulated: no Mac has shown this.")
    return sentences


def _since(operator: OperatorSummary, history: ReleaseHistory | None, releases: OperatorReleases | None) -> str:
    if history is None or releases is None:
        return "Not known: the release data do not contain it."
    oldest, newest, audited = history.releases[0], history.releases[-1], history.audited
    if releases.since == oldest:
        return f"It has had a kernel since torch {oldest} or longer: that is the oldest release that was read."
    if releases.since:
        return f"It has had a kernel since torch {releases.since}."
    if releases.later:
        return f"It has a kernel from torch {releases.later} on; torch {audited}, which was audited, has none."
    if releases.lost:
        return f"Torch {releases.lost} was the last release with a kernel for it; {audited} to {newest} have none."
    if operator.verdict is OverloadVerdict.COMPOSITE or releases.row[history.releases.index(audited)] == "C":
        return "It does not need its own kernel: it is composed of others."
    return f"No release from {oldest} to {newest} has a kernel for it."


def _steps(operator: OperatorSummary, releases: OperatorReleases | None, reports: Sequence[ReportResult]) -> list[Step]:
    still_wrong = [report for report in reports if report.status is ReportStatus.STILL_WRONG]
    if operator.verdict.is_support and not operator.breakages and not still_wrong:
        return []
    steps = [*_newer_release(releases), *_kernel(operator), *_compiled(operator), *_without_kernel(operator)]
    registered = operator.registered
    if operator.verdict in LACKING and not (registered and registered.kernel):
        steps.append(Step("Write the kernel: this makes a project with tests.", f"mpsmith scaffold {operator.name}"))
    if operator.verdict is OverloadVerdict.UNREACHABLE:
        steps.append(Step("Ask with your own call.", f"mpsmith audit --ops {operator.name}"))
    steps += [
        Step(f"Upstream report #{report.issue}, {report.status.value}: {report.summary}", link=report.url)
        for report in still_wrong
    ]
    if registered and registered.upstream:
        steps.append(Step("Upstream:", link=address_of(registered.upstream)))
    return steps


def _newer_release(releases: OperatorReleases | None) -> list[Step]:
    if releases is None or releases.later is None:
        return []
    text = f"Torch {releases.later} has a kernel (whether it is right was not tried here)."
    return [Step(text, f"pip install --upgrade 'torch>={releases.later}'")]


def _kernel(operator: OperatorSummary) -> list[Step]:
    registered = operator.registered
    if registered is None or not registered.kernel:
        return []
    if registered.status not in FINISHED:
        return [Step(f"mpsmith's kernel {registered.kernel} is not finished: {registered.status}.")]
    return [Step(f"mpsmith has a kernel for it ({registered.kernel}, {registered.status}).", "import mpsmith.kernels")]


def _compiled(operator: OperatorSummary) -> list[Step]:
    compiled = operator.compiled
    if compiled is None or not compiled.cures:
        return []
    return [Step(f"Under torch.compile it is right in {', '.join(compiled.cures)}.", "torch.compile(your_function)")]


def _without_kernel(operator: OperatorSummary) -> list[Step]:
    if operator.verdict is OverloadVerdict.MISSING:
        text = "Let it run on the CPU, which costs a copy each way and a wait."
        return [
            Step(text, "PYTORCH_ENABLE_MPS_FALLBACK=1 python your_program.py"),
            Step("See where your program calls it, and what that costs.", "mpsmith trace your_program.py"),
        ]
    if operator.verdict is OverloadVerdict.FALLBACK:
        return [Step("See where your program calls it, and what that costs.", "mpsmith trace your_program.py")]
    right = [dtype for dtype, verdict in operator.dtypes.items() if verdict.is_support]
    if operator.verdict is OverloadVerdict.DTYPE_GAP and right:
        return [Step(f"Convert first: it is right in {', '.join(right)}.")]
    broken = operator.verdict in BROKEN or CaseVerdict.WRONG in operator.breakages
    if broken:
        return [Step("Where the result matters, compute this call on the CPU.", 'result = f(x.cpu()).to("mps")')]
    return []


def address_of(reference: str) -> str:
    """The address of an upstream reference; a number belongs to pytorch/pytorch."""
    return reference if reference.startswith("http") else f"{ISSUES}{reference.removeprefix('#')}"


def _by_word(words: dict[str, str], every: int = 0, joined: str = " in ") -> str:
    """The names grouped by word, "native in float32, float16; missing in bool"; `every`: the number of all dtypes."""
    names: dict[str, list[str]] = {}
    for name, word in words.items():
        names.setdefault(word, []).append(name)
    return "; ".join(
        f"{word}{joined}{'every dtype tried' if len(found) == every > 1 else shortened(found, 10)}"
        for word, found in names.items()
    )
