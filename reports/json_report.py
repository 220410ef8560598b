"""The report for machines: everything that the summary holds, in a versioned JSON format with a schema.

The top level has `format`, `version`, `mpsmith`, `simulated`, `verdicts` (overloads by verdict, as a check for
readers) and `summary`, which is `audit.findings.results.AuditSummary` field by field, without `execution`, so that the
text depends only on the findings. Fields with their default are left out. `schema` describes all of it. A change that
readers would notice raises VERSION.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from .. import __version__
from ..audit.findings.results import AuditSummary
from ..audit.model.verdicts import OverloadVerdict
from ..errors import MpsmithError

FORMAT: Literal["mpsmith-report"] = "mpsmith-report"
VERSION: Literal[2] = 2


@dataclass(frozen=True)
class JsonReport:
    """The top level of the JSON report.

    `simulated`: the mps device was simulated, nothing here is evidence about a Mac. `verdicts`: how many overloads
    have each verdict. Object keys of `summary.cases` are the labels that `mpsmith replay` takes.
    """

    format: Literal["mpsmith-report"]
    version: Literal[2]
    mpsmith: str
    simulated: bool
    verdicts: Mapping[OverloadVerdict, int]
    summary: AuditSummary


def render(summary: AuditSummary) -> str:
    """The report as JSON text, a line for every overload, operator, entry and case, so that diffs can be read."""
    report = JsonReport(FORMAT, VERSION, __version__, summary.run.simulated, summary.overload_counts, summary)
    plain = _adapter().dump_python(report, mode="json", exclude_defaults=True, exclude={"summary": {"execution"}})
    return _in_lines(plain, depth=0) + "\n"


def read(text: str) -> AuditSummary:
    """The summary that a JSON report holds, without its execution.

    Raises MpsmithError for anything else, and for other versions.
    """
    try:
        return _adapter().validate_json(text).summary
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise MpsmithError(f"not a JSON report of version {VERSION}: {place}: {first['msg']}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the report."""
    return _adapter().json_schema(mode="serialization")


def render_schema() -> str:
    """The schema as JSON text, indented."""
    return json.dumps(schema(), indent=1) + "\n"


def _in_lines(value: Any, depth: int) -> str:
    """JSON with the containers of the first levels spread over lines, and everything below on one line."""
    if depth > 2 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    indent = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        inner = [_in_lines(item, depth + 1) for item in value]
        return f"[{indent}{f',{indent}'.join(inner)}\n{' ' * depth}]"
    inner = [f"{json.dumps(key)}: {_in_lines(item, depth + 1)}" for key, item in value.items()]
    return f"{{{indent}{f',{indent}'.join(inner)}\n{' ' * depth}}}"


@cache
def _adapter() -> TypeAdapter[JsonReport]:
    return TypeAdapter(JsonReport)
