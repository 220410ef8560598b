"""Results as text: tables for a terminal, and the page docs/metal_corpus.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from .compiling import CompiledFile
from .projects import Project

Rows = list[Mapping[str, object]]

INTRODUCTION = """\
# Metal of public projects

Written by `python -m metal_corpus --tree ... --output docs/metal_corpus.md` (with `PYTHONPATH=tests`): the
Metal files of these projects, compiled on the host (*simulated*). None of their source is in this repository.
"Accepted" says that a file compiles here, not that Apple's compiler ran; its functions with textures do not run. "Not
supported" is what the host lacks, such as MetalPerformancePrimitives. "Own mistake" is a file that is not valid Metal,
with its error.
"""


def file_counts(results: Sequence[CompiledFile]) -> Rows:
    """A row for each project."""
    rows: Rows = []
    for project, version in dict.fromkeys((r.project, r.version) for r in results):
        of_project = [r.result for r in results if r.project == project]
        counts = {name: of_project.count(name) for name in ("accepted", "not supported", "own mistake", "refused")}
        rows.append({"project": project, "version": version, "files": len(of_project), **counts})
    return rows


def file_failures(results: Sequence[CompiledFile]) -> Rows:
    """A row for each file that was not accepted."""
    return [
        {"project": r.project, "file": r.file, "result": r.result, "first error": r.reason}
        for r in results
        if r.result != "accepted"
    ]


def table(counts: Rows, failures: Rows) -> str:
    """The counts for a terminal, then each failure with its reason."""
    lines = [": ".join(map(str, row.values())) for row in failures]
    return "\n".join([tabulate(counts, headers="keys"), *lines])


def page(counts: Rows, failures: Rows, missing: Sequence[Project]) -> str:
    """A page of the documentation."""
    parts = [INTRODUCTION, tabulate(counts, headers="keys", tablefmt="github")]
    if failures:
        parts += ["\n## Failures\n", tabulate(failures, headers="keys", tablefmt="github")]
    if missing:
        absent = ", ".join(f"{p.name} ({p.git}, {p.commit[:12]})" for p in missing)
        parts.append(f"\nLeft out because there was no checkout: {absent}.")
    return "\n".join(parts) + "\n"
