"""The tables about networks, for the terminal, and through JSON for the page and the site."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...audit.answers.answer import answer
from ...audit.answers.measured import host_facts
from ...audit.answers.sentences import replacements
from ...errors import MpsmithError
from ...reports.table import Table
from .catalog import NETWORKS
from .observation import Called, Mode, NetworkObservation, NetworkOutcome
from .release_support import NetworkSupport, Since, since

# The most networks that a row names.
_NAMED = 4
EAGER = tuple(mode for mode in Mode if not mode.is_specific_to_release)


# How the tables were made, for their readers.
METHOD = (
    "Each network is a small form with random weights; nothing is downloaded. It is run once in each mode, in a "
    "process with limits of time and memory: inference without gradients; a training step with AdamW; the same step "
    "under autocast, in float16 with a GradScaler; inference under torch.compile. Which overloads reach the device is "
    "recorded as `mpsmith trace` does it, with the simulated device's own counters. Whether a release "
    "has a kernel is read from the data of its macOS wheel (docs/coverage.md). So this page is about kernels only: not "
    "about dtypes that a kernel refuses, wrong numbers, or whether the library runs with so old a torch, whose own "
    "layers and optimizers may call other operators."
)


def all_tables(network_support: Sequence[NetworkSupport], observations: Sequence[NetworkObservation]) -> list[Table]:
    """Every table with rows, the most important first."""
    tables = (
        since_which_release(network_support),
        kernels_by_release(network_support),
        lacking_operators(network_support),
        runs(observations),
        not_run(observations),
        catalogue(),
    )
    return [table for table in tables if table.rows]


def in_brief(network_support: Sequence[NetworkSupport], observations: Sequence[NetworkObservation]) -> str:
    """The numbers of networks and runs, torch and the device, in one sentence."""
    releases = sorted({observation.release for observation in observations if observation.release})
    device = "the SIMULATED mps device" if any(run.simulated for run in observations) else "an mps device"
    ran = sum(observation.outcome is NetworkOutcome.ran for observation in observations)
    return f"{len(network_support)} networks, {ran} runs with torch {', '.join(releases)} on {device}."


def since_which_release(network_support: Sequence[NetworkSupport]) -> Table:
    """The first release that runs each mode of each network without a fallback."""
    rows = []
    for support in network_support:
        cells = [str(since(support.by_mode[mode])) if mode in support.by_mode else "-" for mode in EAGER]
        rows.append((support.network, *cells, _compiled(support), _kernels(support)))
    return Table(
        "Without a fallback since",
        ("network", *(mode.value for mode in EAGER), Mode.compile.value, "all with kernels"),
        tuple(rows),
        "`not yet`: the newest release lacks something. `or before`: the release before lacks nothing that is known, "
        "but calls operators there that were not recorded. The last column has all modes together, after `import "
        "mpsmith.kernels`, which needs torch 2.7. What torch.compile calls is of the torch that ran, and says nothing "
        "of others.",
    )


def _kernels(support: NetworkSupport) -> str:
    first_release: Since = since(support.together, with_kernels=True)
    return str(first_release)


def _compiled(support: NetworkSupport) -> str:
    """The outcome under torch.compile, which is known only for the torch that ran."""
    observation = next((run for run in support.observations if run.mode is Mode.compile), None)
    if observation is None or observation.outcome is NetworkOutcome.not_installed:
        return "-"
    if observation.outcome is not NetworkOutcome.ran:
        return f"{observation.outcome.value} on {support.recorded}"
    lacking = len(observation.called.fell_back)
    return f"{support.recorded}: {lacking} fall back" if lacking else f"none on {support.recorded}"


def kernels_by_release(network_support: Sequence[NetworkSupport]) -> Table:
    """For each network and release the number of overloads without a kernel, in all modes but torch.compile."""
    releases = tuple(network_support[0].together) if network_support else ()
    rows = []
    for support in network_support:
        cells = []
        for overload_support in support.together.values():
            lacking, remaining = len(overload_support.lacking), len(overload_support.remaining)
            cells.append(
                (f"{lacking} > {remaining}" if overload_support.replaced else str(lacking))
                + "?" * bool(overload_support.unknown)
            )
        rows.append((support.network, *cells))
    return Table(
        "Overloads without a kernel, release by release",
        ("network", *releases),
        tuple(rows),
        "All modes but torch.compile together. `5 > 2`: two remain after `import mpsmith.kernels`. `?`: the release "
        "does not have an overload that was called, or makes it of others; what it calls instead is not known.",
    )


def lacking_operators(network_support: Sequence[NetworkSupport], release: str | None = None) -> Table:
    """For each lacking overload its releases, whether a kernel replaces it, and its networks.

    `release`: only overloads that lack a kernel there.
    """
    by_overload: dict[str, tuple[dict[str, None], dict[str, None], set[bool]]] = {}
    order = {name: number for number, name in enumerate(network_support[0].together)} if network_support else {}
    for support in network_support:
        for name, on in support.together.items():
            for overload in sorted(on.lacking) if release in (None, name) else ():
                releases, networks, replaced = by_overload.setdefault(overload, ({}, {}, set()))
                releases[name] = None
                networks[support.network] = None
                replaced.add(overload in on.replaced)
    rows = []
    for overload, (releases, networks, replaced) in sorted(by_overload.items()):
        spans = _spans(sorted(order[name] for name in releases), list(order))
        of = _some(list(networks), len(network_support))
        asked = release or network_support[0].recorded
        rows.append((overload, spans, "yes" if True in replaced else "", of, what_to_do(overload, asked)))
    titles = ("overload", "without a kernel in", "replaced by ours", "networks", "what to do")
    return Table("Which overloads", titles, tuple(rows), code=frozenset({"overload"}))


def what_to_do(overload: str, release: str) -> str:
    """The first step of the answer about an overload in a release; "" if its operator works there."""
    try:
        steps = replacements(answer(overload.split(".")[0], release))
    except MpsmithError:  # of another namespace
        return ""
    return steps[0].text if steps else ""


def _some(names: Sequence[str], of: int) -> str:
    """The names, or the first of many and their number."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} others, of {of}"


