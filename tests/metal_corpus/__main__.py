"""Compile the Metal files of public projects; exit with 1 if one is refused.

PYTHONPATH=tests python -m metal_corpus whisper.cpp --tree mlx=FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mpsmith.simulator.metal import METAL_VERSIONS

from .compiling import CompiledFile, compile_project
from .pages import file_counts, file_failures, page, table
from .projects import Project, parse_trees, select_projects, tree_of


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="metal_corpus", description="Compile Metal of public projects.")
    parser.add_argument("project", nargs="*", help="only these projects")
    parser.add_argument("--tree", action="append", default=[], metavar="PROJECT=FOLDER", help="a checkout of a project")
    parser.add_argument("--metal", choices=METAL_VERSIONS, help="the strict check for this version")
    parser.add_argument("--output", type=Path, help="write the page of the documentation")
    options = parser.parse_args(words)
    trees = parse_trees(options.tree)
    files: list[CompiledFile] = []
    missing: list[Project] = []
    for project in select_projects(options.project):
        folder = trees.get(project.name) or tree_of(project)
        if folder is None:
            missing.append(project)
            print(f"{project.name}: check out {project.git} at {project.commit}; give --tree", file=sys.stderr)
        else:
            files += compile_project(project, folder, options.metal)
    counts, failures = file_counts(files), file_failures(files)
    print(table(counts, failures))
    if options.output:
        options.output.write_text(page(counts, failures, missing), encoding="utf-8")
    return int(any(file.result == "refused" for file in files))


if __name__ == "__main__":
    sys.exit(main())
