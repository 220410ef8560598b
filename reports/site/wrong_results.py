"""Wrong results that mpsmith found in the kernels which releases ship, as a table."""

from __future__ import annotations

from collections.abc import Mapping

from ...registry.found_wrong import FoundWrong
from ..table import Cell, Table

ISSUES = "https://github.com/pytorch/pytorch/issues/"


def found_wrong_table(findings: Mapping[str, FoundWrong]) -> Table:
    """A row for each finding."""
    rows: list[tuple[Cell, ...]] = [
        (
            finding.name,
            ", ".join(finding.operators),
            finding.summary,
            finding.why,
            " to ".join(dict.fromkeys(finding.wrong_in)),
            finding.right_from or "",
            f"#{finding.issue}" if finding.issue else "",
        )
        for finding in findings.values()
    ]
    return Table(
        "Wrong results found in shipped kernels and host code",
        ("finding", "operators", "what", "why", "wrong in", "right from", "upstream"),
        tuple(rows),
        "Kernels out of the macOS wheels, and host code of releases, ran on the host's processor: no Mac was involved, "
        "and none has confirmed this. For kernels, `mpsmith shipped wrong --script check.py` writes a program that "
        "checks it on a Mac.",
        frozenset({"operators"}),
        {f"#{finding.issue}": f"{ISSUES}{finding.issue}" for finding in findings.values() if finding.issue},
    )
