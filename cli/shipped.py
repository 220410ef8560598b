"""`mpsmith shipped`: the compiled Metal kernels in the macOS wheel of a torch release, read without a Mac."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Operators, Release, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.releases.wheel.kernel_arguments import ArgumentsDiff
    from ..audit.releases.wheel.shipped import ShippedLibrary
    from ..registry.found_wrong import FoundWrong

app = typer.Typer(help="The compiled Metal kernels that a macOS release of torch ships.", no_args_is_help=True)

Patterns = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KERNEL]...", help="Names of kernels, or patterns such as 'hypot_*' or '*'."),
]
WheelOrUrl = Annotated[
    str | None,
    typer.Option(
        "--wheel",
        metavar="PATH|URL",
        help="A wheel for macOS, a folder with one, a .dylib, a .metallib, or a wheel on a server.",
    ),
]
Library = Annotated[
    str | None,
    typer.Option(
        "--library", metavar="NAME", help="Another library of the binary, as metal_40; default: what the audit runs."
    ),
]


@app.command(name="list")
def list_kernels(
    patterns: Patterns = None,
    torch: Release = None,
    wheel: WheelOrUrl = None,
    library: Library = None,
    ops: Operators = None,
    as_json: AsJson = False,
) -> None:
    """The libraries of a release, or its kernels by name or operator: code size, hash and versions.

    The full name of one kernel shows its arguments: names, types, layouts of structs, access, threads.
    """
    operators = values_of(ops, "--ops")
    with _named(torch, wheel, library) as shipped:
        if patterns and len(patterns) == 1 and patterns[0] in shipped.file.names and not operators:
            _show_kernel(shipped, patterns[0], as_json)
            return
        names = _selected(shipped.file.names, patterns or (), operators)
        if as_json:
            from ..audit.releases.wheel.kernel_families import known_families
            from ..audit.releases.wheel.kernel_json import library_json

            print_json(library_json(shipped, names, known_families()))
        else:
            from .shipped_text import kernel_table, library_table

            filtered = bool(patterns or operators)
            typer.echo(kernel_table(shipped, names) if filtered else library_table(shipped), nl=False)


def _show_kernel(shipped: ShippedLibrary, name: str, as_json: bool) -> None:
    """What the code of a kernel says of its arguments."""
    from ..audit.releases.wheel.kernel_families import known_families

    if as_json:
        from ..audit.releases.wheel.kernel_json import signature_json

        print_json(signature_json(shipped, name, known_families()))
    else:
        from .shipped_text import signature_text

        typer.echo(signature_text(shipped, name, known_families()), nl=False)


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A release, or the path of a wheel.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A later release, or the path of a wheel.")],
    ops: Operators = None,
    arguments: Annotated[
        bool,
        typer.Option("--arguments", help="Also compare the arguments of all kernels with other code: takes a minute."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What changed between two releases: kernels that came, went or have other code; dtypes that operators gained."""
    from ..audit.releases.wheel.kernel_diff import compare_kernels
    from ..audit.releases.wheel.kernel_families import known_families

    operators = values_of(ops, "--ops")
    with _release_or_file(before) as old, _release_or_file(after) as new:
        chosen = set(_selected((*old.file.names, *new.file.names), (), operators))
        was, is_now = (
            [function for function in found.file.functions if function.name in chosen] for found in (old, new)
        )
        changes = compare_kernels(was, is_now, known_families())
        compared = _compared(old, new, changes.names("changed")) if arguments else None
        if as_json:
            from ..audit.releases.wheel.kernel_json import diff_json

            print_json(diff_json(old, new, changes, compared))
        else:
            from .shipped_text import diff_text

            typer.echo(diff_text(old, new, changes, compared, by_name=bool(operators)), nl=False)


