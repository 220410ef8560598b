"""The code generators of several releases side by side, in the terminal, as Markdown and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from .markdown import unpadded

if TYPE_CHECKING:
    from ..audit.findings.compiled.generators import GeneratorCounts

HEADERS = ("code generator of torch", "operators", "lowered", "right", "wrong", "otherwise not right")
COMMANDS = """mpsmith audit --compile --sources 'compiled situations' --dtypes float32,int64,uint8 --store r.sqlite
# and once more with --codegen 2.15.0, and each other release
mpsmith compiled releases --store r.sqlite --markdown docs/compiled_releases.md"""
# So many names are shown in a line.
MOST_NAMES = 40


def compiled_releases_text(counts: Sequence[GeneratorCounts]) -> str:
    """The table and what each release mended and broke, for the terminal."""
    return "\n".join([tabulate([_row(each) for each in counts], headers=HEADERS), *_changes(counts)])


def compiled_releases_page(counts: Sequence[GeneratorCounts]) -> str:
    """The same as Markdown."""
    under = ", ".join(dict.fromkeys(each.run.base for each in counts if each.run.overlay))
    lines = [
        "# torch.compile's Metal for mps, release by release",
        "",
        f"Simulated. *Overlay*: the code generator of a release laid over the Inductor of torch {under}, and no release"
        " as anybody has it. The cases are those that all of these audits executed. *Lowered*: generated"
        " Metal, right in all cases; *right*: right in all cases, whoever computes.",
        "",
        "```",
        COMMANDS,
        "```",
        "",
        unpadded(tabulate([_row(each) for each in counts], headers=HEADERS, tablefmt="pipe")),
        "",
        *(f"- {line}" for line in _changes(counts)),
    ]
    differing = _differing(counts)
    if differing:
        headers = ["operator", *(_name(each) for each in counts)]
        table = unpadded(tabulate(differing, headers=headers, tablefmt="pipe"))
        lines += ["", "## Operators that differ", "", "The worst verdict of an operator's cases.", "", table]
    return "\n".join(lines) + "\n"


def _differing(counts: Sequence[GeneratorCounts]) -> list[list[str]]:
    """The operators that are not the same in all audits, with their verdict in each."""
    rows = []
    for name in sorted(counts[0].verdicts):
        verdicts = [each.verdicts[name].value for each in counts]
        if len(set(verdicts)) > 1:
            rows.append([f"`{name}`", *verdicts])
    return rows


def compiled_releases_data(counts: Sequence[GeneratorCounts]) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "simulated": True,
        "releases": [
            {
                "release": each.run.release,
                "overlay": each.run.overlay,
                "base": each.run.base,
                "operators": each.operators,
                "lowered": each.lowered,
                "right": each.right,
                "wrong": each.wrong,
                "others": each.others,
                "mended": list(each.mended),
                "broken": list(each.broken),
            }
            for each in counts
        ],
    }


def _row(counts: GeneratorCounts) -> tuple[str, int, int, int, int, int]:
    return _name(counts), counts.operators, counts.lowered, counts.right, counts.wrong, counts.others


def _name(counts: GeneratorCounts) -> str:
    return f"{counts.run.release} (overlay)" if counts.run.overlay else counts.run.release


def _changes(counts: Sequence[GeneratorCounts]) -> list[str]:
    lines = []
    for each in counts:
        for word, names in (("mended", each.mended), ("broke", each.broken)):
            if names:
                more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
                lines.append(f"{_name(each)} {word} {', '.join(names[:MOST_NAMES])}{more}")
    return lines
