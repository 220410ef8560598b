"""Results as text: a table for a terminal, and a page for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from .compiling import CompiledFile
from .projects import Project

_INTRODUCTION = """\
# Metal of public projects

Written by `mpsmith shader corpus --tree ... --output docs/metal_corpus.md`: the Metal files of these projects,
compiled on the host (*simulated*). Nothing of their text is in this repository. "Accepted" says that a file compiles
here, not that Apple's compiler ran. "Not supported" is what the host has nothing for, such as
MetalPerformancePrimitives. "Own mistake" is a file that is not Metal by its specification, with what is wrong in it.
"""


def summary(results: Sequence[CompiledFile]) -> list[dict[str, object]]:
    """A row for each project: how many of its files were accepted, are not supported, or refused."""
    rows: dict[str, dict[str, object]] = {}
    for result in results:
        of_project = [r.standing for r in results if r.project == result.project]
        rows[result.project] = {
            "project": result.project,
            "version": result.version,
            "files": len(of_project),
            "accepted": of_project.count("accepted"),
            "not supported": of_project.count("not supported"),
            "own mistake": of_project.count("own mistake"),
            "refused": of_project.count("refused"),
        }
    return list(rows.values())


def table(results: Sequence[CompiledFile]) -> str:
    """The summary for a terminal, and below it each file that was not accepted with its first error."""
    reasons = [f"{r.standing}: {r.project} {r.file}\n  {r.reason}" for r in results if r.standing != "accepted"]
    return "\n".join([tabulate(summary(results), headers="keys"), *reasons])


def page(results: Sequence[CompiledFile], missing: Iterable[Project]) -> str:
    """The documentation's page."""
    parts = [_INTRODUCTION, tabulate(summary(results), headers="keys", tablefmt="github")]
    refused = [r for r in results if r.standing != "accepted"]
    if refused:
        rows = [
            {"project": r.project, "file": r.file, "standing": r.standing, "first error": r.reason} for r in refused
        ]
        parts += ["\n## Not accepted\n", tabulate(rows, headers="keys", tablefmt="github")]
    absent = [f"{p.name} ({p.git}, {p.commit[:12]})" for p in missing]
    if absent:
        parts.append(f"\nNot compiled, for want of a checkout: {', '.join(absent)}.")
    return "\n".join(parts) + "\n"
