"""`mpsmith shader`: check and run Metal source on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson
from .printing import counted, print_json, say

app = typer.Typer(
    name="shader",
    help="Check and run Metal source without a Mac. What runs is simulated on the CPU.",
    no_args_is_help=True,
)

_Include = Annotated[
    list[Path] | None, typer.Option("--include", "-I", help="One more folder for #include.", show_default=False)
]
_File = Annotated[Path, typer.Argument(metavar="FILE.metal", help="Metal source.", show_default=False)]


@app.command()
def check(
    file: _File,
    strict: Annotated[
        bool, typer.Option(help="Also compile with real address spaces; pointers must name theirs.")
    ] = True,
    include: _Include = None,
    as_json: AsJson = False,
) -> None:
    """Compile a Metal program and print what is wrong with it; exit with 1 if there is an error."""
    from ..simulator.metal import check as find_problems
    from ..simulator.metal.diagnostics import format_report

    source = _read(file)
    found = find_problems(source, file, strict=strict, include=include or [])
    errors = sum(d.severity == "error" for d in found)
    if as_json:
        print_json([asdict(problem) for problem in found])
    else:
        report = format_report(found, {str(file): source.split("\n")})
        if report:
            typer.echo(report)
        warnings = len(found) - errors
        typer.echo(f"{file}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    if errors:
        raise typer.Exit(1)


@app.command()
def run(
    file: _File,
    kernel: Annotated[str, typer.Argument(help="The kernel's name (host_name, if it has one).", show_default=False)],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            help="One for each buffer, in order: a number (2.5, 7), an array (float[1024], float[4,4]:random, "
            "int[8]:arange, half[2]:ones) or @FILE.npy.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        str | None, typer.Option(help="Threads in all, such as 1024 or 64,64 [default: one an element].")
    ] = None,
    group_size: Annotated[str | None, typer.Option(help="Threads of a threadgroup, such as 256 or 16,16.")] = None,
    cast: Annotated[
        list[str] | None, typer.Option("--cast", help="INDEX=fp16|bf16|int32|int16|int8|uint8 for a number.")
    ] = None,
    include: _Include = None,
    mode: Annotated[str, typer.Option(help="fast, schedules or checked.")] = "checked",
    out: Annotated[
        list[str] | None, typer.Option("--out", help="INDEX=FILE.npy: write that array after the run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one kernel of a Metal program on the CPU and print its arrays."""
    from ..simulator import metal
    from ..simulator.metal.command_line import (
        parse_argument,
        parse_casts,
        parse_outputs,
        parse_shape,
        plain_argument,
        preview,
    )
    from ..simulator.metal.modes import validate_mode

    library = metal.compile(_read(file), filename=file, include=include or [], mode=validate_mode(mode))
    values = [parse_argument(text) for text in arg or []]
    outputs = parse_outputs(out or [], values)
    getattr(library, kernel)(
        *values,
        threads=parse_shape(threads),
        group_size=parse_shape(group_size),
        arg_casts=parse_casts(cast or []),
    )
    for path, array in outputs:
        import numpy

        numpy.save(path, array)
    if as_json:
        written = [str(path) for path, _ in outputs]
        arguments = [plain_argument(value) for value in values]
        print_json({"simulated": True, "kernel": kernel, "mode": mode, "arguments": arguments, "written": written})
        return
    print(f"{kernel}: simulated on the CPU, mode {mode}")
    for index, value in enumerate(values):
        print(preview(index, value))
    for path, _ in outputs:
        print(f"wrote {path}")


@app.command()
def corpus(
    project: Annotated[
        list[str] | None, typer.Argument(metavar="[PROJECT]...", help="Only these projects.", show_default=False)
    ] = None,
    tree: Annotated[
        list[str] | None,
        typer.Option("--tree", metavar="PROJECT=FOLDER", help="A checkout of a project that no index has."),
    ] = None,
    fetch: Annotated[bool, typer.Option(help="Download what a package index has.")] = True,
    output: Annotated[Path | None, typer.Option(help="Write the page of the documentation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compile the Metal of public projects and print which files are accepted; exit with 1 if one is refused."""
    from ..simulator.corpus.compiling import CompiledFile, compile_project
    from ..simulator.corpus.fetching import tree_of
    from ..simulator.corpus.page import page, table
    from ..simulator.corpus.projects import chosen, parse_trees

    trees = parse_trees(tree or [])
    results: list[CompiledFile] = []
    missing = []
    for one in chosen(project or []):
        folder = trees.get(one.name) or tree_of(one, fetch)
        if folder is None:
            missing.append(one)
            say(f"{one.name}: not here; check out {one.git} at {one.commit} and give --tree {one.name}=FOLDER")
            continue
        say(f"{one.name} {one.version}: compiling")
        results += compile_project(one, folder)
    if as_json:
        print_json([asdict(result) for result in results])
    else:
        print(table(results))
    if output:
        output.write_text(page(results, missing), encoding="utf-8")
    if any(result.standing == "refused" for result in results):
        raise typer.Exit(1)


@app.command(name="corpus-kernels")
def corpus_kernels(
    project: Annotated[
        list[str] | None, typer.Argument(metavar="[PROJECT]...", help="Only these projects.", show_default=False)
    ] = None,
    tree: Annotated[
        list[str] | None,
        typer.Option("--tree", metavar="PROJECT=FOLDER", help="A checkout of a project that no index has."),
    ] = None,
    fetch: Annotated[bool, typer.Option(help="Download what a package index has.")] = True,
    each: Annotated[int, typer.Option(min=0, help="Kernels to run of each recipe; 0 for all.")] = 8,
    checked: Annotated[int, typer.Option(min=0, help="How many of these to run in checked as well.")] = 1,
    output: Annotated[Path | None, typer.Option(help="Write the page of the documentation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run kernels of public projects and compare them with references; exit with 1 if one disagrees or is stopped."""
    from ..simulator.corpus.executing import KernelRun, execute_project
    from ..simulator.corpus.fetching import tree_of
    from ..simulator.corpus.kernels_page import page, table
    from ..simulator.corpus.projects import chosen, parse_trees
    from ..simulator.corpus.recipes import RECIPES

    trees = parse_trees(tree or [])
    with_recipes = {recipe.project for recipe in RECIPES}
    runs: list[KernelRun] = []
    missing = []
    for one in chosen(project or []):
        if one.name not in with_recipes:
            continue
        folder = trees.get(one.name) or tree_of(one, fetch)
        if folder is None:
            missing.append(one)
            say(f"{one.name}: not here; check out {one.git} at {one.commit} and give --tree {one.name}=FOLDER")
            continue
        say(f"{one.name} {one.version}: running")
        own = list(execute_project(one, folder, each, checked, RECIPES))
        unused = {recipe.name for recipe in RECIPES if recipe.project == one.name} - {run.recipe for run in own}
        if unused:
            say(f"{one.name}: no kernel for {', '.join(sorted(unused))}")
        runs += own
    if as_json:
        print_json([asdict(run) for run in runs])
    else:
        print(table(runs))
    if output:
        output.write_text(page(runs, missing), encoding="utf-8")
    if any(run.outcome in ("disagrees", "stopped") for run in runs):
        raise typer.Exit(1)


def _read(file: Path) -> str:
    from ..errors import MpsmithError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise MpsmithError(f"cannot read {file}: {reason}") from error
