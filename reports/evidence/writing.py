"""Writes evidence as one compressed file, the same bytes for the same evidence, and never larger than may be read."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from ...audit.model.verdicts import CaseVerdict
from .errors import EvidenceError
from .reading import LARGEST_FILE
from .schema import AuditPart, EvidenceFile, FailingCases

# Verdicts whose cases are told by the operators that they count for: these lists go first where the file is too large.
_TOLD_BY_COUNTS = (CaseVerdict.MISSING, CaseVerdict.FALLBACK)


def packed(evidence: EvidenceFile) -> bytes:
    """The file's bytes. Where it would be too large, messages are shortened and then cases left out, and counted.

    Raises EvidenceError where that does not help.
    """
    for reduced in _reductions(evidence):
        contents = _compressed(reduced)
        if len(contents) <= LARGEST_FILE:
            return contents
    raise EvidenceError(f"the evidence does not fit {LARGEST_FILE // 1024} KB: collect fewer operators (--ops)")


def write(evidence: EvidenceFile, path: Path) -> int:
    """Write the file in one step, and say how many bytes it has. Raises EvidenceError, or OSError of the disk."""
    contents = packed(evidence)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(contents)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return len(contents)


def _compressed(evidence: EvidenceFile) -> bytes:
    text = evidence.model_dump_json(exclude_defaults=True).encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text)
    return buffer.getvalue()


def _reductions(evidence: EvidenceFile) -> Iterator[EvidenceFile]:
    """The evidence, then versions of it that say less and less of single cases; verdicts and counts always stay."""
    yield evidence
    audit = _shortened(evidence.audit, 120)
    yield _with(evidence, audit)
    audit = _left_out(audit, lambda verdict, number: verdict in _TOLD_BY_COUNTS)
    yield _with(evidence, audit)
    for most in (3, 1, 0):
        audit = _at_most(_shortened(audit, 60), most)
        yield _with(evidence, audit)


def _with(evidence: EvidenceFile, audit: AuditPart) -> EvidenceFile:
    return evidence.model_copy(update={"audit": audit})


def _at_most(audit: AuditPart, most: int) -> AuditPart:
    return _left_out(audit, lambda verdict, number: number >= most)


def _shortened(audit: AuditPart, longest: int) -> AuditPart:
    failing = {
        group: [each.model_copy(update={"message": each.message[:longest]}) for each in alike]
        for group, alike in audit.failing.items()
    }
    return audit.model_copy(update={"failing": failing})


def _left_out(audit: AuditPart, drops: Callable[[CaseVerdict, int], bool]) -> AuditPart:
    """The part without the cases that `drops` names by their verdict and their place among those of their group."""
    left_out = Counter(audit.left_out)
    failing: dict[str, list[FailingCases]] = {}
    for group, alike in audit.failing.items():
        number = 0
        for each in alike:
            kept = []
            for position in each.positions:
                if drops(each.verdict, number):
                    left_out[each.verdict] += 1
                else:
                    kept.append(position)
                number += 1
            if kept:
                failing.setdefault(group, []).append(each.model_copy(update={"positions": kept}))
    return audit.model_copy(update={"failing": failing, "left_out": dict(left_out)})
