"""`mpsmith next`: ranks the gaps that a contributor could close by users' demand and by the effort.

data/gaps.tsv has estimates and counts: effort from 1 (an afternoon) to 4 (weeks), the number of torch's OpInfos whose
tests no longer fall back, demand by upstream's issues from 0 (no request) to 3 (asked for often), and how many
networks of `mpsmith networks` call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..audit.answers.answer import answer
from ..audit.answers.compositions import compositions
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
_MOST_CALLERS = 10
_ELEMENTWISE = '"shared/elementwise.metal"'


@dataclass(frozen=True)
class Estimate:
    """An estimate of the work on a gap."""

    effort: int
    opinfos: int
    demand: int
    networks: int
    note: str = ""

    @property
    def usage(self) -> int:
        """A measure of use: three times the demand and the networks, plus the OpInfos, of which at most three count."""
        return 3 * (self.demand + self.networks) + min(self.opinfos, _MOST_OPINFOS)


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
        """Use divided by effort."""
        return (self.estimate.usage + 1) / self.estimate.effort


@dataclass(frozen=True)
class FinishedFamily:
    """A family of kernels whose patch can be sent upstream.

    Attributes:
        family: its name.
        operators: those that no release runs on mps, `aten::mode`, the most used first.
        callers: how many functions, modules and operators call them, in recorded calls.
        estimate: of the first operator.
    """

    family: str
    operators: tuple[str, ...]
    callers: int
    estimate: Estimate

    @property
    def score(self) -> float:
        """The use of the operators that it replaces."""
        return self.estimate.usage + min(self.callers, _MOST_CALLERS) / _MOST_CALLERS

    @property
    def command(self) -> str:
        """The command that writes the patch."""
        return f"mpsmith scaffold {self.operators[0]} --target upstream --from-kernel"


def estimates() -> dict[str, Estimate]:
    """The committed estimates by operator without namespace."""
    by_operator = {}
    for line in GAPS.read_text("utf-8").splitlines()[1:]:
        operator, effort, opinfos, demand, networks, note = line.split("\t")
        by_operator[operator] = Estimate(int(effort), int(opinfos), int(demand), int(networks), note)
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
        rough = Estimate(_EFFORT.get(of_kind, _USUAL_EFFORT), 0, 0, 0, f"effort of a usual {of_kind.words} kernel")
        estimate = by_people.get(operator.name, rough)
        overloads = tuple(overload.name for overload in operator.kernels)
        owner = entry.owner if entry else None
        suggested.append(Suggestion(operator.full_name, of_kind, overloads, estimate, owner))
    return sorted(suggested, key=lambda gap: (gap.owner is not None, -gap.score, gap.operator))


def finished_families(registry: Registry) -> list[FinishedFamily]:
    """The finished families whose kernels no release has, so that they can be sent upstream; the most useful first."""
    by_people = estimates()
    lacking: dict[str, list[str]] = {}
    for name, entry in registry.items():
        if entry.kernel and entry.status in (Status.implemented, Status.verified) and _has_host_code(entry.kernel):
            try:
                answered = answer(name)
            except MpsmithError:
                continue
            if answered.support is Support.NO and not answered.upgrade:
                lacking.setdefault(entry.kernel, []).append(name)
    families = []
    for family, operators in lacking.items():
        estimated = {name: by_people.get(name.removeprefix("aten::"), Estimate(1, 0, 0, 0)) for name in operators}
        first = sorted(operators, key=lambda name: (-estimated[name].usage, name.startswith("aten::_"), name))
        calls = len({caller for name in operators for caller in _callers().get(name, ())})
        families.append(FinishedFamily(family, tuple(first), calls, estimated[first[0]]))
    return sorted(families, key=lambda finished: (-finished.score, finished.family))


def _has_host_code(family: str) -> bool:
    """Whether host code for PyTorch's tree exists, or can be generated because the family has elementwise functors."""
    folder = GAPS.parents[2] / "kernels" / family
    metal = folder / f"{family}.metal"
    return (folder / "upstream.mm").is_file() or (metal.is_file() and _ELEMENTWISE in metal.read_text("utf-8"))


@cache
def _callers() -> Mapping[str, frozenset[str]]:
    """The functions, modules and operators that call an operator, by `aten::NAME`, from recorded calls."""
    callers: dict[str, set[str]] = {}
    for name, composition in compositions().items():
        for part in composition.parts:
            callers.setdefault(f"aten::{part.split('.')[0]}", set()).add(name.split(".")[0])
    return {operator: frozenset(names) for operator, names in callers.items()}
