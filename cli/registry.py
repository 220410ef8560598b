"""`mpsmith registry`: what we know of every operator. Checks it, shows it, sets what people decide, syncs audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .audit import DEFAULT_STORE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..registry.drift import Drift
    from ..registry.files import Registry
    from ..registry.model import Entry, Status
    from ..registry.sync import SyncReport

app = typer.Typer(name="registry", help="The registry: what we know of every operator on mps.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--registry",
        metavar="DIR",
        envvar="MPSMITH_REGISTRY",
        help="The registry's folder, not the package's own.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]

_LISTED_CHANGES = 20


@app.command()
def check(registry: Folder = None, as_json: AsJson = False) -> None:
    """Validate every file and list statuses that contradict measurements; exits with 1 when a file is wrong."""
    from ..registry import known_wrong
    from ..registry.drift import drift_of
    from ..registry.files import examine

    found, problems = examine(registry)
    corpus = known_wrong.corpus_folder(registry)
    # A registry of a few operators does not know which others there are.
    reports, report_problems = known_wrong.examine(corpus, list(found) if corpus == known_wrong.PACKAGED else ())
    problems = [*problems, *report_problems]
    drift = [drift for entry in found.values() if (drift := drift_of(entry))]
    if as_json:
        listed = [
            {"file": str(problem.path), "line": problem.line, "column": problem.column, "message": problem.message}
            for problem in problems
        ]
        _print_json(
            {
                "entries": len(found),
                "known_wrong": len(reports),
                "problems": listed,
                "drift": [_drift_json(one) for one in drift],
            }
        )
    else:
        for problem in problems:
            typer.echo(str(problem))
        _print_drift(drift)
        counts = [_counted(len(found), "valid entry", "valid entries")]
        counts += [_counted(len(reports), "known wrong report")] if reports else []
        typer.echo(", ".join([*counts, _counted(len(problems), "problem")]))
    if problems:
        raise typer.Exit(1)


@app.command()
def show(
    operator: Annotated[str, typer.Argument(metavar="OP", help="The operator, such as aten::mode or mode.")],
    registry: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of one operator, the upstream reports of wrong results included."""
    from ..registry.files import load
    from ..registry.known_wrong import corpus_folder, examine, reports_of
    from ..registry.rendering import as_json as entry_json
    from ..registry.rendering import as_text, report_json, report_line

    found = load(registry)
    entry = found.named(operator)
    place = found.place(entry.operator)
    reports = reports_of(entry.operator, examine(corpus_folder(registry))[0].values())
    if as_json:
        _print_json({**entry_json(entry, place), "known_wrong": [report_json(report) for report in reports]})
    else:
        typer.echo("\n".join([as_text(entry, place), *map(report_line, reports)]))


@app.command("list")
def list_(
    operators: Annotated[
        list[str] | None, typer.Argument(metavar="[OP]...", help="Only these: names or patterns such as 'linalg_*'.")
    ] = None,
    status: Annotated[list[str] | None, typer.Option(help="Only with this status; may be repeated.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only what this person works on.")] = None,
    kernel: Annotated[bool, typer.Option("--kernel", help="Only operators with a replacement kernel.")] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="Only operators whose status contradicts the measurement.")
    ] = False,
    registry: Folder = None,
    as_json: AsJson = False,
) -> None:
    """List operators and where they stand."""
    from ..registry.drift import drift_of
    from ..registry.files import load
    from ..registry.rendering import as_json as entry_json

    found = load(registry)
    statuses = [_status(word) for word in status or []]
    entries = [
        entry
        for entry in _selected(found, operators or [])
        if (not statuses or entry.current_status in statuses)
        and (owner is None or entry.owner == owner)
        and (not kernel or entry.kernel is not None)
        and (not drift or drift_of(entry) is not None)
    ]
    if as_json:
        _print_json([entry_json(entry, found.place(entry.operator)) for entry in entries])
    else:
        _print_table(entries)


@app.command("set")
def set_(
    operator: Annotated[str, typer.Argument(metavar="OP", help="The operator, such as aten::mode or mode.")],
    status: Annotated[str | None, typer.Option(help="Where the operator stands, by your decision.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why it is not applicable.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who works on it.")] = None,
    issue: Annotated[str | None, typer.Option(help="The upstream issue: a number or a URL.")] = None,
    pull_request: Annotated[str | None, typer.Option(help="The upstream pull request: a number or a URL.")] = None,
    kernel: Annotated[str | None, typer.Option(help="The module in mpsmith.kernels that replaces it.")] = None,
    note: Annotated[str | None, typer.Option(help="What is worth knowing; replaces the notes.")] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Remove this field; may be repeated.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Make the entry when the operator has none.")] = False,
    registry: Folder = None,
) -> None:
    """Set what people decide about an operator; everything else in its file stays as it is."""
    from ..registry.files import edit, load
    from ..registry.problems import RegistryError

    given = {
        "status": status,
        "reason": reason,
        "owner": owner,
        "issue": issue,
        "pull_request": pull_request,
        "kernel": kernel,
        "notes": note,
    }
    changes: dict[str, str | None] = {name: value for name, value in given.items() if value is not None}
    removed = _human_fields(unset or [])
    both = sorted(set(changes) & set(removed))
    if both:
        raise RegistryError(f"cannot set and unset {', '.join(both)} at once")
    changes |= dict.fromkeys(removed)
    if not changes:
        raise RegistryError("nothing to set: give --status, --owner, --issue, --note, --kernel or --unset FIELD")
    entry = edit(registry, operator, changes, add=add)
    place = load(registry).place(entry.operator)
    for name, value in changes.items():
        typer.echo(f"{place}: {entry.operator}: {f'{name} removed' if value is None else f'{name}: {value}'}")


