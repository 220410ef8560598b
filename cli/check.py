"""`mpsmith check`: prove on any machine that Objective-C++ and Metal source builds for a Mac."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Flags, Release, flags_of
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..scaffold.proof.check_results import CheckResult

NOT_RUN = "Checked by compiling and linking only: nothing was loaded or run on a Mac."
SIMULATED = "Run on mpsmith's simulated device: nothing was run on a Mac."


def check(
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="A .mm, .metal or .patch file, or a folder with such files.")
    ] = None,
    setup: Annotated[
        bool, typer.Option("--setup", help="Fetch the compiler, headers and libraries into the cache, once.")
    ] = False,
    torch: Release = None,
    metal: Annotated[
        str, typer.Option(help="Metal version to check for: 3.1 (macOS 14, the oldest of torch's wheels), 3.2 or 4.0.")
    ] = "3.1",
    flags: Flags = "",
    run: Annotated[
        bool, typer.Option("--run", help="Then build it for this machine's device and run its generated tests.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Type-check, compile and link for macOS, on a machine without a Mac; exits with 1 when something is wrong."""
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.proof.checking import check_files, files_to_check
    from ..scaffold.proof.metal_sources import metal_version
    from ..simulator.objc.compile_options import parse_options

    if setup:
        _set_up(torch)
    if path is None:
        if setup:
            return
        raise ScaffoldError("give a file or folder to check, or --setup to fetch the compiler")
    files = files_to_check(path)
    options = parse_options(flags_of(flags)).from_folder(Path.cwd())
    results = check_files(files, torch, metal=metal_version(metal), options=options, say=say)
    accepted = _print_json(results, path if run else None) if as_json else _print_text(results)
    if accepted and run and not as_json:
        accepted = _run(path)
    if not accepted:
        raise typer.Exit(1)


def _run(path: Path) -> bool:
    from ..scaffold.patch_build import try_scaffold

    trial = try_scaffold(path)
    typer.echo(f"{trial.folder}: {trial.summary}. {_where()}")
    return trial.accepted


def _where() -> str:
    import platform

    return "Run on this Mac." if platform.system() == "Darwin" else SIMULATED


def _set_up(release: str | None) -> None:
    from tabulate import tabulate

    from ..scaffold.proof.setup import COMPONENTS, set_up

    rows = [(component.name, component.source, component.licence) for component in COMPONENTS]
    typer.echo(tabulate(rows, headers=("what", "from", "licence")), err=True)
    toolchain = set_up(release, lambda line: typer.echo(line, err=True))
    typer.echo(f"ready to check against torch {toolchain.release}: mpsmith check PATH", err=True)


def _print_json(results: Iterable[CheckResult], to_run: Path | None) -> bool:
    """`to_run`: run its tests if all files were accepted."""
    listed = list(results)
    accepted = all(result.accepted for result in listed)
    data: dict[str, object] = {"note": NOT_RUN, "files": [result.as_json() for result in listed]}
    if accepted and to_run is not None:
        from ..scaffold.patch_build import try_scaffold

        trial = try_scaffold(to_run)
        counts = {"passed": trial.passed, "failed": trial.failed, "skipped": trial.skipped, "died": trial.died}
        data["run"] = {"accepted": trial.accepted, **counts, "note": _where()}
        accepted = trial.accepted
    print_json(data)
    return accepted


def _print_text(results: Iterable[CheckResult]) -> bool:
    counts = {"ok": 0, "refused": 0, "not checked": 0}
    for result in results:
        for finding in result.findings:
            typer.echo(str(finding))
        counts[_verdict(result)] += 1
        typer.echo(_summary(result))
    unchecked = f", {counts['not checked']} not checked" if counts["not checked"] else ""
    typer.echo(f"{counts['ok']} accepted, {counts['refused']} refused{unchecked}. {NOT_RUN}")
    return not counts["refused"] and not counts["not checked"]


def _verdict(result: CheckResult) -> str:
    if not result.checked:
        return "not checked"
    return "ok" if result.accepted else "refused"


def _summary(result: CheckResult) -> str:
    words = [", ".join(result.steps) or "nothing could be done"]
    if result.registers:
        words.append(f"registers {', '.join(result.registers)}")
    if result.cached:
        words.append("unchanged: answered from the cache")
    return f"{result.path}: {_verdict(result)} ({'; '.join(words)})"
