"""The answer to "does this operator work on mps, and what do I do?", from the data that mpsmith ships.

Everything that speaks about an operator asks `answer`: commands, pages and messages. It imports no torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...registry.folder import VARIABLE
from ...registry.kernel_index import KernelEntry, kernel_entries
from ..model.selection import DTYPES, dtype_position
from ..model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, strongest
from ..releases import data as release_data
from ..releases.change_points import NOTHING
from ..releases.coverage.refusals import refusal_of_every_call
from ..releases.surface.rare_overloads import is_rare, main_overloads
from ..releases.surface.reachability import RULES_BY_NAME
from .compositions import Composition, compositions
from .measured import HostFact, MeasuredCalls, host_facts, measured
from .names import Names, ResolvedName
from .support import ReleaseSupport, Runs, Support
from .wrong_results import WrongResult, wrong_results

FINISHED = ("implemented", "verified", "upstreamed")
FLOATS = ("float32", "float16", "bfloat16")
_ON_CPU = (CaseVerdict.FALLBACK, CaseVerdict.MISSING)


@dataclass(frozen=True)
class ReplacementKernel:
    """mpsmith's kernel for an operator: the family's folder in `kernels/`, and its status in the registry."""

    operator: str
    family: str
    status: str

    @property
    def is_finished(self) -> bool:
        """Whether `import mpsmith.kernels` registers it."""
        return self.status in FINISHED


@dataclass(frozen=True)
class Answer:
    """The answer about one operator, function or module in one release.

    Attributes:
        name: what users call: `linalg.svd`, `mode`, `nn.Linear`.
        operator: the operator, `aten::linalg_svd`; "" for a function or module of several operators.
        overload: the overload that was asked for, "" for the whole operator.
        release: the release of torch.
        support: the headline.
        dtypes: the dtypes by what most of their calls showed in an audit; empty for a release that was not audited.
        some: the dtypes in which some calls showed something else than most, in an audit or in `wrong`.
        lacking: the overloads without a kernel that calls reach, with the share of calls that do, from 0 to 1.
        composite, always_on_cpu, refusal: see `Runs`.
        since: the first release from which on all calls run on mps, up to this release; None if they do not.
        since_or_before: an older release may do so too; what it is composed of there is not known.
        upgrade: the first later release that runs it, None if none does or none is needed.
        wrong: the wrong results that this release gives, or may give.
        kernels: mpsmith's kernels for the operator and for what it lacks.
        replay, message: the label of an audited case that did not pass, and what it showed, or "".
        grade: what computed the results; None if nothing was run: the wheel declares the kernels.
        simulated: the results come from the simulated device.
        unreachable: why no program reaches it on mps in this release, a sentence, or "".
        notes: what holds for rare overloads alone.
        inside: the overloads of its calls that wait for the GPU, or compute on the CPU inside.
    """

    name: str
    operator: str
    overload: str
    release: str
    support: Support
    dtypes: Mapping[CaseVerdict, tuple[str, ...]]
    some: Mapping[CaseVerdict, tuple[str, ...]]
    lacking: Mapping[str, float]
    composite: bool
    always_on_cpu: bool
    refusal: str
    since: str | None
    since_or_before: bool
    upgrade: str | None
    wrong: tuple[WrongResult, ...]
    kernels: tuple[ReplacementKernel, ...]
    replay: str
    message: str
    grade: Grade | None
    simulated: bool
    unreachable: str
    notes: tuple[str, ...]
    inside: tuple[HostFact, ...]


def audited_release() -> str:
    """The release of the audit whose results mpsmith ships."""
    return measured().release


def answer(name: str, torch: str | None = None) -> Answer:
    """The answer about what a user calls `name`, in a release of torch.

    `name`: an operator, overload, function, method call or module, with or without its namespace.
    `torch`: a release such as 2.15.0; by default the one that was audited.
    Raises MpsmithError with near names for an unknown name, and for an unknown release.
    """
    meant = _names().find(name)
    data = release_data.load()
    position = data.index(torch or audited_release())
    overloads = _overloads_of(meant, position)
    runs = _runs(meant, overloads, position)
    is_audited = data.releases[position].release == audited_release()
    results = _Results(overloads, meant.public) if is_audited else _Results((), ())
    wrong = _wrong(meant, overloads, data.releases[position].release)
    passed = results.dtypes.get(CaseVerdict.PASSED, ())
    also_wrong = tuple(dtype for result in wrong for dtype in result.dtypes if dtype in passed)
    unreachable = "" if results.rows else _unreachable(meant, overloads, position)
    support = Support.UNKNOWN if unreachable else results.support or runs.support
    lacking = runs.lacking if support is not Support.WORKS else {}
    since, or_before = _since(meant, position) if support is not Support.NO else (None, False)
    operators = {meant.operator, *(part.split(".")[0] for part in lacking)} - {""}
    return Answer(
        name=meant.shown,
        operator=f"aten::{meant.operator}" if meant.operator else "",
        overload=f"aten::{meant.overload}" if meant.overload else "",
        release=data.releases[position].release,
        support=support,
        dtypes=results.dtypes,
        some=_merged([results.some, {CaseVerdict.WRONG: also_wrong}] if also_wrong else [results.some]),
        lacking=lacking,
        composite=runs.composite,
        always_on_cpu=runs.always_on_cpu,
        refusal=runs.refusal,
        since=since,
        since_or_before=or_before,
        upgrade=_upgrade(meant, position) if lacking or runs.refusal else None,
        wrong=wrong,
        kernels=_kernels(operators),
        replay=results.replay,
        message=results.message,
        grade=results.grade,
        simulated=measured().simulated and bool(results.rows),
        unreachable=unreachable,
        notes=_notes(meant, overloads, position) if is_audited else (),
        inside=_inside(overloads, meant.public, data.releases[position].release),
    )


@cache
def _names() -> Names:
    public = {**measured().names, **compositions()}
    return Names(release_data.load().overloads, public)


def known_names() -> Names:
    """Every name that has an answer."""
    return _names()


def require_known(patterns: Sequence[str]) -> None:
    """Raise MpsmithError with near names unless a name, or a shell pattern, matches an operator, function or module."""
    for pattern in patterns:
        if not _names().has_match(pattern):
            _names().find(pattern)


def require_operators(names: Iterable[str]) -> None:
    """Raise MpsmithError for a name that torch lacks; operators of other libraries have a namespace."""
    require_known([name for name in names if "::" not in name or name.startswith("aten::")])


@cache
def _releases() -> ReleaseSupport:
    return ReleaseSupport(release_data.load(), compositions())


def _overloads_of(meant: ResolvedName, position: int) -> list[str]:
    """The overloads that decide the headline; none for a function or module of several operators."""
    if meant.overload:
        return [meant.overload]
    data = release_data.load()
    present = [
        overload
        for overload in _names().overloads.get(meant.operator, ())
        if data.dispatch(overload, position) not in (release_data.ABSENT, "missing everywhere")
    ]
    return main_overloads(meant.operator, present)


def _runs(meant: ResolvedName, overloads: Sequence[str], position: int) -> Runs:
    public = () if meant.overload else meant.public
    rows = [measured().names[name].without_kernel for name in (*overloads, *public) if name in measured().names]
    runs = _releases().of_names(overloads, public, position, Composition.sum(rows))
    release = release_data.load().releases[position].release
    refusal = refusal_of_every_call({*overloads, *public, meant.operator}, release)
    return replace(runs, support=Support.NO, refusal=refusal) if refusal else runs


def _since(meant: ResolvedName, position: int) -> tuple[str | None, bool]:
    """The first release of the unbroken range up to `position` in which everything runs, and whether it is certain."""
    data, first = release_data.load(), None
    for earlier in range(position, -1, -1):
        runs = _runs(meant, _overloads_of(meant, earlier), earlier)
        if runs.support is not Support.WORKS:
            return first, runs.support is Support.UNKNOWN and first is not None
        if runs.uncertain and earlier < position:
            return first, True
        first = data.releases[earlier].release
    return first, True


def _upgrade(meant: ResolvedName, position: int) -> str | None:
    data = release_data.load()
    for later in range(position + 1, len(data.releases)):
        if _runs(meant, _overloads_of(meant, later), later).support is Support.WORKS:
            return data.releases[later].release
    return None


def _unreachable(meant: ResolvedName, overloads: Sequence[str], position: int) -> str:
    """Why no program reaches any of these overloads on mps, a sentence; "" if one does."""
    if not meant.operator:
        return ""
    data = release_data.load()
    every = _names().overloads.get(meant.operator, ())
    present = [overload for overload in every if data.dispatch(overload, position) != release_data.ABSENT]
    if not present or not set(overloads) <= set(present):
        return f"Torch {data.releases[position].release} does not have it."
    rules = [data.overloads[overload].unreachable[position] for overload in overloads or present]
    if NOTHING not in rules:
        return f"No program reaches it with tensors on mps: {RULES_BY_NAME[rules[0]].reason}."
    return "" if overloads else "The CPU has no kernel for it either."


def _inside(overloads: Sequence[str], public: Sequence[str], release: str) -> tuple[HostFact, ...]:
    """The work on the host of these overloads, and of the parts that at least half of their calls reach."""
    composed = [compositions()[name] for name in (*overloads, *public) if name in compositions()]
    parts = [part for composition in composed for part in composition.parts if composition.share(part) >= 0.5]
    facts = host_facts(release)
    names = dict.fromkeys(f"aten::{name}" for name in (*overloads, *parts))
    return tuple(facts[name] for name in names if name in facts)


def _wrong(meant: ResolvedName, overloads: Sequence[str], release: str) -> tuple[WrongResult, ...]:
    """The wrong results of an operator, and of the operator that its calls compute with, if there is only one."""
    composed = [compositions()[name] for name in (*overloads, *meant.public) if name in compositions()]
    parts = [part for composition in composed if composition.is_one_operator for part in composition.computing_parts]
    of_parts = wrong_results(frozenset(f"aten::{part.split('.')[0].removesuffix('_')}" for part in parts))
    own = wrong_results(frozenset({f"aten::{meant.operator}"}))
    results = (*own, *(result for result in of_parts if not result.only_out and result not in own))
    return tuple(result for result in results if result.is_in(release))


@cache
def _registered(variable: str | None) -> Mapping[str, KernelEntry]:
    """The operators with a kernel in the registry that MPSMITH_REGISTRY names, or in the package's own."""
    return kernel_entries(Path(variable) if variable else None)