@app.command()
def sync(
    store: Annotated[Path, typer.Option(help="The results store of an audit.")] = DEFAULT_STORE,
    replace_newer: Annotated[
        bool, typer.Option("--replace-newer", help="Let an older release's measurement replace a newer one's.")
    ] = False,
    registry: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Bring what an audit measured into the registry; what people wrote stays, contradictions are reported."""
    from ..audit.findings.measurements import measurements
    from ..registry.folder import registry_folder
    from ..registry.sync import sync as sync_measurements

    report = sync_measurements(registry, measurements(store), replace_newer=replace_newer)
    folder = registry_folder(registry)
    if as_json:
        _print_json({"registry": str(folder), **_report_json(report)})
    else:
        _print_report(report, folder)


def _status(word: str) -> Status:
    from ..registry.model import Status
    from ..registry.problems import RegistryError, near

    known = [status.value for status in Status]
    if word not in known:
        raise RegistryError(f"'{word}' is not a status; there are {', '.join(known)}{near(word, known)}")
    return Status(word)


def _human_fields(names: Sequence[str]) -> list[str]:
    from ..registry.model import HUMAN_FIELDS
    from ..registry.problems import RegistryError, near

    plain = [name.replace("-", "_") for name in names]
    for name in plain:
        if name not in HUMAN_FIELDS:
            raise RegistryError(f"'{name}' cannot be unset; {', '.join(HUMAN_FIELDS)} can{near(name, HUMAN_FIELDS)}")
    return plain


def _selected(registry: Registry, wanted: Sequence[str]) -> list[Entry]:
    """The entries that any of the names or patterns fits, or all. One that fits nothing is an error."""
    from fnmatch import fnmatchcase

    from ..registry.files import full_name
    from ..registry.problems import RegistryError

    if not wanted:
        return list(registry.values())
    chosen: dict[str, Entry] = {}
    for pattern in map(full_name, wanted):
        fitting = [operator for operator in registry if fnmatchcase(operator, pattern)]
        if not fitting:
            raise RegistryError(registry.unknown(pattern))
        chosen |= {operator: registry[operator] for operator in fitting}
    return [entry for operator, entry in registry.items() if operator in chosen]


def _print_table(entries: Sequence[Entry]) -> None:
    from tabulate import tabulate

    from ..registry.rendering import measured_in_words, status_in_words

    rows = [
        (entry.operator, status_in_words(entry), measured_in_words(entry), entry.owner, entry.issue, entry.kernel)
        for entry in entries
    ]
    if rows:
        headers = ("operator", "status", "measured", "owner", "issue", "kernel")
        typer.echo(tabulate(rows, headers=headers, disable_numparse=True))
    typer.echo(_counted(len(rows), "operator"))


def _print_report(report: SyncReport, folder: Path) -> None:
    from ..registry.problems import shown

    devices = {"mps": "on mps", "simulated": "on the SIMULATED device"}
    where = " and ".join(devices[device] for device in report.devices) or "nowhere"
    counts = (
        f"{len(report.added)} added",
        f"{len(report.changed)} changed",
        f"{len(report.remeasured)} remeasured with the same finding",
        f"{len(report.unchanged)} unchanged",
    )
    typer.echo(f"registry in {shown(folder)}, measured {where}: {', '.join(counts)}")
    for change in report.changed[:_LISTED_CHANGES]:
        typer.echo(f"  {change}")
    if len(report.changed) > _LISTED_CHANGES:
        typer.echo(f"  and {len(report.changed) - _LISTED_CHANGES} more (git diff shows them)")
    if report.outdated:
        typer.echo(
            f"{_counted(len(report.outdated), 'operator')} left as recorded, measured with a newer release "
            "(--replace-newer replaces that)"
        )
    _print_drift(report.drift)


def _print_drift(drift: Sequence[Drift]) -> None:
    if drift:
        typer.echo(f"drift: {_counted(len(drift), 'status', 'statuses')} set by people against the measurement")
    for one in drift:
        typer.echo(f"  {one}")


def _report_json(report: SyncReport) -> Mapping[str, object]:
    return {
        "devices": report.devices,
        "simulated": "simulated" in report.devices,
        "added": report.added,
        "changed": [
            {"operator": one.operator, "device": one.device, "before": one.before, "after": one.after}
            for one in report.changed
        ],
        "remeasured": report.remeasured,
        "unchanged": report.unchanged,
        "outdated": report.outdated,
        "drift": [_drift_json(one) for one in report.drift],
    }


def _drift_json(drift: Drift) -> Mapping[str, object]:
    return {
        "operator": drift.operator,
        "status": drift.recorded.value,
        "verdict": drift.measured,
        "device": drift.device,
        "simulated": drift.device == "simulated",
        "release": drift.release,
        "explanation": drift.explanation,
    }


def _counted(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def _print_json(data: object) -> None:
    typer.echo(json.dumps(data, indent=1))