def _spans(positions: Sequence[int], names: Sequence[str]) -> str:
    """`1.12.1 to 2.0.1, 2.3.1` for the positions of releases."""
    spans: list[list[int]] = []
    for position in positions:
        if spans and spans[-1][1] == position - 1:
            spans[-1][1] = position
        else:
            spans.append([position, position])
    return ", ".join(names[a] if a == b else f"{names[a]} to {names[b]}" for a, b in spans)


def runs(observations: Iterable[NetworkObservation]) -> Table:
    """For each finished run the numbers of overloads, and its fallbacks."""
    rows = []
    for run in observations:
        if run.outcome is NetworkOutcome.ran:
            rows.append(
                (run.network, run.mode.value, *_counts(run.called), _inside(run), _remaining(run), *_compilation(run))
            )
    return Table(
        "Each run",
        (
            *("network", "mode", "native", "composite", "fell back", "waits or CPU inside"),
            *("with kernels", "generated Metal", "graph breaks"),
        ),
        tuple(rows),
        "How many different overloads reached the device, and which fell back (calls); which wait for the GPU, or "
        "compute on the CPU inside, in some calls at least, as an audit of host code on the SIMULATED device showed; "
        "under torch.compile how many Metal kernels were generated, and how often Dynamo broke the graph.",
    )


def _counts(called: Called) -> tuple[str, str, str]:
    calls = ", ".join(f"{name} ({number})" for name, number in called.fell_back.items())
    return str(len(called.native)), str(len(called.composite)), calls or "0"


def _inside(observation: NetworkObservation) -> str:
    return ", ".join(sorted(observation.called.native.keys() & host_facts(observation.release).keys()))


def _remaining(observation: NetworkObservation) -> str:
    if observation.with_kernels is None:
        return ""
    if observation.kernels_reason:
        return observation.kernels_reason
    return ", ".join(observation.with_kernels.fell_back) or "0"


def _compilation(observation: NetworkObservation) -> tuple[str, str]:
    if observation.mode is not Mode.compile:
        return "", ""
    return str(observation.generated), str(len(observation.breaks))


def not_run(observations: Iterable[NetworkObservation]) -> Table:
    """Each unfinished run; one row for all networks that lack the same library."""
    rows = []
    absent: dict[str, list[str]] = {}
    for run in observations:
        if run.outcome is NetworkOutcome.not_installed:
            names = absent.setdefault(run.reason, [])
            names += [run.network] if run.network not in names else []
        elif run.outcome is not NetworkOutcome.ran:
            rows.append((f"{run.network}, {run.mode.value}", run.outcome.value, run.reason))
    rows += [(", ".join(names), "not run", reason) for reason, names in absent.items()]
    return Table("What did not run to its end", ("network", "outcome", "why"), tuple(rows))


def catalogue() -> Table:
    """Every network of the catalogue."""
    rows = tuple((network.name, network.title, network.library or "torch") for network in NETWORKS)
    return Table("The networks", ("network", "what it is", "of"), rows)
