"""The output of `mpsmith compare`: text, Markdown for a pull request, and JSON."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..reports.counting import counted

if TYPE_CHECKING:
    from ..reports.evidence.comparing import Differences, TimeChange, VerdictChange

LISTED = 40
_MARKUP = re.compile(r"([\\`*_\[\]|~#])")


def text_lines(differences: Differences) -> Iterator[str]:
    """Both sides, then overloads that changed, new failing cases and times; at most LISTED of each."""
    yield f"before: {differences.before.described}"
    yield f"after:  {differences.after.described}"
    changes = list(differences.verdicts)
    yield f"{counted(len(changes), 'verdict')} of overloads differ{_by_kind(changes)}"
    for change in changes[:LISTED]:
        yield f"  {change.became.value}: {_named(change)}: {' -> '.join(_verdicts(change, differences))}"
    if len(changes) > LISTED:
        yield f"  … {len(changes) - LISTED:,} more (--json lists them)"
    if differences.failures:
        yield f"{counted(len(differences.failures), 'case')} crash, hang or are wrong that did not before"
    for failure in differences.failures[:LISTED]:
        yield f"  {failure.case}: {failure.verdict.value}{f', {failure.message}' if failure.message else ''}"
    if len(differences.failures) > LISTED:
        yield f"  … {len(differences.failures) - LISTED:,} more (--json lists them)"
    yield from (
        f"  {timing.operator}: {_ms(timing.before)} -> {_ms(timing.after)}{_ratio(timing)}"
        for timing in differences.times
    )


def markdown_lines(differences: Differences) -> Iterator[str]:
    """The same as Markdown; text from files is escaped, so that markup in it is shown and not interpreted."""
    yield "# What changed"
    yield ""
    yield f"- before: {escaped(differences.before.described)}"
    yield f"- after: {escaped(differences.after.described)}"
    yield ""
    changes = list(differences.verdicts)
    yield f"{counted(len(changes), 'verdict')} of overloads differ{_by_kind(changes)}."
    if changes:
        yield from ("", "| became | overload | dtype | before | after |", "|---|---|---|---|---|")
    for change in changes[:LISTED]:
        cells = (change.became.value, change.overload, change.dtype, *_verdicts(change, differences))
        yield f"| {' | '.join(map(escaped, cells))} |"
    if differences.failures:
        yield from (
            "",
            f"{counted(len(differences.failures), 'case')} crash, hang or are wrong that did not before:",
            "",
        )
    for failure in differences.failures[:LISTED]:
        yield f"- {escaped(failure.case)}: {failure.verdict.value}, {escaped(failure.message)}"
    if differences.times:
        yield from ("", "| kernel | ms before | ms after |", "|---|---|---|")
        yield from (
            f"| {escaped(timing.operator)} | {_ms(timing.before)} | {_ms(timing.after)} |"
            for timing in differences.times
        )


def plain(differences: Differences) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "before": differences.before.described,
        "after": differences.after.described,
        "by_dtype": differences.by_dtype,
        "verdicts": [
            {
                "became": change.became.value,
                "overload": change.overload,
                "dtype": change.dtype or None,
                "before": str(change.before) if change.before else None,
                "after": str(change.after) if change.after else None,
            }
            for change in differences.verdicts
        ],
        "new_failures": [
            {"case": failure.case, "verdict": failure.verdict.value, "message": failure.message}
            for failure in differences.failures
        ],
        "times": [{"operator": t.operator, "before": t.before, "after": t.after} for t in differences.times],
    }


def escaped(text: str) -> str:
    """Text that Markdown and HTML show unchanged, on one line of a table."""
    return _MARKUP.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _by_kind(changes: list[VerdictChange]) -> str:
    kinds = Counter(change.became.value for change in changes)
    return f": {', '.join(f'{number} {kind}' for kind, number in kinds.items())}" if kinds else ""


def _named(change: VerdictChange) -> str:
    return f"{change.overload} in {change.dtype}" if change.dtype else change.overload


def _verdicts(change: VerdictChange, differences: Differences) -> tuple[str, str]:
    """The verdicts before and after; a release declares an overload or not, and gives no evidence."""
    before, after = (
        str(verdict) if verdict is not None else "not declared" if side.simulated is None else "no evidence"
        for verdict, side in ((change.before, differences.before), (change.after, differences.after))
    )
    return before, after


def _ms(milliseconds: float | None) -> str:
    return f"{milliseconds:.3f} ms" if milliseconds is not None else "no time"


def _ratio(change: TimeChange) -> str:
    return f" ({change.before / change.after:.2f} times as fast)" if change.before and change.after else ""
