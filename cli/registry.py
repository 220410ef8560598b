"""`mpsmith registry`: what is known about each operator. Checks it, shows it, sets the fields that people write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..reports.counting import counted
from .options import AsJson, values_of
from .printing import print_json
from .registry_text import drift_json, drift_lines, sync_json, sync_lines, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.answers.answer import Answer
    from ..registry.files import Registry
    from ..registry.model import Entry, Status
    from ..registry.sync import Measurement

app = typer.Typer(name="registry", help="The registry: what is known about each operator on mps.", no_args_is_help=True)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Validate every file and list statuses that contradict measurements; exits with 1 if a file is wrong."""
    from ..registry import found_wrong, known_wrong
    from ..registry.drift import drift_of
    from ..registry.files import examine

    entries, problems = examine(None)
    corpus = known_wrong.corpus_folder(None)
    # A registry of a few operators does not know which others exist.
    reports, report_problems = known_wrong.examine(corpus, list(entries) if corpus == known_wrong.PACKAGED else ())
    problems = [*problems, *report_problems]
    if corpus == known_wrong.PACKAGED:
        problems += found_wrong.examine(found_wrong.PACKAGED, list(entries))[1]
    if not entries and not problems:
        from ..registry.folder import registry_folder
        from ..registry.problems import RegistryError

        raise RegistryError(f"{registry_folder()} holds no entry: name the folder with the files *.yaml")
    drift = [drift for entry in entries.values() if (drift := drift_of(entry))]
    if as_json:
        listed = [
            {"file": str(problem.path), "line": problem.line, "column": problem.column, "message": problem.message}
            for problem in problems
        ]
        counts: dict[str, object] = {"entries": len(entries), "known_wrong": len(reports)}
        print_json(counts | {"problems": listed, "drift": list(map(drift_json, drift))})
    else:
        for line in (*map(str, problems), *drift_lines(drift)):
            print(line)
        words = [counted(len(entries), "valid entry", "valid entries")]
        words += [counted(len(reports), "known wrong report")] if reports else []
        print(", ".join([*words, counted(len(problems), "problem")]))
    if problems:
        raise typer.Exit(1)


@app.command()
def show(
    operators: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OP]...", help="Operators such as aten::mode or mode, or patterns such as 'linalg_*'."),
    ] = None,
    status: Annotated[list[str] | None, typer.Option(help="Only with this status; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show everything known about one operator, or a table of several; by default of all.

    One name shows the whole entry with the reports of wrong results; patterns, several names and filters list entries.
    """
    from ..registry.files import load

    registry = load(None)
    names = operators or []
    if len(names) == 1 and not _is_pattern(names[0]) and not status:
        _show_entry(registry, names[0], as_json)
        return
    from ..registry.model import Status
    from ..registry.rendering import as_json as entry_json

    statuses = [_status(word) for word in values_of(status, "--status")]
    entries = [
        entry
        for entry in _selected(registry, names)
        if not statuses or entry.current_status in statuses or (Status.wrong in statuses and entry.is_partly_broken)
    ]
    if as_json:
        print_json([entry_json(entry, registry.place(entry.operator)) for entry in entries])
    else:
        print(table(entries))


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


def _show_entry(registry: Registry, operator: str, as_json: bool) -> None:
    from ..audit.answers.sentences import as_data, headline, reason
    from ..registry.known_wrong import corpus_folder, examine, reports_of
    from ..registry.rendering import as_json as entry_json
    from ..registry.rendering import as_text, report_json, report_line

    entry = registry.named(operator)
    place = registry.place(entry.operator)
    reports = reports_of(entry.operator, examine(corpus_folder(None))[0].values())
    answered_by = _answered(entry.operator)
    if as_json:
        answered = {"answer": as_data(answered_by)} if answered_by else {}
        print_json({**entry_json(entry, place), "known_wrong": [report_json(report) for report in reports], **answered})
    else:
        said = f"{headline(answered_by)}, torch {answered_by.release}: {reason(answered_by)}" if answered_by else ""
        first = [f"  {'answer':<13} {said}"] if said else []
        first += [f"  {'host code':<13} {fact}" for fact in answered_by.inside] if answered_by else []
        print("\n".join([as_text(entry, place), *first, *map(report_line, reports)]))


def _answered(operator: str) -> Answer | None:
    """The answer of the shipped registry about an operator; None for an unknown one."""
    from ..audit.answers.answer import answer
    from ..errors import MpsmithError

    try:
        return answer(operator)
    except MpsmithError:
        return None


@app.command("set")
def set_(
    operator: Annotated[str, typer.Argument(metavar="OP", help="The operator, such as aten::mode or mode.")],
    fields: Annotated[
        list[str],
        typer.Argument(
            metavar="FIELD=VALUE...",
            help="status, reason, owner, issue, pull_request, kernel or notes; without a value the field is removed.",
        ),
    ],
    add: Annotated[bool, typer.Option("--add", help="Make the entry if the operator has none.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set the fields of an operator that people write; nothing else in its file changes."""
    from ..registry.files import edit, load

    changes = dict(map(_parse_field, fields))
    entry = edit(None, operator, changes, add=add)
    place = load(None).place(entry.operator)
    if as_json:
        print_json({"operator": entry.operator, "file": str(place), "changes": changes})
        return
    for name, value in changes.items():
        print(f"{place}: {entry.operator}: {f'{name} removed' if value is None else f'{name}: {value}'}")


def _parse_field(text: str) -> tuple[str, str | None]:
    """The name and value of FIELD=VALUE; None for an empty value. Raises RegistryError."""
    from ..errors import near
    from ..registry.model import HUMAN_FIELDS
    from ..registry.problems import RegistryError

    name, equals, value = text.partition("=")
    name = name.replace("-", "_")
    if not equals or name not in HUMAN_FIELDS:
        fields = ", ".join(HUMAN_FIELDS)
        raise RegistryError(f"'{text}' is not FIELD=VALUE; the fields are {fields}{near(name, HUMAN_FIELDS)}")
    return name, value or None


def sync_store(store: Path, *, quiet: bool) -> dict[str, object]:
    """Write the measurements of a store's newest audit into the registry; print what changed unless `quiet`.

    What people wrote is kept. Returns the changes as JSON.
    """
    from ..audit.findings.measurements import measurements

    return sync_measured(measurements(store), quiet=quiet)


def sync_measured(measured: Sequence[Measurement], *, quiet: bool) -> dict[str, object]:
    """As `sync_store`, with the measurements of an audit."""
    from ..registry.sync import sync

    report = sync(None, measured)
    if not quiet:
        print("\n".join(sync_lines(report)))
    return sync_json(report)


def _status(word: str) -> Status:
    from ..errors import near
    from ..registry.model import Status
    from ..registry.problems import RegistryError

    statuses = [status.value for status in Status]
    if word not in statuses:
        raise RegistryError(f"'{word}' is not a status; there are {', '.join(statuses)}{near(word, statuses)}")
    return Status(word)


def _selected(registry: Registry, wanted: Sequence[str]) -> list[Entry]:
    """The entries that a name or pattern matches, or all. A name or pattern without a match is an error."""
    from fnmatch import fnmatchcase

    from ..registry.files import full_name
    from ..registry.problems import RegistryError

    if not wanted:
        return list(registry.values())
    chosen: dict[str, Entry] = {}
    for pattern in map(full_name, wanted):
        matches = [operator for operator in registry if fnmatchcase(operator, pattern)]
        if not matches:
            raise RegistryError(registry.unknown(pattern))
        chosen |= {operator: registry[operator] for operator in matches}
    return [entry for operator, entry in registry.items() if operator in chosen]
