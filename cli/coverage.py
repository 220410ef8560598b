"""`mpsmith coverage`: what any macOS release of torch has kernels for, read from wheels without a Mac."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Operators, RegistryFolder, Release, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.releases.coverage import OverloadCoverage, ReleaseCoverage
    from ..audit.releases.coverage.table import AuditVerdicts

app = typer.Typer(help="Coverage of any macOS torch release, from its wheel.", invoke_without_command=True)

Wheel = Annotated[
    Path | None, typer.Option("--wheel", metavar="PATH", help="A wheel for macOS, or a folder with an unpacked one.")
]
WheelUrl = Annotated[
    str | None, typer.Option("--wheel-url", metavar="URL", help="A wheel on a server, read by HTTP Range.")
]
Fetch = Annotated[bool, typer.Option("--fetch", help="Read the release's wheel even if its data are at hand.")]
YamlOnly = Annotated[bool, typer.Option("--yaml-only", help="Leave the binary out; needs about 2 MB of the wheel.")]
Macos = Annotated[float, typer.Option("--macos", help="The version of macOS for upstream's expected failures.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="A Markdown table.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")]


@app.callback()
def coverage(
    context: typer.Context,
    torch: Release = None,
    wheel: Wheel = None,
    wheel_url: WheelUrl = None,
    fetch: Fetch = False,
    yaml_only: YamlOnly = False,
    macos: Macos = 15.0,
    ops: Operators = None,
    missing: Annotated[bool, typer.Option("--missing", help="Only overloads without a kernel.")] = False,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Say for every ATen overload whether a release has an MPS kernel, by its yaml and by its binary."""
    if context.invoked_subcommand is not None:
        return
    from ..audit.releases.coverage import lacking
    from ..audit.releases.coverage.sources import named_coverage

    found = named_coverage(torch=torch, wheel=wheel, url=wheel_url, fetch=fetch, yaml_only=yaml_only, macos=macos)
    chosen = _selected(found.overloads, values_of(ops, "--ops"))
    if missing:
        chosen = lacking(chosen)
    if as_json:
        text = _json(_release_json(found, chosen))
    elif ops or missing:
        text = _overload_table(chosen)
    else:
        text = _summary(found)
    _write(text, output)


@app.command()
def operators(
    torch: Release = None,
    wheel: Wheel = None,
    wheel_url: WheelUrl = None,
    fetch: Fetch = False,
    yaml_only: YamlOnly = False,
    macos: Macos = 15.0,
    ops: Operators = None,
    drift: Annotated[bool, typer.Option("--drift", help="Only where upstream's lists and kernels disagree.")] = False,
    registry: RegistryFolder = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Verdicts of this store's newest run; default: the registry's."),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_markdown: AsMarkdown = False,
    output: Output = None,
) -> None:
    """One table per operator: native since when, kernel dtypes, expected failures, audit, registry, replacement."""
    from ..audit.releases import data as release_data
    from ..audit.releases.coverage.sources import named_coverage
    from ..audit.releases.coverage.table import operator_rows
    from ..audit.releases.surface.native_functions import functional_name
    from ..registry.files import load

    found = named_coverage(torch=torch, wheel=wheel, url=wheel_url, fetch=fetch, yaml_only=yaml_only, macos=macos)
    audit = _verdicts(store) if store is not None else None
    rows = operator_rows(found, release_data.load(), load(registry), audit)
    names = {functional_name(overload.name) for overload in _selected(found.overloads, values_of(ops, "--ops"))}
    rows = [row for row in rows if row.operator in names and (row.drift or not drift)]
    if as_json:
        from dataclasses import asdict

        text = _json({"release": found.release, "source": found.source, "operators": [asdict(row) for row in rows]})
    else:
        from .coverage_text import operator_table

        text = operator_table(rows, "csv" if as_csv else "markdown" if as_markdown else "terminal")
    _write(text, output)


