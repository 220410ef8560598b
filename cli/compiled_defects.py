"""`mpsmith compiled`: what torch.compile generates wrongly for mps, shown again; and whether faults in it are found."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import MpsmithError
from .options import DEFAULT_STORE, AsJson, StorePath, values_of
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
        bool, typer.Option("--script", help="Print the program of one defect, which needs torch alone and a Mac.")
    ] = False,
    codegen: Annotated[
        list[str] | None,
        typer.Option(
            "--codegen",
            metavar="RELEASE",
            help="Also with the code generator of these releases, laid over the installed Inductor; repeated or joined"
            " by commas.",
        ),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="In a clone: keep what is seen, of the named defects or of all, and write docs/compiled_findings.md.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the programs that show what upstream's generated Metal gets wrong; exits with 1 where one shows otherwise."""
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
    installed = next(each for each in measured if not each.overlay)
    if not all(each.as_expected for each in installed.shown):
        raise typer.Exit(1)


@app.command()
def faults(
    markdown: Annotated[Path | None, typer.Option(help="Also write the table to this Markdown file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put faults into the code generator, one at a time; exits with 1 where ordinary cases do not find one."""
    from ..audit.releases.surface.native_functions import installed_release
    from ..audit.self_test.compiled.run import try_all
    from ..audit.self_test.compiled.table import FAULTS
    from ..registry.torch_release import public_version
    from ..reports.compiled_faults import compiled_faults_page, mode_of

    tried = try_all(FAULTS, say)
    if markdown is not None:
        markdown.write_text(compiled_faults_page(tried, public_version(installed_release())), encoding="utf-8")
    found = [each for each in tried if each.found]
    if as_json:
        from dataclasses import asdict

        rows = [asdict(each) | {"mode": mode_of(each)} for each in tried]
        print_json({"simulated": True, "found": len(found), "faults": rows})
    else:
        print(f"{len(found)} of {len(tried)} faults in the code generator found, on the SIMULATED mps device")
        for each in tried:
            if not each.found:
                print(f"not found: {each.fault.name}")
    if len(found) < len(tried):
        raise typer.Exit(1)


@app.command()
def found(
    store: Annotated[
        list[Path] | None,
        typer.Option("--store", metavar="FILE", help="A results store; repeated: of several [default: audit.sqlite]"),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table to this Markdown file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Which known defects audits under torch.compile found by themselves; exits with 1 where one is missed."""
    from ..audit.compiled.defects.table import DEFECTS
    from ..audit.findings.compiled.defect_matches import found_by_audits
    from ..audit.releases.surface.native_functions import installed_release
    from ..audit.store.store import Store
    from ..registry.torch_release import public_version
    from ..reports.compiled_found import compiled_found_data, compiled_found_page

    with ExitStack() as opened:
        stores = [opened.enter_context(Store.open(path)) for path in store or [DEFAULT_STORE]]
        seen = found_by_audits(stores, [defect.number for defect in DEFECTS])
    titles = {defect.number: defect.title for defect in DEFECTS}
    page = compiled_found_page(seen, titles, public_version(installed_release()))
    if markdown is not None:
        markdown.write_text(page, encoding="utf-8")
    if as_json:
        print_json(compiled_found_data(seen))
    else:
        print(page, end="")
    if not all(each.explained for each in seen.defects):
        raise typer.Exit(1)


@app.command()
def releases(
    store: StorePath = DEFAULT_STORE,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table to this Markdown file.")] = None,
    as_json: AsJson = False,
) -> None:
    """The audits of a store under torch.compile side by side, the newest with each release's code generator."""
    from ..audit.findings.compiled.generators import compared, generator_runs
    from ..audit.store.store import Store
    from ..reports.compiled_releases import compiled_releases_data, compiled_releases_page, compiled_releases_text

    with Store.open(store) as opened:
        counts = compared(generator_runs(opened))
    if markdown is not None:
        markdown.write_text(compiled_releases_page(counts), encoding="utf-8")
    if as_json:
        print_json(compiled_releases_data(counts))
    else:
        print(compiled_releases_text(counts))


def _chosen(defects: Sequence[Defect], numbers: Sequence[str]) -> list[Defect]:
    known = {defect.number: defect for defect in defects}
    unknown = [number for number in numbers if number not in known]
    if unknown:
        raise MpsmithError(f"there is no defect {unknown[0]}; there are {_numbers(defects)}")
    return [known[number] for number in numbers] if numbers else list(defects)


def _numbers(defects: Sequence[Defect]) -> str:
    return ", ".join(defect.number for defect in defects)


def _measured(defects: Sequence[Defect], releases: Sequence[str]) -> list[MeasuredRelease]:
    """What the programs show with the installed code generator and the others, the oldest first."""
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
    from ..audit.compiled.defects.table import DEFECTS
    from ..cache import PACKAGE, is_checkout
    from ..reports.compiled_findings import compiled_findings_page

    if not is_checkout():
        raise MpsmithError("--record writes into a clone of mpsmith's repository; this one is installed")
    anew = [kept(each) for each in measured]
    releases = anew if whole else joined(read(), anew)
    write(releases)
    page = PACKAGE / "docs" / "compiled_findings.md"
    page.write_text(compiled_findings_page(DEFECTS, releases), encoding="utf-8")
    say(f"wrote {page}")


def _as_json(measured: Sequence[MeasuredRelease]) -> dict[str, Any]:
    from dataclasses import asdict

    from ..audit.compiled.defects.measurement_file import kept

    return {"simulated": True, "releases": [asdict(kept(each)) for each in measured]}


def _as_text(measured: Sequence[MeasuredRelease]) -> str:
    from tabulate import tabulate

    able = [each for each in measured if not each.cannot]
    rows = [
        (shown.defect.number, shown.defect.title, *(each.shown[at].outcome.verdict.value for each in able))
        for at, shown in enumerate(able[0].shown)
    ]
    headers = ["", "on the SIMULATED mps device", *(f"{each.release}{' overlay' * each.overlay}" for each in able)]
    lines = [tabulate(rows, headers=headers)]
    lines += [f"torch {each.release}: {each.cannot}" for each in measured if each.cannot]
    lines += [
        f"{shown.defect.number} showed {shown.outcome.verdict.value}, not {shown.defect.verdict.value}:"
        f" {shown.outcome.reason}".rstrip(": ")
        for each in measured
        if not each.overlay
        for shown in each.shown
        if not shown.as_expected
    ]
    return "\n".join(lines)
