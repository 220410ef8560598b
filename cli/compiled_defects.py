"""`mpsmith compiled`: what torch.compile generates wrongly for mps, shown again; and whether faults in it are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import MpsmithError
from .options import AsJson, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.compiled.defects.defect import Defect
    from ..audit.compiled.defects.measuring import MeasuredRelease

app = typer.Typer(
    help="What torch.compile generates for mps: its known defects, and faults that the audit has to find.",
    no_args_is_help=True,
)


@app.command()
def defects(
    numbers: Annotated[
        list[str] | None, typer.Argument(metavar="[NUMBER]...", help="Which defects, such as U2; default: all.")
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="Print the program of one defect, which needs only torch and a Mac.")
    ] = False,
    codegen: Annotated[
        list[str] | None,
        typer.Option(
            "--codegen",
            metavar="RELEASE",
            help="Also with the code generator of these releases, overlaid on the installed one; repeated or joined"
            " by commas.",
        ),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="In a clone: store the outcomes of these defects, from which the page compiled_defects is made.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the programs that show known defects of generated Metal; exits with 1 if one gives another result."""
    from ..audit.compiled.defects.table import DEFECTS
    from ..audit.releases.wheel.fetch import require_version

    chosen = _chosen(DEFECTS, numbers or [])
    releases = values_of(codegen, "--codegen")
    for release in releases:
        require_version(release)
    if script:
        if len(chosen) != 1:
            raise MpsmithError(f"--script prints the program of one defect: name one of {_numbers(chosen)}")
        print(chosen[0].script(), end="")
        return
    if record and not releases:
        raise MpsmithError("--record keeps what defects show over releases: name some with --codegen")
    measured = _measured(chosen, releases)
    if record:
        _record(measured, whole=len(chosen) == len(DEFECTS))
    if as_json:
        print_json(_as_json(measured))
    else:
        print(_as_text(measured))
    installed = next(measured_release for measured_release in measured if not measured_release.overlay)
    if not all(defect_shown.as_expected for defect_shown in installed.shown):
        raise typer.Exit(1)


def _chosen(defects: Sequence[Defect], numbers: Sequence[str]) -> list[Defect]:
    by_number = {defect.number: defect for defect in defects}
    unknown = [number for number in numbers if number not in by_number]
    if unknown:
        raise MpsmithError(f"there is no defect {unknown[0]}; there are {_numbers(defects)}")
    return [by_number[number] for number in numbers] if numbers else list(defects)


def _numbers(defects: Sequence[Defect]) -> str:
    return ", ".join(defect.number for defect in defects)


def _measured(defects: Sequence[Defect], releases: Sequence[str]) -> list[MeasuredRelease]:
    """The programs' results with the installed code generator and others, the oldest first."""
    from ..audit.compiled.defects.measuring import measure
    from ..audit.releases.surface.native_functions import installed_release
    from ..audit.releases.surface.profiles import coverage_profile
    from ..registry.torch_release import is_older, public_version
    from ..simulator.device.loading import set_fallback_enabled
    from ..simulator.opening import DeviceKind, open_device

    device = open_device(DeviceKind.SIMULATED, coverage_profile)
    set_fallback_enabled(True)
    installed = public_version(installed_release())
    names = {*releases, installed}
    oldest_first = sorted(names, key=lambda name: sum(is_older(other, name) for other in names))
    return [measure(name, installed, defects, device.recorder, say) for name in oldest_first]


def _record(measured: Sequence[MeasuredRelease], *, whole: bool) -> None:
    from ..audit.compiled.defects.measurement_file import joined, kept, read, write
    from ..cache import is_checkout

    if not is_checkout():
        raise MpsmithError("--record writes into a clone of mpsmith's repository; this one is installed")
    anew = [kept(release) for release in measured]
    write(anew if whole else joined(read(), anew))


def _as_json(measured: Sequence[MeasuredRelease]) -> dict[str, Any]:
    from dataclasses import asdict

    from ..audit.compiled.defects.measurement_file import kept

    return {"simulated": True, "releases": [asdict(kept(release)) for release in measured]}


def _as_text(measured: Sequence[MeasuredRelease]) -> str:
    from tabulate import tabulate

    runnable = [release for release in measured if not release.error]
    rows = [
        (shown.defect.number, shown.defect.title, *(release.shown[at].outcome.verdict.value for release in runnable))
        for at, shown in enumerate(runnable[0].shown)
    ]
    headers = [
        "",
        "on the SIMULATED mps device",
        *(f"{release.release}{' overlay' * release.overlay}" for release in runnable),
    ]
    lines = [tabulate(rows, headers=headers)]
    lines += [f"torch {release.release}: {release.error}" for release in measured if release.error]
    lines += [
        f"{shown.defect.number} showed {shown.outcome.verdict.value}, not {shown.defect.verdict.value}:"
        f" {shown.outcome.reason}".rstrip(": ")
        for release in measured
        if not release.overlay
        for shown in release.shown
        if not shown.as_expected
    ]
    return "\n".join(lines)