@app.command()
def wrong(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[FINDING]...", help="Findings by name; default: all.")
    ] = None,
    torch: Release = None,
    script: Annotated[
        Path | None,
        typer.Option(
            "--script", metavar="FILE", help="Write a program that shows on a Mac whether each result is wrong."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the known wrong results of a release's kernels again: wrong, with which bits, or right."""
    from ..audit.releases.surface.native_functions import installed_release
    from ..audit.releases.wheel.shipped import full_release, shipped_library
    from ..audit.running.finding_launches import launch_findings
    from ..audit.shipped.finding_result import FindingResult
    from ..registry import found_wrong
    from ..registry.torch_release import public_version
    from .shipped_text import found_line

    release = full_release(torch or public_version(installed_release()))
    findings = _findings(found_wrong.of_kernels(), names or ())
    _announce(release, None)
    shipped_library(release)

    def show(result: FindingResult) -> None:
        if not as_json:
            typer.echo(found_line(result))

    results = launch_findings(release, list(findings.values()), show)
    if script is not None:
        from ..reports.pages.wrong_results_script import script_of
        from ..reports.publish import write

        write(script, script_of(release, findings, results))
    if as_json:
        print_json({"release": release, "findings": [asdict(result) for result in results]})


def _findings(known: dict[str, FoundWrong], names: Sequence[str]) -> dict[str, FoundWrong]:
    from ..errors import MpsmithError, near

    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise MpsmithError(f"no finding is called {unknown}{near(unknown, known, '`mpsmith shipped wrong` runs all')}")
    return {name: known[name] for name in names} or known


def _compared(old: ShippedLibrary, new: ShippedLibrary, names: Sequence[str]) -> list[ArgumentsDiff]:
    from rich.console import Console
    from rich.progress import track

    from ..audit.releases.wheel.kernel_arguments import compare_arguments

    terminal = Console(stderr=True)
    watched = track(names, description="comparing arguments", console=terminal, disable=not terminal.is_terminal)
    return compare_arguments(old.file, new.file, watched)


def _named(torch: str | None, wheel: str | None, section: str | None) -> AbstractContextManager[ShippedLibrary]:
    from ..audit.releases.surface.native_functions import installed_release
    from ..audit.releases.wheel.shipped import named_library

    if torch is None and wheel is None:
        torch = installed_release()
    if torch is not None:
        _announce(torch, section)
    if wheel is not None and "://" in wheel:
        return named_library(release=torch, url=wheel, section=section)
    return named_library(release=torch, path=None if wheel is None else Path(wheel), section=section)


def _release_or_file(name: str) -> AbstractContextManager[ShippedLibrary]:
    is_file = Path(name).exists() or name.endswith((".whl", ".dylib", ".metallib"))
    return _named(None, name, None) if is_file else _named(name, None, None)


def _announce(release: str, section: str | None) -> None:
    """Print what takes a while the first time that a release is read."""
    from ..audit.releases.wheel.fetch import cached_wheel
    from ..audit.releases.wheel.shipped import cached_library, full_release

    if cached_library(release, section) is None:
        name = full_release(release)
        of = "the wheel in the cache" if cached_wheel(name) else "its wheel on the package index"
        say(f"taking the Metal kernels of torch {name} out of {of}; this is done once")


def _selected(names: Sequence[str], patterns: Sequence[str], operators: Sequence[str]) -> list[str]:
    """The kernels that match a pattern and belong to one of the operators; all without patterns and operators."""
    from fnmatch import filter as matching

    from ..audit.releases.wheel.kernel_families import known_families
    from ..errors import MpsmithError, near

    chosen = list(dict.fromkeys(names))
    if patterns:
        matches = {pattern: set(matching(chosen, pattern)) for pattern in patterns}
        for pattern, found in matches.items():
            if not found:
                known = {*chosen, *map(known_families().family, chosen)}
                hint = near(pattern.strip("*?_"), known, "`mpsmith shipped list '*'` lists all")
                raise MpsmithError(f"no kernel matches {pattern}{hint}")
        chosen = [name for name in chosen if any(name in found for found in matches.values())]
    if operators:
        chosen = known_families().select(chosen, operators)
        if not chosen:
            raise MpsmithError(
                f"no kernel is named after {', '.join(operators)}: it runs on MPSGraph, in host code, or through "
                "kernels of another name"
            )
    return chosen
