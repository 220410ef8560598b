"""Advice about an operator: whether it works, since which release, and what to do if it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..audit.answers import sentences
from ..audit.answers.answer import Answer, answer
from ..audit.answers.sentences import Step
from ..audit.findings.known_reports import ReportResult, ReportStatus
from ..audit.findings.results import OperatorSummary, OverloadSummary
from ..audit.model.verdicts import CaseVerdict, OverloadVerdict
from ..errors import MpsmithError
from .release_history import ReleaseHistory
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
LACKING = (OverloadVerdict.MISSING, OverloadVerdict.FALLBACK)
BROKEN = (OverloadVerdict.WRONG, OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT)


@dataclass(frozen=True)
class OperatorAdvice:
    """The advice about one operator.

    Attributes:
        works: whether it works, in sentences.
        since, release: since which release it does, in a sentence and by itself; "" if that is not known.
        row: a letter for each release; "" without release data.
        steps: what to do.
    """

    works: tuple[str, ...]
    since: str
    release: str
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
    shipped = _shipped_answer(operator.name, history)
    inside = [f"In host code: {work}." for work in shipped.inside] if shipped else []
    return OperatorAdvice(
        works=(*_works(operator, reason, overloads, simulated=simulated), *inside),
        since=(sentences.since(shipped) if shipped else "") or "Since which release is not known.",
        release=(shipped.since or shipped.upgrade or "") if shipped else "",
        row=history.row(operator.name) if history else "",
        steps=tuple(_steps(operator, shipped, reports)),
    )


def _shipped_answer(operator: str, history: ReleaseHistory | None) -> Answer | None:
    """The answer about the operator in the audited release; None for one that mpsmith's data do not have."""
    if history is None:
        return None
    try:
        return answer(operator, history.audited)
    except MpsmithError:
        return None


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
    beside = {dtype: broken[0].value for dtype, broken in operator.dtype_breakages.items() if broken}
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


def _steps(operator: OperatorSummary, shipped: Answer | None, reports: Sequence[ReportResult]) -> list[Step]:
    still_wrong = [report for report in reports if report.status is ReportStatus.STILL_WRONG]
    if operator.verdict.is_support and not operator.breakages and not still_wrong:
        return []
    replaced = sentences.replacements(shipped) if shipped else []
    steps = [*replaced, *_compiled(operator), *_without_kernel(operator)]
    registered = operator.registered
    if operator.verdict is OverloadVerdict.UNREACHABLE:
        steps.append(Step("Ask with your own call.", f"mpsmith audit --ops {operator.name}"))
    steps += [
        Step(f"Upstream report #{report.issue}, {report.status.value}: {report.summary}", link=report.url)
        for report in still_wrong
    ]
    if registered and registered.upstream:
        steps.append(Step("Upstream:", link=address_of(registered.upstream)))
    return steps


def _compiled(operator: OperatorSummary) -> list[Step]:
    compiled = operator.compiled
    if compiled is None or not compiled.cures:
        return []
    return [Step(f"Under torch.compile it is right in {', '.join(compiled.cures)}.", "torch.compile(your_function)")]


def _without_kernel(operator: OperatorSummary) -> list[Step]:
    if operator.verdict is OverloadVerdict.MISSING:
        text = "Fall back to the CPU (copies the data both ways)."
        return [Step(text, "PYTORCH_ENABLE_MPS_FALLBACK=1 python train.py")]
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
    by_word: dict[str, list[str]] = {}
    for name, word in words.items():
        by_word.setdefault(word, []).append(name)
    return "; ".join(
        f"{word}{joined}{'every dtype tried' if len(names) == every > 1 else shortened(names, 10)}"
        for word, names in by_word.items()
    )
