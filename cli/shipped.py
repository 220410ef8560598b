"""`mpsmith shipped`: the known wrong results of the compiled Metal kernels in a release's macOS wheel."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Release, require_writable
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.found_wrong import FoundWrong

app = typer.Typer(help="The compiled Metal kernels that a macOS release of torch ships.", no_args_is_help=True)


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
    if script is not None:
        require_writable("--script", script)
    _announce(release)
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


def _findings(findings: dict[str, FoundWrong], names: Sequence[str]) -> dict[str, FoundWrong]:
    from ..errors import MpsmithError, near

    unknown = next((name for name in names if name not in findings), None)
    if unknown is not None:
        raise MpsmithError(
            f"no finding is called {unknown}{near(unknown, findings, '`mpsmith shipped wrong` runs all')}"
        )
    return {name: findings[name] for name in names} or findings


def _announce(release: str) -> None:
    """Print what takes long the first time that a release is read."""
    from ..audit.releases.wheel.fetch import cached_wheel
    from ..audit.releases.wheel.shipped import cached_library, full_release

    if cached_library(release) is None:
        name = full_release(release)
        of = "the wheel in the cache" if cached_wheel(name) else "its wheel on the package index"
        say(f"taking the Metal kernels of torch {name} out of {of}; this is done once")
