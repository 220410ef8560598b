"""Which known defects of generated Metal the audits of a store found by themselves, and what else they found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....errors import MpsmithError
from ...store.records import StoredGroup
from ...store.store import Store
from .summary import CompiledFinding, summarize_compiled

# Why no case of an audit shows a defect. A defect that is not here has to be found.
NOT_ASKED: Mapping[str, str] = {
    "U11": "it is of a process: before each case an audit empties the set of headers that it is about,"
    " or its verdicts would depend on their order",
    "U22": "it is of `cpp_wrapper`, which an audit leaves off",
}


@dataclass(frozen=True)
class FoundDefect:
    """What audits showed of one known defect.

    Attributes:
        number: of the defect.
        findings: what is taken for it, the worst first; nothing where no case showed it.
    """

    number: str
    findings: tuple[CompiledFinding, ...]

    @property
    def cases(self) -> int:
        """How many cases are taken for it."""
        return sum(finding.cases for finding in self.findings)

    @property
    def operators(self) -> list[str]:
        """The operators of these cases, each once."""
        return list(dict.fromkeys(finding.operator for finding in self.findings))

    @property
    def explained(self) -> bool:
        """Whether it was found, or is known to be out of an audit's reach."""
        return bool(self.findings) or self.number in NOT_ASKED


@dataclass(frozen=True)
class FoundByAudits:
    """What the audits of one or several stores found.

    Attributes:
        defects: one for each known defect.
        others: what is taken for none of them, the worst first.
        cases: how many cases the audits executed.
        groups: how many groups of cases the audits have.
        left: how many of these were not executed, of audits that did not end.
    """

    defects: tuple[FoundDefect, ...]
    others: tuple[CompiledFinding, ...]
    cases: int
    groups: int
    left: int


def found_by_audits(stores: Iterable[Store], numbers: Sequence[str]) -> FoundByAudits:
    """What the newest audit under torch.compile of each store found with the installed code generator.

    Raises MpsmithError where a store has none.
    """
    findings: list[CompiledFinding] = []
    groups: list[StoredGroup] = []
    cases = 0
    for store in stores:
        runs = [run for run in store.runs() if run.compiled and not run.environment.get("codegen")]
        if not runs:
            raise MpsmithError(f"{store.path}: holds no audit under torch.compile (run `mpsmith audit --compile`)")
        summary = summarize_compiled(store, runs[-1])
        findings += summary.findings
        groups += store.groups(runs[-1].id)
        cases += summary.executed
    defects = tuple(
        FoundDefect(number, tuple(each for each in findings if each.known_defect == number)) for number in numbers
    )
    others = tuple(each for each in findings if not each.known_defect)
    return FoundByAudits(defects, others, cases, len(groups), sum(not group.done for group in groups))
