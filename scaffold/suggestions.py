"""`mpsmith next`: which gap is worth a contributor's time, from what is missing, what users ask for, and the effort.

Effort, reach and demand are estimates that people made, kept in data/gaps.tsv: effort from 1 (an afternoon) to 4
(weeks), the number of torch's OpInfos whose tests stop falling back, and demand from 0 (no request) to 3 (asked for
often).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..audit.answers.answer import answer
from ..audit.answers.support import Support
from ..errors import MpsmithError
from ..registry.files import Registry
from ..registry.model import Status
from .operators.kinds import KernelKind, kind_of
from .operators.source import Source

GAPS = Path(__file__).parent / "data" / "gaps.tsv"

# Work on the kernel has begun or is finished.
_TAKEN = (Status.scaffolded, Status.implemented, Status.verified, Status.upstreamed, Status.not_applicable)
# For operators without an estimate, by kind.
_EFFORT = {KernelKind.LINALG: 4, KernelKind.SORT: 3}
_USUAL_EFFORT = 2
_MOST_OPINFOS = 3


@dataclass(frozen=True)
class Estimate:
    """An estimate of the work on a gap."""

    effort: int
    opinfos: int
    demand: int
    note: str = ""


@dataclass(frozen=True)
class Suggestion:
    """A gap worth closing. `owner` works on it already, or is None."""

    operator: str
    kind: KernelKind
    overloads: tuple[str, ...]
    estimate: Estimate
    owner: str | None

    @property
    def score(self) -> float:
        """What it is worth for its effort: demand counts three times, reach up to three OpInfos."""
        return (3 * self.estimate.demand + min(self.estimate.opinfos, _MOST_OPINFOS) + 1) / self.estimate.effort


def estimates() -> dict[str, Estimate]:
    """The committed estimates by operator without namespace."""
    by_operator = {}
    for line in GAPS.read_text("utf-8").splitlines()[1:]:
        operator, effort, opinfos, demand, note = line.split("\t")
        by_operator[operator] = Estimate(int(effort), int(opinfos), int(demand), note)
    return by_operator


def suggestions(source: Source, registry: Registry) -> list[Suggestion]:
    """The gaps without a kernel, the best first; those that have an owner come last."""
    by_people = estimates()
    suggested = []
    for operator in source.gaps():
        entry = registry.get(operator.full_name)
        if entry and (entry.status in _TAKEN or entry.kernel):
            continue
        of_kind = kind_of(operator).kind
        rough = Estimate(_EFFORT.get(of_kind, _USUAL_EFFORT), 0, 0, f"effort of a usual {of_kind.words} kernel")
        estimate = by_people.get(operator.name, rough)
        overloads = tuple(overload.name for overload in operator.kernels)
        owner = entry.owner if entry else None
        suggested.append(Suggestion(operator.full_name, of_kind, overloads, estimate, owner))
    return sorted(suggested, key=lambda gap: (gap.owner is not None, -gap.score, gap.operator))


def sendable_families(registry: Registry) -> list[str]:
    """The operators with a finished kernel of mpsmith that no release has: their families can be sent upstream.

    Those that most calls of users need come first: the demand that people estimated.
    """
    by_people = estimates()
    names = []
    for name, entry in registry.items():
        if entry.kernel and entry.status in (Status.implemented, Status.verified):
            try:
                found = answer(name)
            except MpsmithError:
                continue
            if found.support is Support.NO and not found.upgrade:
                names.append(name)
    demand = {
        name: by_people[bare].demand if (bare := name.removeprefix("aten::")) in by_people else 0 for name in names
    }
    return sorted(names, key=lambda name: (-demand[name], name.startswith("aten::_"), name))
