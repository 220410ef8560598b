"""`mpsmith registry`: what we know of every operator. Checks it, shows it, sets what people decide, syncs audits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DEFAULT_STORE, AsJson, RegistryFolder, StorePath, values_of
from .printing import counted, print_json
from .registry_text import drift_json, drift_lines, sync_json, sync_lines, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.files import Registry
    from ..registry.model import Entry, Status
    from ..registry.sync import SyncReport

app = typer.Typer(name="registry", help="The registry: what we know of every operator on mps.", no_args_is_help=True)


@app.command()
def check(registry: RegistryFolder = None, as_json: AsJson = False) -> None:
    """Validate every file and list statuses that contradict measurements; exits with 1 when a file is wrong."""
    from ..registry import found_wrong, known_wrong
    from ..registry.drift import drift_of
    from ..registry.files import examine

    found, problems = examine(registry)
    corpus = known_wrong.corpus_folder(registry)
    # A registry of a few operators does not know which others there are.
    reports, report_problems = known_wrong.examine(corpus, list(found) if corpus == known_wrong.PACKAGED else ())
    problems = [*problems, *report_problems]
    if corpus == known_wrong.PACKAGED:
        problems += found_wrong.examine(found_wrong.PACKAGED, list(found))[1]
    drift = [drift for entry in found.values() if (drift := drift_of(entry))]
    if as_json:
        listed = [
            {"file": str(problem.path), "line": problem.line, "column": problem.column, "message": problem.message}
            for problem in problems
        ]
        print_json(
            {
                "entries": len(found),
                "known_wrong": len(reports),
                "problems": listed,
                "drift": [drift_json(contradiction) for contradiction in drift],
            }
        )
    else:
        for line in (*map(str, problems), *drift_lines(drift)):
            print(line)
        counts = [counted(len(found), "valid entry", "valid entries")]
        counts += [counted(len(reports), "known wrong report")] if reports else []
        print(", ".join([*counts, counted(len(problems), "problem")]))
    if problems:
        raise typer.Exit(1)


@app.command()
def show(
    operator: Annotated[str, typer.Argument(metavar="OP", help="The operator, such as aten::mode or mode.")],
    registry: RegistryFolder = None,
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
        print_json({**entry_json(entry, place), "known_wrong": [report_json(report) for report in reports]})
    else:
        print("\n".join([as_text(entry, place), *map(report_line, reports)]))


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
    registry: RegistryFolder = None,
    as_json: AsJson = False,
) -> None:
    """List operators and where they stand."""
    from ..registry.drift import drift_of
    from ..registry.files import load
    from ..registry.model import Status
    from ..registry.rendering import as_json as entry_json

    found = load(registry)
    statuses = [_status(word) for word in values_of(status, "--status")]
    entries = [
        entry
        for entry in _selected(found, operators or [])
        if (not statuses or entry.current_status in statuses or (Status.wrong in statuses and entry.is_partly_broken))
        and (owner is None or entry.owner == owner)
        and (not kernel or entry.kernel is not None)
        and (not drift or drift_of(entry) is not None)
    ]
    if as_json:
        print_json([entry_json(entry, found.place(entry.operator)) for entry in entries])
    else:
        print(table(entries))


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
    registry: RegistryFolder = None,
    as_json: AsJson = False,
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
    removed = _human_fields(values_of(unset, "--unset"))
    both = sorted(set(changes) & set(removed))
    if both:
        raise RegistryError(f"cannot set and unset {', '.join(both)} at once")
    changes |= dict.fromkeys(removed)
    if not changes:
        raise RegistryError("nothing to set: give --status, --owner, --issue, --note, --kernel or --unset FIELD")
    entry = edit(registry, operator, changes, add=add)
    place = load(registry).place(entry.operator)
    if as_json:
        print_json({"operator": entry.operator, "file": str(place), "changes": changes})
        return
    for name, value in changes.items():
        print(f"{place}: {entry.operator}: {f'{name} removed' if value is None else f'{name}: {value}'}")


@app.command()
def sync(
    store: StorePath = DEFAULT_STORE,
    replace_newer: Annotated[
        bool, typer.Option("--replace-newer", help="Let an older release's measurement replace a newer one's.")
    ] = False,
    registry: RegistryFolder = None,
    as_json: AsJson = False,
) -> None:
    """Bring what an audit measured into the registry; what people wrote stays, contradictions are reported."""
    report = synced(store, registry, replace_newer=replace_newer)
    if as_json:
        print_json(sync_json(report, registry))
    else:
        print("\n".join(sync_lines(report, registry)))


def synced(store: Path, registry: Path | None = None, *, replace_newer: bool = False) -> SyncReport:
    """Bring what the newest audit of a store measured into the registry, and say what that changed."""
    from ..audit.findings.measurements import measurements
    from ..registry.sync import sync as sync_measurements

    return sync_measurements(registry, measurements(store), replace_newer=replace_newer)


def _status(word: str) -> Status:
    from ..errors import near
    from ..registry.model import Status
    from ..registry.problems import RegistryError

    known = [status.value for status in Status]
    if word not in known:
        raise RegistryError(f"'{word}' is not a status; there are {', '.join(known)}{near(word, known)}")
    return Status(word)


def _human_fields(names: Sequence[str]) -> list[str]:
    from ..errors import near
    from ..registry.model import HUMAN_FIELDS
    from ..registry.problems import RegistryError

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
