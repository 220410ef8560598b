"""The code generators of several releases side by side, in the terminal, as Markdown and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

if TYPE_CHECKING:
    from ..audit.findings.compiled_releases import GeneratorCounts

HEADERS = ("code generator of torch", "operators", "lowered", "right", "wrong", "otherwise not right")
# So many names are shown in a line.
MOST_NAMES = 40


def compiled_releases_text(counts: Sequence[GeneratorCounts]) -> str:
    """The table and what each release mended and broke, for the terminal."""
    return "\n".join([tabulate([_row(each) for each in counts], headers=HEADERS), *_changes(counts)])


def compiled_releases_page(counts: Sequence[GeneratorCounts]) -> str:
    """The same as Markdown."""
    installed = next((each.run.release for each in counts if not each.run.overlay), "")
    lines = [
        "# torch.compile's Metal for mps, release by release",
        "",
        f"Simulated. The code generator of each release laid over the Inductor of torch {installed}, an *overlay* and"
        " no release as anybody has it; the cases are those that all of these audits executed. *Lowered*: generated"
        " Metal, right in all cases; *right*: right in all cases, whoever computes.",
        "",
        tabulate([_row(each) for each in counts], headers=HEADERS, tablefmt="github"),
        "",
        *(f"- {line}" for line in _changes(counts)),
    ]
    return "\n".join(lines) + "\n"


def compiled_releases_data(counts: Sequence[GeneratorCounts]) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "simulated": True,
        "releases": [
            {
                "release": each.run.release,
                "overlay": each.run.overlay,
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
    name = f"{counts.run.release} (overlay)" if counts.run.overlay else counts.run.release
    return name, counts.operators, counts.lowered, counts.right, counts.wrong, counts.others


def _changes(counts: Sequence[GeneratorCounts]) -> list[str]:
    lines = []
    for each in counts:
        for word, names in (("mended", each.mended), ("broke", each.broken)):
            if names:
                more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
                lines.append(f"{each.run.release} {word} {', '.join(names[:MOST_NAMES])}{more}")
    return lines