def _kernels(operators: set[str]) -> tuple[ReplacementKernel, ...]:
    registered = _registered(os.environ.get(VARIABLE))
    entries = [registered[name] for name in sorted(f"aten::{operator}" for operator in operators) if name in registered]
    return tuple(ReplacementKernel(entry.operator, entry.kernel, entry.status or "") for entry in entries)


def _notes(meant: ResolvedName, main: Sequence[str], position: int) -> tuple[str, ...]:
    """Results of the rare overloads of an operator that differ from the headline."""
    notes = []
    data = release_data.load()
    for overload in _names().overloads.get(meant.operator, ()) if not meant.overload else ():
        if overload in main or data.dispatch(overload, position) == release_data.ABSENT:
            continue
        if data.dispatch(overload, position) == "missing everywhere":
            notes.append(f"{overload}: the CPU has no kernel for it either")
        elif (calls := measured().names.get(overload)) and is_rare(overload):
            bad = [verdict for verdict in calls.prevailing if verdict is not CaseVerdict.PASSED]
            if bad and CaseVerdict.PASSED not in calls.prevailing:
                notes.append(f"{overload}: {min(bad, key=CASE_SEVERITY.index).value}")
    return tuple(notes)


class _Results:
    """The audit's results of overloads, and of the functions and modules that call them, together."""

    def __init__(self, overloads: Sequence[str], public: Sequence[str]) -> None:
        names = [*overloads, *public]
        self.rows: list[MeasuredCalls] = [measured().names[name] for name in names if name in measured().names]
        worst: dict[str, CaseVerdict] = {}
        for row in self.rows:
            for dtype, verdict in row.dtypes.items():
                worst[dtype] = min(worst.get(dtype, verdict), verdict, key=CASE_SEVERITY.index)
        self.dtypes = _by_verdict(worst)
        at_sizes = [{CaseVerdict.DTYPE_GAP: row.at_sizes} for row in self.rows if row.at_sizes]
        self.some = _merged([*(row.some for row in self.rows), *at_sizes])
        # Samples of OpInfos are usual calls; arguments that a search found are often odd ones.
        usual = [measured().names[name].some for name in public if name in measured().names]
        self._of_usual_calls = _merged(usual or [row.some for row in self.rows])
        self.grade = strongest(row.grade for row in self.rows)
        shown = ((row.case, row.message) for row in self.rows if row.case)
        self.replay, self.message = next(shown, ("", ""))

    @property
    def support(self) -> Support | None:
        """The headline, by the floating dtypes if there are any; None without results."""
        every = [dtype for dtypes in self.dtypes.values() for dtype in dtypes]
        basis = [dtype for dtype in every if dtype in FLOATS] or every
        if not basis:
            return None
        right = [dtype for dtype in basis if dtype in self.dtypes.get(CaseVerdict.PASSED, ())]
        if not right:
            return Support.NO if not self._passes_somewhere(basis) else Support.PARTLY
        refused = {d for verdict in (*_ON_CPU, CaseVerdict.DTYPE_GAP) for d in self._of_usual_calls.get(verdict, ())}
        return Support.PARTLY if len(right) < len(basis) or refused.intersection(basis) else Support.WORKS

    def _passes_somewhere(self, dtypes: Sequence[str]) -> bool:
        """Whether some overload passes in a dtype in which another does not, or some of its calls do."""
        passes = (
            *self.some.get(CaseVerdict.PASSED, ()),
            *(d for row in self.rows for d in row.prevailing.get(CaseVerdict.PASSED, ())),
        )
        return not set(dtypes).isdisjoint(passes)


def _by_verdict(verdicts: Mapping[str, CaseVerdict]) -> dict[CaseVerdict, tuple[str, ...]]:
    dtypes: dict[CaseVerdict, list[str]] = {}
    for dtype in sorted(verdicts, key=dtype_position):
        dtypes.setdefault(verdicts[dtype], []).append(dtype)
    return {verdict: tuple(dtypes[verdict]) for verdict in reversed(CASE_SEVERITY) if verdict in dtypes}


def _merged(parts: Sequence[Mapping[CaseVerdict, tuple[str, ...]]]) -> dict[CaseVerdict, tuple[str, ...]]:
    together: dict[CaseVerdict, set[str]] = {}
    for part in parts:
        for verdict, dtypes in part.items():
            together.setdefault(verdict, set()).update(dtypes)
    return {verdict: tuple(dtype for dtype in DTYPES if dtype in dtypes) for verdict, dtypes in together.items()}
