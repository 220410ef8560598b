"""First and last lines of `mpsmith audit`: known facts, then wrong, missing and new results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..audit.findings.results import RunVerdicts
    from ..audit.model.selection import Settings
    from ..audit.store.records import Run
    from ..audit.store.store import Store

# Names on one line.
_LISTED = 10


def opening_lines(settings: Settings) -> Iterator[str]:
    """Facts to print before an audit of all operators: the declarations of the release, and upstream's reports."""
    from ..audit.answers.answer import answer, audited_release
    from ..audit.answers.sentences import gaps_of
    from ..audit.answers.support import Support
    from ..audit.model.selection import NARROWING
    from ..audit.releases import data as release_data
    from ..registry import known_wrong

    if any(getattr(settings, name) for name in NARROWING):
        return
    facts = release_data.facts_for(settings.profile or audited_release())
    if facts is None:
        return
    lacking = (name for name in gaps_of(facts.release) if answer(name, facts.release).support is not Support.WORKS)
    gaps = _most_used(lacking)
    without = f"torch {facts.release} declares no mps kernel for {len(gaps)} operators"
    yield f"{without}, the most used first: {_listed(gaps)}"
    yield f"{len(known_wrong.load())} upstream reports of wrong results are tried first"


def ending_lines(store: Store, run: Run, now: RunVerdicts) -> Iterator[str]:
    """The operators of a run by verdict, and changes since the previous run on the same device."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.summary import verdicts

    earlier = [
        other
        for other in store.runs()
        if other.id < run.id and not other.compiled and other.simulated == run.simulated and other.finished
    ]
    before = verdicts(store, earlier[-1], audited_surface(earlier[-1])) if earlier else None
    yield from answer_lines(now, before, since=f"since run {earlier[-1].id}" if earlier else "")


def answer_lines(now: RunVerdicts, before: RunVerdicts | None, since: str = "") -> Iterator[str]:
    """The lines about the verdicts of a run; `before` are the verdicts of an earlier run, which `since` names."""
    from ..audit.model.verdicts import OverloadVerdict

    broken = (OverloadVerdict.WRONG, OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT)
    lacking = (OverloadVerdict.MISSING, OverloadVerdict.FALLBACK)
    wrong = [overload.name for overload in now.overloads if overload.verdict in broken]
    missing = _most_used(operator.name for operator in now.operators if operator.verdict in lacking)
    yield f"overloads with the verdict wrong: {_listed(wrong) or 'none'}"
    yield f"missing or on the CPU, the most used first: {_listed(missing) or 'nothing'}"
    if before is not None:
        yield f"changed {since}: {_listed(_changes(now, before)) or 'nothing'}"
    if first := [*wrong, *missing][:1]:
        yield f"next: mpsmith why {first[0].removeprefix('aten::')}"


def _most_used(operators: Iterable[str]) -> list[str]:
    """The operators, sorted by how many functions, modules and other operators call them."""
    from collections import Counter

    from ..audit.answers.compositions import compositions

    used: Counter[str] = Counter()
    for composition in compositions().values():
        used.update({f"aten::{part.split('.')[0]}" for part in composition.parts})
    return sorted(operators, key=lambda name: (-used[name], name.startswith("aten::_"), name))


def _changes(now: RunVerdicts, before: RunVerdicts) -> list[str]:
    """The overloads that both runs executed and whose verdict is different now."""
    earlier = {overload.name: overload.verdict for overload in before.overloads if overload.executed}
    return [
        f"{overload.name} ({earlier[overload.name].value} -> {overload.verdict.value})"
        for overload in now.overloads
        if overload.executed and earlier.get(overload.name, overload.verdict) is not overload.verdict
    ]


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
