"""Opens a file of evidence that anybody may have made: bounded in every way, and refused with the reason.

Nothing of the file is unpacked to the disk or run. The file and what it inflates to are bounded before they are looked
at; pydantic's parser bounds how deep JSON nests, and the schema every list, number and text.

Devices mostly show the same. Rows that are alike are made into one object, in all files that this process reads: most
of a second file then costs no check, and hundreds of files fit into memory.
"""

from __future__ import annotations

import gc
import marshal
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from .errors import EvidenceError
from .schema import VERSION, EvidenceFile, FailingCases, OverloadRow

LARGEST_FILE = 300 * 1024
LARGEST_TEXT = 32 * 1024 * 1024
_GZIP = b"\x1f\x8b"
# How many different rows are shared: about ten times what one whole audit has.
_ROWS_SHARED = 50_000
# How a row begins and ends where we wrote it, and how long it is at most.
_ROW_KEY = re.compile(rb'"aten::[^"\\{}]*"\s*:\s*(?=\{)')
_END_OF_ROW = b"}}}}"
_LONGEST_ROW = 1 << 13


def read(path: Path) -> EvidenceFile:
    """The evidence in a file that fits the schema; `checking` says whether it also fits itself.

    Raises EvidenceError that names the file and the reason.
    """
    try:
        with without_collection():
            return parsed(inflated(_contents(path)))
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from error


@contextmanager
def without_collection() -> Iterator[None]:
    """No search for circular garbage meanwhile: reading makes none, and each would go through all that was read."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _contents(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise EvidenceError("no such file" if not path.exists() else "not a file")
        with path.open("rb") as file:
            contents = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise EvidenceError(error.strerror or str(error)) from error
    if len(contents) > LARGEST_FILE:
        raise EvidenceError(f"larger than {LARGEST_FILE // 1024} KB: no evidence is")
    return contents


def inflated(contents: bytes) -> bytes:
    """What a gzip file of one member holds, never more than LARGEST_TEXT bytes of it. Raises EvidenceError."""
    if not contents.startswith(_GZIP):
        raise EvidenceError("not compressed with gzip (evidence ends in .json.gz)")
    inflater = zlib.decompressobj(wbits=31)
    try:
        text = inflater.decompress(contents, LARGEST_TEXT + 1)
    except zlib.error as error:
        raise EvidenceError("damaged: it cannot be inflated") from error
    if len(text) > LARGEST_TEXT:
        raise EvidenceError(f"inflates to more than {LARGEST_TEXT // 2**20} MB: no evidence does")
    if not inflater.eof:
        raise EvidenceError("damaged: it ends in the middle")
    if inflater.unused_data:
        raise EvidenceError("holds more than one compressed part")
    return text


def parsed(text: bytes) -> EvidenceFile:
    """The evidence in JSON text, which nests no deeper than pydantic's parser goes. Raises EvidenceError."""
    shorter, mark, rows = _without_rows(text)
    try:
        data = _with_rows(from_json(shorter), mark, rows)
    except ValueError:
        try:
            data = from_json(text)
        except ValueError as error:
            raise EvidenceError(f"does not fit the schema at the file: Invalid JSON: {error}") from error
    try:
        return EvidenceFile.model_validate(_with_shared_rows(data))
    except ValidationError as error:
        raise EvidenceError(_first_reason(error)) from error


def _without_rows(text: bytes) -> tuple[bytes, str, list[OverloadRow]]:
    """The text with a mark and a number in the place of each row of an overload that is written as we write it.

    Most rows of a file are those of other files, letter by letter, and need not be parsed again. What begins with the
    brace behind a key and is an object of JSON is the value of that key, for no object is the beginning of another. A
    mark that nobody knows before cannot stand in a file.
    """
    mark = secrets.token_hex(8)
    parts: list[bytes] = []
    rows: list[OverloadRow] = []
    at = 0
    for key in islice(_ROW_KEY.finditer(text), _ROWS_SHARED):
        start = key.end()
        end = text.find(_END_OF_ROW, start, start + _LONGEST_ROW) + len(_END_OF_ROW)
        if start < at or end < start:
            continue
        try:
            row = _row_in(text[start:end])
        except ValidationError:
            continue
        parts += (text[at:start], b'"%s%d"' % (mark.encode(), len(rows)))
        rows.append(row)
        at = end
    return b"".join([*parts, text[at:]]), mark, rows


def _with_rows(data: Any, mark: str, rows: Sequence[OverloadRow]) -> Any:
    """The data with the rows that `_without_rows` took out. Raises ValueError where one stood somewhere else."""
    audit = data.get("audit") if isinstance(data, dict) else None
    found = audit.get("overloads") if isinstance(audit, dict) else None
    overloads = found if isinstance(found, dict) else {}
    left = len(rows)
    for name, value in overloads.items():
        if isinstance(value, str) and value.startswith(mark):
            overloads[name] = rows[int(value.removeprefix(mark))]
            left -= 1
    if left:
        raise ValueError("rows that are no rows of overloads")
    return data


@lru_cache(maxsize=_ROWS_SHARED)
def _row_in(text: bytes) -> OverloadRow:
    return OverloadRow.model_validate_json(text)


def _with_shared_rows(data: Any) -> Any:
    """The data with models in the place of rows that fit; whatever does not is left for the schema to refuse."""
    audit = data.get("audit") if isinstance(data, dict) else None
    if not isinstance(audit, dict):
        return data
    if isinstance(overloads := audit.get("overloads"), dict):
        audit["overloads"] = {name: _shared(_overload_row, row) for name, row in overloads.items()}
    if isinstance(failing := audit.get("failing"), dict):
        audit["failing"] = {
            group: [_shared(_failing_cases, each) for each in alike] if isinstance(alike, list) else alike
            for group, alike in failing.items()
        }
    return data


def _shared(row_of: Callable[[bytes], Any], row: Any) -> Any:
    """The model of a row; the row itself where it does not fit. JSON's values have one form as bytes."""
    if isinstance(row, BaseModel):
        return row
    try:
        return row_of(marshal.dumps(row, 2))
    except (ValidationError, ValueError):
        return row


@lru_cache(maxsize=_ROWS_SHARED)
def _overload_row(packed: bytes) -> OverloadRow:
    return OverloadRow.model_validate(marshal.loads(packed))


@lru_cache(maxsize=_ROWS_SHARED)
def _failing_cases(packed: bytes) -> FailingCases:
    return FailingCases.model_validate(marshal.loads(packed))


def _first_reason(error: ValidationError) -> str:
    """The first thing that does not fit the schema, on one line."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    by_place = {tuple(map(str, problem["loc"])): problem for problem in problems}
    if ("format",) in by_place:
        return "not a file of evidence: its JSON says no format 'mpsmith-evidence'"
    if ("version",) in by_place:
        return f"of another version than {VERSION}, the one that this mpsmith reads: collect it anew, or update mpsmith"
    first = problems[0]
    place = ".".join(str(part) for part in first["loc"])[:120] or "the file"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"does not fit the schema at {place}: {first['msg']}{more}"
