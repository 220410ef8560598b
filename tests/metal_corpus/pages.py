"""Results as text: tables for a terminal, and the pages docs/metal_corpus.md and docs/metal_corpus_kernels.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from .compiling import CompiledFile
from .executing import KernelRun
from .projects import Project

Rows = list[Mapping[str, object]]

FILES_INTRODUCTION = """\
# Metal of public projects

Written by `python -m metal_corpus compile --tree ... --output docs/metal_corpus.md` (with `PYTHONPATH=tests`): the
Metal files of these projects, compiled on the host (*simulated*). None of their source is in this repository.
"Accepted" says that a file compiles here, not that Apple's compiler ran; its functions with textures do not run. "Not
supported" is what the host lacks, such as MetalPerformancePrimitives. "Own mistake" is a file that is not valid Metal,
with its error.
"""
KERNELS_INTRODUCTION = """\
# Kernels of public projects, run

Written by `python -m metal_corpus run --output docs/metal_corpus_kernels.md` (with `PYTHONPATH=tests`): kernels of the
projects of [metal_corpus.md](metal_corpus.md) that a package index has, run on the CPU (*simulated*) and compared with
references in float64. `tests/metal_corpus/recipes` says how to call each kernel and what it must give. None of the
projects' source is in this repository. A kernel that agrees shows that its logic and the simulator's agree. It shows
nothing about Apple's mathematics.

A recipe matches all kernels of one name pattern: an operation in each type and layout. "Kernels" counts those that the
project has, "run" those that ran, spread over their names. Some of these ran in `checked` as well, where each load and
store is checked.
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


def kernel_counts(runs: Sequence[KernelRun]) -> Rows:
    """A row for each recipe of each project."""
    rows: Rows = []
    for project, recipe, file in dict.fromkeys((r.project, r.recipe, r.file) for r in runs):
        of_recipe = [r for r in runs if (r.project, r.recipe, r.file) == (project, recipe, file)]
        fast = [r.outcome for r in of_recipe if r.mode == "fast"]
        rows.append(
            {
                "project": project,
                "file": file,
                "kernels": of_recipe[0].matching,
                "what": recipe,
                "run": len(fast),
                "agree": fast.count("agrees"),
                "also checked": sum(r.mode == "checked" for r in of_recipe),
                "other": sum(r.outcome != "agrees" for r in of_recipe),
            }
        )
    return rows


def kernel_failures(runs: Sequence[KernelRun]) -> Rows:
    """A row for each run that did not agree."""
    return [
        {"project": r.project, "kernel": r.kernel, "mode": r.mode, "outcome": r.outcome, "why": r.reason}
        for r in runs
        if r.outcome != "agrees"
    ]


def table(counts: Rows, failures: Rows) -> str:
    """The counts for a terminal, then each failure with its reason."""
    lines = [": ".join(map(str, row.values())) for row in failures]
    return "\n".join([tabulate(counts, headers="keys"), *lines])


def page(introduction: str, counts: Rows, failures: Rows, missing: Sequence[Project]) -> str:
    """A page of the documentation."""
    parts = [introduction, tabulate(counts, headers="keys", tablefmt="github")]
    if failures:
        parts += ["\n## Failures\n", tabulate(failures, headers="keys", tablefmt="github")]
    if missing:
        absent = ", ".join(f"{p.name} ({p.git}, {p.commit[:12]})" for p in missing)
        parts.append(f"\nLeft out because there was no checkout: {absent}.")
    return "\n".join(parts) + "\n"
