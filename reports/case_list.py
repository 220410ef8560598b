"""Single cases of a run with their numbers and labels for `mpsmith replay`."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..audit.findings.attribution import SourceEntry
from ..audit.model.verdicts import CaseVerdict
from ..audit.store.records import Run, StoredCase, StoredGroup
from ..audit.store.store import Store
from ..errors import MpsmithError, near

COLUMNS = (
    "case",
    "verdict",
    "grade",
    "mode",
    "label",
    "stage",
    "fallbacks",
    "message",
    "inputs",
    "device",
    "explained_by",
    "at_fault",
    "called_with",
)

RuleOf = Callable[[StoredCase], str]  # the name of the rule that explains why a case did not pass, or ""


def select_cases(
    store: Store,
    run: Run,
    verdicts: Sequence[CaseVerdict] = (),
    patterns: Sequence[str] = (),
    dtypes: Sequence[str] = (),
) -> Iterator[StoredCase]:
    """The cases of a run that match all filters, one by one; without any filter those that did not pass.

    A pattern is a shell pattern of an entry ("nn.functional.softshrink") or its first or last part, or of "linalg_svd"
    for "linalg.svd", with or without "aten::",
    or else of overloads: then it selects the entries that called them. Raises MpsmithError, before the first case, for
    a pattern that matches nothing.
    """
    groups = store.groups(run.id)
    wanted = {name for pattern in patterns for name in _entries(store, run, groups, pattern)}
    conditions, parameters = [], list[object]()
    if verdicts:
        conditions.append(f"c.verdict IN ({_placeholders(verdicts)})")
        parameters += [verdict.value for verdict in verdicts]
    if dtypes:
        conditions.append(f"g.dtype IN ({_placeholders(dtypes)})")
        parameters += dtypes
    if not (verdicts or patterns or dtypes):
        conditions.append("c.verdict != 'passed'")
    matching = store.cases(run.id, " AND ".join(conditions) or "1", parameters)
    return (case for case in matching if not patterns or SourceEntry.of(case.group).name in wanted)


def text_lines(cases: Iterable[StoredCase], run: Run, rule_of: RuleOf, none: str) -> Iterator[str]:
    """A heading, then one line for each case: number, verdict, label, grade, message, rule; `none` if there is none."""
    yield f"cases of run {run.id} on the {'SIMULATED ' if run.environment.get('simulated') else ''}mps device"
    empty = True
    for case in cases:
        empty = False
        outcome = case.outcome
        message = outcome.message or ", ".join(outcome.fallbacks)
        rule = rule_of(case)
        rest = f"  [{grade}]" if (grade := _grade(case)) else ""
        rest += f"  {message}" if message else ""
        rest += f"  ({rule})" if rule else ""
        rest += f"  [at fault: {case.at_fault.overload}]" if case.at_fault else ""
        yield f"{case.id:>8}  {outcome.verdict.value:<16}  {case.label}{rest}"
    if empty:
        yield none


def csv_lines(cases: Iterable[StoredCase], run: Run, rule_of: RuleOf) -> Iterator[str]:
    """CSV with a header and one line for each case; fallbacks are separated by spaces."""
    yield ",".join(COLUMNS)
    for case in cases:
        out = io.StringIO()
        row = _fields(case, run, rule_of)
        row["fallbacks"] = " ".join(case.outcome.fallbacks)
        csv.writer(out, lineterminator="").writerow(row.values())
        yield out.getvalue()


# Of the JSON; docs/json.md describes it.
VERSION = 1


def json_lines(cases: Iterable[StoredCase], run: Run, rule_of: RuleOf) -> Iterator[str]:
    """One JSON object whose `cases` have the columns of the CSV as keys, a case a line: lists may be long."""
    yield f'{{"version": {VERSION}, "run": {run.id}, "cases": ['
    before = ""
    for case in cases:
        if before:
            yield f"{before},"
        before = json.dumps(_fields(case, run, rule_of), ensure_ascii=False)
    yield f"{before}]}}"


def _fields(case: StoredCase, run: Run, rule_of: RuleOf) -> dict[str, object]:
    o = case.outcome
    device = "simulated" if run.environment.get("simulated") else "mps"
    verdict = (o.verdict.value, _grade(case))
    values = (case.group.mode, case.label, o.stage, list(o.fallbacks), o.message, case.inputs, device, rule_of(case))
    at_fault = (case.at_fault.overload, case.at_fault.call) if case.at_fault else ("", "")
    return dict(zip(COLUMNS, (case.id, *verdict, *values, *at_fault), strict=True))


def _grade(case: StoredCase) -> str:
    """The grade of the case; "" if the device did not run it."""
    return case.grade.value if case.outcome.verdict.executed else ""


def _entries(store: Store, run: Run, groups: Iterable[StoredGroup], pattern: str) -> set[str]:
    wanted = pattern.removeprefix("aten::")
    entries = {SourceEntry.of(group.key) for group in groups}
    matching = {e.name for e in entries if any(fnmatch.fnmatchcase(s, wanted) for s in _spellings(e))}
    if not matching:
        for key, overloads in store.called_overloads(run.id).items():
            names = (name.removeprefix("aten::") for name in overloads)
            if any(fnmatch.fnmatchcase(s, wanted) for name in names for s in (name, name.split(".")[0])):
                matching.add(SourceEntry.of(key).name)
    if not matching:
        hint = near(wanted, {spelling for entry in entries for spelling in _spellings(entry)})
        raise MpsmithError(f"no case of run {run.id} is of an operator that matches {pattern}{hint}")
    return matching


def _spellings(entry: SourceEntry) -> set[str]:
    first, _, _ = entry.operator.partition(".")
    return {entry.name, entry.operator, entry.operator.replace(".", "_"), entry.operator.rsplit(".", 1)[-1], first}


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
