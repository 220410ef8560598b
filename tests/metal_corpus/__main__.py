"""Compile or run the Metal kernels of public projects; exit with 1 if one fails.

PYTHONPATH=tests python -m metal_corpus compile whisper.cpp --tree mlx=FOLDER
PYTHONPATH=tests python -m metal_corpus run mccl --each 12 --checked 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .compiling import CompiledFile, compile_project
from .executing import KernelRun, execute_project
from .pages import (
    FILES_INTRODUCTION,
    KERNELS_INTRODUCTION,
    file_counts,
    file_failures,
    kernel_counts,
    kernel_failures,
    page,
    table,
)
from .projects import Project, parse_trees, select_projects, tree_of
from .recipes import RECIPES


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="metal_corpus", description="Compile or run Metal of public projects.")
    parser.add_argument("action", choices=("compile", "run"))
    parser.add_argument("project", nargs="*", help="only these projects")
    parser.add_argument("--tree", action="append", default=[], metavar="PROJECT=FOLDER", help="a checkout of a project")
    parser.add_argument("--each", type=int, default=8, help="kernels to run for each recipe; 0 for all")
    parser.add_argument("--checked", type=int, default=1, help="how many of these to run in checked mode as well")
    parser.add_argument("--output", type=Path, help="write the page of the documentation")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parse(words)
    trees = parse_trees(options.tree)
    selected = select_projects(options.project)
    if options.action == "run":
        selected = [project for project in selected if any(project.name == recipe.project for recipe in RECIPES)]
    files: list[CompiledFile] = []
    runs: list[KernelRun] = []
    missing: list[Project] = []
    for project in selected:
        folder = trees.get(project.name) or tree_of(project)
        if folder is None:
            missing.append(project)
            print(f"{project.name}: check out {project.git} at {project.commit}; give --tree", file=sys.stderr)
        elif options.action == "compile":
            files += compile_project(project, folder)
        else:
            runs += execute_project(project, folder, options.each, options.checked, RECIPES)
    if options.action == "compile":
        introduction, counts, failures = FILES_INTRODUCTION, file_counts(files), file_failures(files)
    else:
        introduction, counts, failures = KERNELS_INTRODUCTION, kernel_counts(runs), kernel_failures(runs)
    print(table(counts, failures))
    if options.output:
        options.output.write_text(page(introduction, counts, failures, missing), encoding="utf-8")
    failed = any(f.result == "refused" for f in files) or any(r.outcome in ("disagrees", "stopped") for r in runs)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
