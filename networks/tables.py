"""What is shown of the networks, as rows of text: the same for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .observation import Called, Mode, Observation, Outcome
from .standing import NetworkStanding, Since, since

# Networks that a row names.
_NAMED = 4
EAGER = tuple(mode for mode in Mode if not mode.is_of_the_release)


@dataclass(frozen=True)
class Table:
    """Columns and rows."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def since_which_release(standings: Sequence[NetworkStanding]) -> Table:
    """A row a network: the release from which on each mode runs without a fallback."""
    rows = []
    for standing in standings:
        cells = [str(since(standing.by_mode[mode])) if mode in standing.by_mode else "-" for mode in EAGER]
        rows.append((standing.network, *cells, _compiled(standing), _kernels(standing)))
    return Table(("network", *(mode.value for mode in EAGER), Mode.compile.value, "all with kernels"), tuple(rows))


def _kernels(standing: NetworkStanding) -> str:
    found: Since = since(standing.together, with_kernels=True)
    return str(found)


def _compiled(standing: NetworkStanding) -> str:
    """What became of it on the torch that ran, which is all that is known of a compiled one."""
    observation = next((each for each in standing.observations if each.mode is Mode.compile), None)
    if observation is None or observation.outcome is Outcome.not_installed:
        return "-"
    if observation.outcome is not Outcome.ran:
        return f"{observation.outcome.value} on {standing.recorded}"
    lacking = len(observation.called.fell_back)
    return f"{standing.recorded}: {lacking} fall back" if lacking else f"none on {standing.recorded}"


def by_release(standings: Sequence[NetworkStanding]) -> Table:
    """A row a network, a column a release: how many overloads lack a kernel there, all modes but compiled together.

    `5 > 2`: two remain after `import mpsmith.kernels`. `?`: it would call operators that were not recorded.
    """
    releases = tuple(standings[0].together) if standings else ()
    rows = []
    for standing in standings:
        cells = []
        for found in standing.together.values():
            lacking, remaining = len(found.lacking), len(found.remaining)
            cells.append((f"{lacking} > {remaining}" if found.replaced else str(lacking)) + "?" * bool(found.unknown))
        rows.append((standing.network, *cells))
    return Table(("network", *releases), tuple(rows))


def lacking_operators(standings: Sequence[NetworkStanding], release: str | None = None) -> Table:
    """A row an overload that some network lacks: on which releases, whether a kernel replaces it, and which networks.

    `release`: only what is lacking there.
    """
    found: dict[str, tuple[dict[str, None], dict[str, None], set[bool]]] = {}
    order = {name: number for number, name in enumerate(standings[0].together)} if standings else {}
    for standing in standings:
        for name, on in standing.together.items():
            for overload in sorted(on.lacking) if release in (None, name) else ():
                releases, networks, replaced = found.setdefault(overload, ({}, {}, set()))
                releases[name] = None
                networks[standing.network] = None
                replaced.add(overload in on.replaced)
    rows = []
    for overload, (releases, networks, replaced) in sorted(found.items()):
        spans = _spans(sorted(order[name] for name in releases), list(order))
        rows.append((overload, spans, "yes" if True in replaced else "", _some(list(networks), len(standings))))
    return Table(("overload", "without a kernel in", "replaced by ours", "networks"), tuple(rows))


def _some(names: Sequence[str], of: int) -> str:
    """The names, or the first of many and how many there are."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} others, of {of}"


def _spans(places: Sequence[int], names: Sequence[str]) -> str:
    """`1.12.1 to 2.0.1, 2.3.1` for the places of releases."""
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][1] == place - 1:
            spans[-1][1] = place
        else:
            spans.append([place, place])
    return ", ".join(names[a] if a == b else f"{names[a]} to {names[b]}" for a, b in spans)


def runs(observations: Iterable[Observation]) -> Table:
    """A row a run that came to its end: how many overloads were called, and what became of them."""
    rows = []
    for each in observations:
        if each.outcome is Outcome.ran:
            rows.append((each.network, each.mode.value, *_counts(each.called), _after(each), *_compilation(each)))
    titles = ("network", "mode", "native", "composite", "fell back", "with kernels", "generated Metal", "graph breaks")
    return Table(titles, tuple(rows))


def _counts(called: Called) -> tuple[str, str, str]:
    calls = ", ".join(f"{name} ({number})" for name, number in called.fell_back.items())
    return str(len(called.native)), str(len(called.composite)), calls or "0"


def _after(observation: Observation) -> str:
    if observation.with_kernels is None:
        return ""
    if observation.kernels_reason:
        return observation.kernels_reason
    return ", ".join(observation.with_kernels.fell_back) or "0"


def _compilation(observation: Observation) -> tuple[str, str]:
    if observation.mode is not Mode.compile:
        return "", ""
    return str(observation.generated), str(len(observation.breaks))


def not_run(observations: Iterable[Observation]) -> list[str]:
    """A line for each run that did not come to its end."""
    lines = []
    absent: dict[str, list[str]] = {}
    for each in observations:
        if each.outcome is Outcome.not_installed:
            names = absent.setdefault(each.reason, [])
            names += [each.network] if each.network not in names else []
        elif each.outcome is not Outcome.ran:
            lines.append(f"{each.network}, {each.mode.value}: {each.outcome.value}: {each.reason}")
    return lines + [f"{', '.join(names)}: not run: {reason}" for reason, names in absent.items()]
