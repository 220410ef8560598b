"""What differs between two sides, the worst news first: verdicts by overload and dtype, failing cases, times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ...audit.findings.overload_verdict import BREAKAGES, SEVERITY
from ...audit.model.verdicts import CaseVerdict
from .sides import Side, SideVerdict


class Became(str, Enum):
    """What became of an overload from the first side to the second, the worst news first."""

    NEW_WRONG = "new wrong result"
    WORSE = "worse"
    OTHER = "other"
    BETTER = "better"
    ONLY_BEFORE = "only before"
    ONLY_AFTER = "only after"

    @property
    def is_worse(self) -> bool:
        """Whether a user is worse off."""
        return self in (Became.NEW_WRONG, Became.WORSE)


@dataclass(frozen=True)
class VerdictChange:
    """An overload of which the sides say different things; `dtype` is "" where they are compared over all dtypes."""

    overload: str
    dtype: str
    before: SideVerdict | None
    after: SideVerdict | None
    became: Became


@dataclass(frozen=True)
class NewFailure:
    """A case that crashed, hung or was wrong on the second side and did not on the first."""

    case: str
    verdict: CaseVerdict
    message: str


@dataclass(frozen=True)
class TimeChange:
    """The times of one kernel on both sides, in milliseconds; None where one has none."""

    operator: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Differences:
    """Two sides, and what differs."""

    before: Side
    after: Side
    verdicts: tuple[VerdictChange, ...]
    failures: tuple[NewFailure, ...]
    times: tuple[TimeChange, ...]

    @property
    def by_dtype(self) -> bool:
        """Whether the verdicts are compared dtype by dtype."""
        return bool(self.before.dtypes and self.after.dtypes)

    def has(self, *kinds: Became) -> bool:
        """Whether an overload became one of these."""
        return any(change.became in kinds for change in self.verdicts)


def differences(before: Side, after: Side) -> Differences:
    """Everything that differs; overloads that one side has no evidence of are listed last."""
    if before.dtypes and after.dtypes:
        old, new = dict(before.dtypes), dict(after.dtypes)
    else:
        old = {(name, ""): standing for name, standing in before.overloads.items()}
        new = {(name, ""): standing for name, standing in after.overloads.items()}
    changes = [
        VerdictChange(*key, old.get(key), new.get(key), _became(old.get(key), new.get(key)))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    order = list(Became)
    changes.sort(key=lambda change: order.index(change.became))
    return Differences(before, after, tuple(changes), tuple(_failures(before, after)), tuple(_times(before, after)))


def _became(before: SideVerdict | None, after: SideVerdict | None) -> Became:
    if before is None or after is None:
        return Became.ONLY_AFTER if before is None else Became.ONLY_BEFORE
    if after.broken != before.broken:
        return Became.NEW_WRONG if after.broken else Became.BETTER
    was, now = SEVERITY.index(before.verdict), SEVERITY.index(after.verdict)
    if before.verdict.is_support and after.verdict.is_support:
        return Became.OTHER
    return Became.WORSE if now < was else Became.BETTER


def _failures(before: Side, after: Side) -> Iterator[NewFailure]:
    for label, (verdict, message) in after.failing.items():
        known = before.failing.get(label)
        if verdict in BREAKAGES and (known is None or known[0] not in BREAKAGES):
            yield NewFailure(label, verdict, message)


def _times(before: Side, after: Side) -> Iterator[TimeChange]:
    for operator in sorted({*before.timings, *after.timings}):
        old, new = before.timings.get(operator), after.timings.get(operator)
        yield TimeChange(operator, old.kernel if old else None, new.kernel if new else None)
