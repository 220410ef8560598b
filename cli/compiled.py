"""The output of `mpsmith audit --compile` and `mpsmith report --compiled`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import MpsmithError
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..audit.findings.compiled.summary import CompiledSummary
    from ..audit.store.records import Run
    from ..audit.store.store import Store
    from ..registry.model import Device

FILES = {"markdown": "compiled.md", "json": "compiled.json"}


def show_ended(run: Run, store: Path, *, as_json: bool, folder: Path | None) -> None:
    """Print the results of a finished run, and write its report into `folder` if given."""
    from ..audit.store.store import Store
    from ..reports import compiled_report

    with Store.open(store) as opened:
        summary, eager = _found(opened, run)
    written = write_all(summary, eager, folder) if folder else []
    if as_json:
        print_json({"store": str(store), **compiled_report.as_data(summary, eager), "reports": [*map(str, written)]})
    else:
        print("\n".join(compiled_report.terminal_lines(summary, eager)))
        if written:
            print(f"report: {', '.join(map(str, written))}")
    if summary.executed == 0:
        say("error: no case was executed, so nothing is known")
        raise typer.Exit(1)


def render(store: Store, run: Run, form: str) -> str:
    """The report of a run in one format: terminal, markdown or json. Raises MpsmithError for any other."""
    from ..reports import compiled_report

    summary, eager = _found(store, run)
    if form == "terminal":
        return "\n".join(compiled_report.terminal_lines(summary, eager)) + "\n"
    if form == "markdown":
        return compiled_report.markdown(summary, eager)
    if form == "json":
        return compiled_report.as_json(summary, eager)
    raise MpsmithError(f"the report of compiled calls comes as terminal, markdown, json or all, not as {form}")


def write_all(summary: CompiledSummary, eager: Mapping[str, str], folder: Path) -> list[Path]:
    """Write the report in every format that has a file; return the paths."""
    from ..reports import compiled_report
    from ..reports.publish import write

    texts: dict[str, Any] = {
        "markdown": compiled_report.markdown(summary, eager),
        "json": compiled_report.as_json(summary, eager),
    }
    paths = [folder / FILES[form] for form in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write(path, text)
    return paths


def publish_compiled(store: Store, run: Run, folder: Path) -> list[Path]:
    """Write the report of a run under torch.compile into a folder. Return the written paths."""
    return write_all(*_found(store, run), folder)


def _found(store: Store, run: Run) -> tuple[CompiledSummary, Mapping[str, str]]:
    from ..audit.findings.compiled.summary import summarize_compiled

    return summarize_compiled(store, run), _eager()


def _eager() -> Mapping[str, str]:
    """The registry's measurements of eager calls; none if it has problems: the report is useful without them."""
    from ..registry.problems import RegistryError
    from ..reports.registry_join import measured_verdicts

    try:
        return measured_verdicts()
    except RegistryError as error:
        print(f"warning: the report leaves the registry out: {error}", file=sys.stderr)
        return {}


def sync_compiled_run(run: Run, store: Path, *, quiet: bool, registry: Path | None = None) -> None:
    """Write the results of a run under torch.compile into the registry, and print what that changed unless `quiet`."""
    from ..audit.findings.compiled.measurements import compiled_measurements
    from ..audit.findings.compiled.summary import summarize_compiled
    from ..audit.store.store import Store
    from ..registry.compiled_sync import sync_compiled
    from ..registry.files import load

    with Store.open(store) as opened:
        summary = summarize_compiled(opened, run)
    compiled = compiled_measurements(summary, load(registry).keys())
    environment = run.environment
    device: Device = "simulated" if run.simulated else "mps"
    report = sync_compiled(registry, device, str(environment["torch"]), environment.get("profile"), compiled)
    if not quiet:
        print(f"registry: {len(report.changed)} changed, {len(report.unchanged)} unchanged by what compiling showed")
        if report.unmeasured:
            print(f"  {len(report.unmeasured)} skipped: sync an audit without torch.compile first")
