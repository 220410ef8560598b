"""What `mpsmith compare` says of two sides, as text, as Markdown for a pull request, and as plain data."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .printing import counted

if TYPE_CHECKING:
    from ..reports.evidence.comparing import Differences, TimeChange, VerdictChange

LISTED = 40
_MARKUP = re.compile(r"([\\`*_\[\]|~#])")


def text_lines(found: Differences, every: bool) -> Iterator[str]:
    """Both sides, then overloads that changed, new failing cases and times; at most LISTED of each unless `every`."""
    yield f"before: {found.before.described}"
    yield f"after:  {found.after.described}"
    changes = list(found.verdicts)
    yield f"{counted(len(changes), _unit(found))} differ{_by_kind(changes)}"
    for change in changes if every else changes[:LISTED]:
        yield f"  {change.became.value}: {_named(change)}: {_stood(change.before)} -> {_stood(change.after)}"
    if not every and len(changes) > LISTED:
        yield f"  … {len(changes) - LISTED:,} more (--all lists them)"
    if found.failures:
        yield f"{counted(len(found.failures), 'case')} crash, hang or are wrong that did not before"
    for failure in found.failures if every else found.failures[:LISTED]:
        yield f"  {failure.case}: {failure.verdict.value}{f', {failure.message}' if failure.message else ''}"
    if not every and len(found.failures) > LISTED:
        yield f"  … {len(found.failures) - LISTED:,} more (--all lists them)"
    yield from (f"  {each.operator}: {_ms(each.before)} -> {_ms(each.after)}{_ratio(each)}" for each in found.times)


def markdown_lines(found: Differences, every: bool) -> Iterator[str]:
    """The same as Markdown; what came out of files is shown as it is, whatever markup it holds."""
    yield "# What changed"
    yield ""
    yield f"- before: {escaped(found.before.described)}"
    yield f"- after: {escaped(found.after.described)}"
    yield ""
    changes = list(found.verdicts)
    yield f"{counted(len(changes), _unit(found))} differ{_by_kind(changes)}."
    if changes:
        yield from ("", "| became | overload | dtype | before | after |", "|---|---|---|---|---|")
    for change in changes if every else changes[:LISTED]:
        cells = (change.became.value, change.overload, change.dtype, _stood(change.before), _stood(change.after))
        yield f"| {' | '.join(map(escaped, cells))} |"
    if found.failures:
        yield from ("", f"{counted(len(found.failures), 'case')} crash, hang or are wrong that did not before:", "")
    for failure in found.failures if every else found.failures[:LISTED]:
        yield f"- {escaped(failure.case)}: {failure.verdict.value}, {escaped(failure.message)}"
    if found.times:
        yield from ("", "| kernel | ms before | ms after |", "|---|---|---|")
        yield from (f"| {escaped(each.operator)} | {_ms(each.before)} | {_ms(each.after)} |" for each in found.times)


def plain(found: Differences) -> dict[str, Any]:
    """The same for programs."""
    return {
        "before": found.before.described,
        "after": found.after.described,
        "by_dtype": found.by_dtype,
        "verdicts": [
            {
                "became": change.became.value,
                "overload": change.overload,
                "dtype": change.dtype or None,
                "before": str(change.before) if change.before else None,
                "after": str(change.after) if change.after else None,
            }
            for change in found.verdicts
        ],
        "new_failures": [
            {"case": failure.case, "verdict": failure.verdict.value, "message": failure.message}
            for failure in found.failures
        ],
        "times": [{"operator": t.operator, "before": t.before, "after": t.after} for t in found.times],
    }


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line of a table."""
    return _MARKUP.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _unit(found: Differences) -> str:
    return "overload and dtype" if found.by_dtype else "overload"


def _by_kind(changes: list[VerdictChange]) -> str:
    kinds = Counter(change.became.value for change in changes)
    return f": {', '.join(f'{number} {kind}' for kind, number in kinds.items())}" if kinds else ""


def _named(change: VerdictChange) -> str:
    return f"{change.overload} in {change.dtype}" if change.dtype else change.overload


def _stood(standing: object | None) -> str:
    return str(standing) if standing is not None else "no evidence"


def _ms(milliseconds: float | None) -> str:
    return f"{milliseconds:.3f} ms" if milliseconds is not None else "no time"


def _ratio(change: TimeChange) -> str:
    return f" ({change.before / change.after:.2f} times as fast)" if change.before and change.after else ""
