"""`mpsmith kernels backlog`: what audits with kernels say of all that torch lacks on mps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson
from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.backlog import Backlog, BacklogStanding

Stores = Annotated[
    list[Path],
    typer.Argument(metavar="STORE...", help="Stores that `mpsmith audit --with-kernels --store` wrote, one a release."),
]


# Of a message so much is shown.
_MESSAGE = 90


def backlog(
    stores: Stores,
    markdown: Annotated[bool, typer.Option("--markdown", help="A Markdown page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say of every overload that falls back or is refused on a release what is left of it with our kernels.

    Exits 1 where one of them still falls back or is refused, or a case is left that no rule explains.
    """
    from ..kernels.verification.backlog import backlog_of

    found = sorted((backlog_of(path) for path in stores), key=lambda each: each.release)
    if as_json:
        print_json([asdict(each) for each in found])
    elif markdown:
        typer.echo("\n".join(_page(found)))
    else:
        typer.echo("\n".join(_tables(found, "simple")))
    if any(each.left or each.explanation.unexplained for each in found):
        raise typer.Exit(1)


def _page(found: Sequence[Backlog]) -> Iterator[str]:
    device = "the SIMULATED mps device" if any(each.simulated for each in found) else "an mps device"
    yield "# What torch lacks on mps, with and without our kernels"
    yield ""
    yield "For each release"
    yield ""
    yield "```"
    for each in found:
        yield f"mpsmith audit --with-kernels --profile {each.release} --store {each.release}.sqlite"
    yield "```"
    yield ""
    yield f"ran on {device}, and `mpsmith kernels backlog *.sqlite --markdown` writes this page."
    yield "An overload is listed where a case fell back to the CPU for it or was refused without our kernels."
    yield "`12 > 0`: of 12 such cases none is left with them. `-`: no case lacked it on this release. Cases that call"
    yield "several overloads count for each."
    yield ""
    yield from _tables(found, "github")


def _tables(found: Sequence[Backlog], style: str) -> Iterator[str]:
    from tabulate import tabulate

    yield from _heading(style, "Each release")
    heads = (
        "release",
        "audited",
        "lacking overloads",
        "still lacking",
        "cases with our kernels",
        "left",
        "without a rule",
    )
    yield tabulate([_release_row(each) for each in found], headers=heads, tablefmt=style)
    yield ""
    yield from _heading(style, "Each overload")
    releases = [each.release for each in found]
    yield tabulate(_rows(found), headers=("overload", "family", *releases), tablefmt=style)
    rules = list(_rules(found))
    if rules:
        yield ""
        yield from _heading(style, "What is left, and why")
        yield tabulate(rules, headers=("rule", "reason", "entries", *releases), tablefmt=style)
    left = list(_without_a_rule(found))
    if left:
        yield ""
        yield from _heading(style, "What is left without a rule")
        yield tabulate(left, headers=("entry", "verdict", "says, such as", *releases), tablefmt=style)


def _without_a_rule(found: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    """Cases of one entry and verdict, whatever they say, with the message of the first."""
    messages: dict[tuple[str, str], str] = {}
    counts: list[Counter[tuple[str, str]]] = [Counter() for _ in found]
    for each, counted in zip(found, counts, strict=True):
        for one in each.explanation.unexplained:
            key = (one.entry, one.verdict.value)
            message = one.message.replace("|", "/")
            messages.setdefault(
                key, message if len(message) <= _MESSAGE else message[:_MESSAGE].rpartition(" ")[0] + " ..."
            )
            counted[key] += one.cases
    for key in sorted(messages):
        yield *key, messages[key], *(str(counted[key]) if counted[key] else "-" for counted in counts)


def _heading(style: str, title: str) -> tuple[str, ...]:
    return (f"## {title}", "") if style == "github" else (title,)


def _release_row(each: Backlog) -> tuple[object, ...]:
    said = each.explanation
    return (
        each.release,
        each.selection,
        len(each.overloads),
        len(each.left),
        each.executed,
        said.non_passes,
        said.unexplained_cases,
    )


def _rows(found: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    from ..kernels.verification.backlog import family_of

    for name in sorted({name for each in found for name in each.overloads}):
        cells = (_cell(each.overloads.get(name)) for each in found)
        yield name.removeprefix("aten::"), family_of(name), *cells


def _cell(standing: BacklogStanding | None) -> str:
    from ..kernels.verification.backlog import LACKING

    if standing is None:
        return "-"
    lacking = sum(standing.left.get(verdict, 0) for verdict in LACKING)
    others = [f"{n} {verdict.value}" for verdict, n in standing.left.items() if verdict not in LACKING]
    return ", ".join([f"{standing.lacking} > {lacking}", *others])


def _rules(found: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    uses = [{rule.name: rule for rule in each.explanation.rules} for each in found]
    for name in sorted({name for each in uses for name in each}):
        rules = [each.get(name) for each in uses]
        known = [rule for rule in rules if rule is not None]
        entries = sorted({entry for rule in known for entry in rule.entries})
        shown = ", ".join(entries[:4]) + (f" and {len(entries) - 4} more" if len(entries) > 4 else "")
        counts = (str(rule.total) if rule is not None else "-" for rule in rules)
        yield name, known[0].reason, shown, *counts