@app.command()
def page(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")],
    torch: Release = None,
    registry: RegistryFolder = None,
    as_json: AsJson = False,
) -> None:
    """One HTML page: the chart and figures of all releases and the joined table of one, with search."""
    from ..audit.releases import data as release_data
    from ..audit.releases.coverage.history import history as figures
    from ..audit.releases.coverage.sources import named_coverage
    from ..audit.releases.coverage.table import operator_rows
    from ..registry.files import load
    from ..reports.coverage_page import page as rendered

    data = release_data.load()
    found = named_coverage(torch=torch)
    rows = operator_rows(found, data, load(registry))
    _write(rendered(found, rows, figures(data)), output)
    if as_json:
        print_json({"file": str(output), "release": found.release, "operators": len(rows)})


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A release, or the path of a wheel.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A later release, or the path of a wheel.")],
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Show what changed between two releases: kernels gained and lost, overloads added and removed."""
    from dataclasses import asdict

    from ..audit.releases.coverage.history import compare

    changes = compare(_either(before), _either(after))
    if as_json:
        text = _json(asdict(changes))
    else:
        from .coverage_text import diff_text

        text = diff_text(changes)
    _write(text, output)


@app.command()
def history(
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the chart into this file.")] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_markdown: AsMarkdown = False,
    output: Output = None,
) -> None:
    """The figures of every release since 1.12.1, and a chart of them."""
    from dataclasses import asdict

    from ..audit.releases import data as release_data
    from ..audit.releases.coverage.history import history as figures

    counts = figures(release_data.load())
    if svg is not None:
        from ..reports.coverage_chart import history_svg

        _write(history_svg(counts), svg)
        return
    if as_json:
        text = _json([asdict(count) for count in counts])
    else:
        from .coverage_text import history_table

        text = history_table(counts, "csv" if as_csv else "markdown" if as_markdown else "terminal")
    _write(text, output)


@app.command()
def badge(torch: Release = None, as_json: AsJson = False, output: Output = None) -> None:
    """An SVG badge: how many of the operators that need a kernel have one."""
    from ..audit.releases.coverage.sources import named_coverage
    from ..audit.releases.coverage.table import Standing, standing_of
    from ..reports.coverage_chart import badge_svg

    found = named_coverage(torch=torch)
    standings = [standing_of(overloads) for overloads in found.by_operator.values()]
    native = sum(standing in (Standing.NATIVE, Standing.PARTLY_NATIVE) for standing in standings)
    lacking = sum(standing in (Standing.MISSING, Standing.FALLS_BACK) for standing in standings)
    figures = {"release": found.release, "native": native, "missing": lacking}
    _write(_json(figures) if as_json else badge_svg(native, lacking), output)


@app.command()
def rebuild(
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="[RELEASE]...", help="Add these to the releases of the data.")
    ] = None,
    wheels: Annotated[
        Path | None, typer.Option("--wheels", metavar="DIR", help="Take wheels from this folder, not from the index.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the committed release data again, from wheels. Needs about 100 MB a release that is not in the cache."""
    from rich.console import Console
    from rich.progress import track

    from ..audit.releases import data as release_data
    from ..audit.releases.wheel.archive import open_path
    from ..audit.releases.wheel.build import combine, read_wheel
    from ..cache import is_checkout
    from ..errors import MpsmithError

    if not is_checkout():
        raise MpsmithError("the release data are files of mpsmith's repository; rebuild them in a clone of it")
    recorded = [facts.release for facts in release_data.load_facts()]
    wanted = list(dict.fromkeys([*recorded, *(releases or [])]))
    readings = [
        read_wheel(open_path(_wheel_of(release, wheels)))
        for release in track(wanted, description="reading wheels", console=Console(stderr=True))
    ]
    release_data.save(combine(readings))
    if as_json:
        print_json({"folder": str(release_data.FOLDER), "releases": wanted})
    else:
        print(f"wrote the data of {len(readings)} releases to {release_data.FOLDER}")


def _verdicts(path: Path) -> AuditVerdicts:
    """What the newest run of a results store says of each operator."""
    from ..audit.findings.summary import summarize
    from ..audit.releases.coverage.table import AuditVerdicts
    from ..audit.releases.surface import installed_surface
    from ..audit.store.store import Store

    with Store.open(path) as store:
        run = store.latest_run()
        summary = summarize(store, run, installed_surface())
    verdicts = {operator.name: operator.verdict.value for operator in summary.operators}
    grades = {operator.name: operator.grade.value for operator in summary.operators if operator.grade}
    return AuditVerdicts(verdicts, "simulated" if run.simulated else "mps", grades)


def _wheel_of(release: str, folder: Path | None) -> Path:
    from ..audit.releases.wheel.fetch import fetch_wheel
    from ..errors import MpsmithError

    if folder is None:
        return fetch_wheel(release)
    found = sorted(folder.glob(f"torch-{release}-*.whl"))
    if not found:
        raise MpsmithError(f"{folder} has no wheel of torch {release}")
    return found[0]


def _either(name: str) -> ReleaseCoverage:
    from ..audit.releases.coverage.sources import named_coverage, release_coverage

    path = Path(name)
    return named_coverage(wheel=path) if path.exists() or path.suffix == ".whl" else release_coverage(name)


def _selected(overloads: Sequence[OverloadCoverage], ops: Sequence[str]) -> list[OverloadCoverage]:
    from ..audit.releases.surface.name_patterns import select_names

    chosen = set(select_names([overload.name for overload in overloads], ops))
    return [overload for overload in overloads if overload.name in chosen]


def _release_json(found: ReleaseCoverage, overloads: Sequence[OverloadCoverage]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "release": found.release,
        "source": found.source,
        "facts": asdict(found.facts) if found.facts else None,
        "overloads": [asdict(overload) for overload in overloads],
        "expected_failures": [{**asdict(key), "dtypes": dtypes} for key, dtypes in sorted(found.failures.items())],
    }


def _overload_table(overloads: Sequence[OverloadCoverage]) -> str:
    from .coverage_text import overload_table

    return overload_table(overloads)


def _summary(found: ReleaseCoverage) -> str:
    from .coverage_text import summary

    return summary(found)


def _json(data: object) -> str:
    import json

    return json.dumps(data, indent=1) + "\n"


def _write(text: str, output: Path | None) -> None:
    from ..errors import MpsmithError

    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise MpsmithError(f"cannot write {output}: {error.strerror}") from None
