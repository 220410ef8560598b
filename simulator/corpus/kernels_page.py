"""Kernels that were run, as text: a table for a terminal, and a page for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from .executing import KernelRun
from .projects import Project

_INTRODUCTION = """\
# Kernels of public projects, run

Written by `mpsmith shader corpus-kernels --tree ... --output docs/metal_corpus_kernels.md`: kernels of the projects of
[metal_corpus.md](metal_corpus.md), run on the CPU (*simulated*) and compared with references in float64. How each is
called, and what it must give, is written in `simulator/corpus/recipes`; nothing of the projects' text is in this
repository. That a result agrees says that the kernel's logic and the simulator's agree, and nothing of Apple's
mathematics.

A recipe is for all kernels that follow one pattern: an operation in each type and layout. "Kernels" are those that the
project has, "run" those that were run, spread over their names. Some of these ran in `checked` as well, where each load
and store is checked.
"""


def counts(runs: Sequence[KernelRun]) -> list[dict[str, object]]:
    """A row for each recipe of each project."""
    rows = []
    for project, recipe, file in dict.fromkeys((r.project, r.recipe, r.file) for r in runs):
        own = [r for r in runs if (r.project, r.recipe, r.file) == (project, recipe, file)]
        fast = [r.outcome for r in own if r.mode == "fast"]
        rows.append(
            {
                "project": project,
                "file": file,
                "kernels": own[0].of,
                "what": recipe,
                "run": len(fast),
                "agree": fast.count("agrees"),
                "also checked": sum(r.mode == "checked" for r in own),
                "other": len([r for r in own if r.outcome != "agrees"]),
            }
        )
    return rows


def summary(runs: Sequence[KernelRun]) -> str:
    """One line: how many kernels ran and agreed."""
    fast = [r for r in runs if r.mode == "fast"]
    checked = [r for r in runs if r.mode == "checked"]
    agree = sum(r.outcome == "agrees" for r in fast)
    theirs = sum(r.outcome == "their defect" for r in fast)
    known = {(r.project, r.file, r.recipe): r.of for r in runs}
    return (
        f"{len(fast)} kernels of {len({r.project for r in fast})} projects ran: {agree} agree with their references, "
        f"{theirs} have a defect of their own, {len(fast) - agree - theirs} neither. "
        f"{len(checked)} of them ran in checked as well: {sum(r.outcome == 'agrees' for r in checked)} agree. "
        f"The recipes are for {sum(known.values()):,} kernels of these projects."
    )


def table(runs: Sequence[KernelRun]) -> str:
    """The counts for a terminal, what did not agree, and the summary."""
    others = [f"{r.outcome}: {r.project} {r.kernel} ({r.mode})\n  {r.reason}" for r in runs if r.outcome != "agrees"]
    return "\n".join([tabulate(counts(runs), headers="keys"), *others, summary(runs)])


def page(runs: Sequence[KernelRun], missing: Iterable[Project]) -> str:
    """The documentation's page."""
    parts = [_INTRODUCTION, summary(runs) + "\n", tabulate(counts(runs), headers="keys", tablefmt="github")]
    others = [r for r in runs if r.outcome != "agrees"]
    if others:
        rows = [
            {"project": r.project, "kernel": r.kernel, "mode": r.mode, "outcome": r.outcome, "why": r.reason}
            for r in others
        ]
        parts += ["\n## What does not agree\n", tabulate(rows, headers="keys", tablefmt="github")]
    absent = [f"{p.name} ({p.git}, {p.commit[:12]})" for p in missing]
    if absent:
        parts.append(f"\nNot run, for want of a checkout: {', '.join(absent)}.")
    return "\n".join(parts) + "\n"
