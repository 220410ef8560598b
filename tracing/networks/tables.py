"""What is shown of the networks, as rows of text: the same for a terminal, for Markdown, and for the site by JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...reports.table import Table
from .catalog import NETWORKS
from .observation import Called, Mode, Observation, Outcome
from .standing import NetworkStanding, Since, since

# Networks that a row names.
_NAMED = 4
EAGER = tuple(mode for mode in Mode if not mode.is_of_the_release)


# How the tables come about, for whoever reads them.
METHOD = (
    "Each network is a small form with random weights; nothing is downloaded. It is run once in each mode, in a "
    "process with limits of time and memory: inference without gradients; a training step with AdamW; the same step "
    "under autocast, in float16 with a GradScaler; inference under torch.compile. Which overloads reach the device is "
    "recorded as `mpsmith trace` does it, with the simulated device's own counters. How an overload stands on a "
    "release is read from the data of its macOS wheel (docs/coverage.md). So this page speaks of kernels alone: not "
    "of dtypes that a kernel refuses, not of wrong numbers, and not of whether the library runs with so old a torch, "
    "whose own layers and optimizers may call other operators."
)


def all_tables(standings: Sequence[NetworkStanding], observations: Sequence[Observation]) -> list[Table]:
    """Every table that has rows, the most important first."""
    found = (
        since_which_release(standings),
        by_release(standings),
        lacking_operators(standings),
        runs(observations),
        not_run(observations),
        catalogue(),
    )
    return [table for table in found if table.rows]


def in_brief(standings: Sequence[NetworkStanding], observations: Sequence[Observation]) -> str:
    """How much was run, with which torch, on which device."""
    releases = sorted({observation.release for observation in observations if observation.release})
    device = "the SIMULATED mps device" if any(each.simulated for each in observations) else "an mps device"
    ran = sum(observation.outcome is Outcome.ran for observation in observations)
    return f"{len(standings)} networks, {ran} runs with torch {', '.join(releases)} on {device}."


def since_which_release(standings: Sequence[NetworkStanding]) -> Table:
    """A row a network: the release from which on each mode runs without a fallback."""
    rows = []
    for standing in standings:
        cells = [str(since(standing.by_mode[mode])) if mode in standing.by_mode else "-" for mode in EAGER]
        rows.append((standing.network, *cells, _compiled(standing), _kernels(standing)))
    return Table(
        "Without a fallback since",
        ("network", *(mode.value for mode in EAGER), Mode.compile.value, "all with kernels"),
        tuple(rows),
        "`not yet`: the newest release lacks something. `or before`: the release before lacks nothing that is known, "
        "but calls operators there that were not recorded. The last column has all modes together, after `import "
        "mpsmith.kernels`, which needs torch 2.7. What torch.compile calls is of the torch that ran, and says nothing "
        "of others.",
    )


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
    """A row a network, a column a release: how many overloads lack a kernel there, all modes but compiled together."""
    releases = tuple(standings[0].together) if standings else ()
    rows = []
    for standing in standings:
        cells = []
        for found in standing.together.values():
            lacking, remaining = len(found.lacking), len(found.remaining)
            cells.append((f"{lacking} > {remaining}" if found.replaced else str(lacking)) + "?" * bool(found.unknown))
        rows.append((standing.network, *cells))
    return Table(
        "Overloads without a kernel, release by release",
        ("network", *releases),
        tuple(rows),
        "All modes but torch.compile together. `5 > 2`: two remain after `import mpsmith.kernels`. `?`: the release "
        "does not have an overload that was called, or makes it of others; what it calls instead is not known.",
    )


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
    titles = ("overload", "without a kernel in", "replaced by ours", "networks")
    return Table("Which overloads", titles, tuple(rows), code=frozenset({"overload"}))


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
    return Table(
        "Each run",
        ("network", "mode", "native", "composite", "fell back", "with kernels", "generated Metal", "graph breaks"),
        tuple(rows),
        "How many different overloads reached the device, and which fell back (calls); under torch.compile how many "
        "Metal kernels were generated, and how often Dynamo broke the graph.",
    )


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


def not_run(observations: Iterable[Observation]) -> Table:
    """A row for each run that did not come to its end; one for all networks that lack the same library."""
    rows = []
    absent: dict[str, list[str]] = {}
    for each in observations:
        if each.outcome is Outcome.not_installed:
            names = absent.setdefault(each.reason, [])
            names += [each.network] if each.network not in names else []
        elif each.outcome is not Outcome.ran:
            rows.append((f"{each.network}, {each.mode.value}", each.outcome.value, each.reason))
    rows += [(", ".join(names), "not run", reason) for reason, names in absent.items()]
    return Table("What did not run to its end", ("network", "outcome", "why"), tuple(rows))


def catalogue() -> Table:
    """Every network that comes with mpsmith."""
    rows = tuple((each.name, each.title, each.library or "torch") for each in NETWORKS)
    return Table("The networks", ("network", "what it is", "of"), rows)
