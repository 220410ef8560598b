"""Reads and writes evidence files, and names them. Reading is bounded: anybody may have made the file.

Nothing in a file is unpacked to the disk or run. The sizes of the file and of its text are limited, pydantic's parser
limits how deep JSON nests, and the schema limits every list, number and text.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from ...errors import MpsmithError
from ...registry.folder import PACKAGED, registry_folder
from ...registry.writing import writable_folder
from .schema import AuditPart, EvidenceFile, FailingCases

FOLDER = "evidence"
SUFFIX = ".json.gz"
LARGEST_FILE = 300 * 1024
LARGEST_TEXT = 32 * 1024 * 1024
_GZIP = b"\x1f\x8b"
# How a large file gets smaller, step by step: the longest message, and the most cases that a group lists.
_REDUCTIONS = ((120, None), (60, 3), (60, 0))


class EvidenceError(MpsmithError):
    """An evidence file is refused, or cannot be collected; the message says why in one line."""


def read(path: Path) -> EvidenceFile:
    """The evidence in a file that fits the schema; `checking` says whether it is also consistent.

    Raises EvidenceError that names the file and the reason.
    """
    try:
        return EvidenceFile.model_validate_json(inflated(_contents(path)))
    except ValidationError as error:
        raise EvidenceError(f"{path}: {_first_problem(error)}") from error
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from error


def _contents(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise EvidenceError("not a file" if path.exists() else "no such file")
        with path.open("rb") as file:
            contents = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise EvidenceError(error.strerror or str(error)) from error
    if len(contents) > LARGEST_FILE:
        raise EvidenceError(f"larger than {LARGEST_FILE // 1024} KB: no evidence is")
    return contents


def inflated(contents: bytes) -> bytes:
    """The text in a gzip file of one member, at most LARGEST_TEXT bytes. Raises EvidenceError."""
    if not contents.startswith(_GZIP):
        raise EvidenceError(f"not compressed with gzip (evidence ends in {SUFFIX})")
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


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    by_location = {problem["loc"]: problem for problem in problems}
    if ("format",) in by_location:
        return "not a file of evidence: its JSON says no format 'mpsmith-evidence'"
    if ("version",) in by_location:
        return "of another version than 1, the one that this mpsmith reads: collect it anew, or update mpsmith"
    location = ".".join(map(str, problems[0]["loc"]))[:120] or "the file"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"does not fit the schema at {location}: {problems[0]['msg']}{more}"


def write(evidence: EvidenceFile, path: Path) -> int:
    """Write the file atomically; returns its size. Raises EvidenceError, or OSError of the disk."""
    contents = packed(evidence)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, contents)
    return len(contents)


def replace_file(path: Path, contents: bytes) -> None:
    """Write a file in one step: a reader sees the old contents or the new ones. Raises OSError."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(contents)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def packed(evidence: EvidenceFile) -> bytes:
    """The bytes of the file, always the same for the same evidence.

    A file that would be too large gets shorter messages and lists fewer cases. Verdicts and counts always stay.
    Raises EvidenceError if it is still too large.
    """
    for version in (evidence, *(_reduced(evidence, *limits) for limits in _REDUCTIONS)):
        contents = gzip.compress(version.model_dump_json(exclude_defaults=True).encode(), compresslevel=9, mtime=0)
        if len(contents) <= LARGEST_FILE:
            return contents
    raise EvidenceError(f"the evidence does not fit {LARGEST_FILE // 1024} KB: collect fewer operators (--ops)")


def _reduced(evidence: EvidenceFile, longest: int, most: int | None) -> EvidenceFile:
    audit = evidence.audit
    left_out = Counter(audit.left_out)
    failing: dict[str, list[FailingCases]] = {}
    for group, same_outcome in audit.failing.items():
        listed = 0
        for cases in same_outcome:
            positions = cases.positions if most is None else cases.positions[: max(0, most - listed)]
            listed += len(positions)
            left_out[cases.verdict] += len(cases.positions) - len(positions)
            if positions:
                shorter = {"message": cases.message[:longest], "positions": positions}
                failing.setdefault(group, []).append(cases.model_copy(update=shorter))
    reduced: AuditPart = audit.model_copy(update={"failing": failing, "left_out": dict(+left_out)})
    return evidence.model_copy(update={"audit": reduced})


def evidence_folder(registry: Path | None = None) -> Path:
    """The folder for the evidence of a registry: next to the operators in a clone, inside of any other registry."""
    return _inside(registry_folder(registry))


def writable_evidence_folder(registry: Path | None = None) -> Path:
    """The same for writing: for an installed package it is in the current folder. Raises RegistryError."""
    return _inside(writable_folder(registry))


def _inside(operators: Path) -> Path:
    return operators.parent / FOLDER if operators == PACKAGED else operators / FOLDER


def evidence_files(folder: Path) -> list[Path]:
    """The evidence files in a folder, by name; an empty list without the folder."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def file_name(evidence: EvidenceFile, contents: bytes) -> str:
    """The name of an added file in plain letters: "simulated" or the chip, the system, torch, the day, a digest."""
    machine = evidence.machine
    parts = ["simulated"] if evidence.simulated else []
    parts += [machine.chip, f"{machine.system}-{machine.release}", f"torch-{machine.torch}", evidence.day]
    return "_".join([*_plain(parts), hashlib.sha256(contents).hexdigest()[:8]]) + SUFFIX


def _plain(parts: list[str]) -> Iterator[str]:
    for part in parts:
        yield re.sub(r"[^a-z0-9.+]+", "-", part.lower()).strip("-.")[:40] or "unknown"
