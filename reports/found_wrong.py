"""The list of wrong results in the kernels that a release ships, as Markdown and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..audit.shipped.finding_result import FoundResult
from ..registry.found_wrong import FoundWrong
from ..registry.known_wrong import KnownReport
from ..registry.torch_release import is_older
from .found_script import call_text, script_of

STANDING = {
    "exact arithmetic": "the kernel calls no function whose last bits Apple's specification leaves open",
    "stands": "wrong with each of three seeds that move the mathematics within the bounds of Apple's specification",
    "hangs on last bits": "right with some seed that moves the mathematics within Apple's bounds: no defect by itself",
}


def markdown(
    release: str,
    findings: Mapping[str, FoundWrong],
    results: Sequence[FoundResult],
    reports: Iterable[KnownReport],
) -> str:
    """The published list.

    Args:
        release: whose kernels were launched.
        findings: by name.
        results: what came of them.
        reports: the corpus of upstream reports, to name those that this list leaves out.
    """
    wrong = [result for result in results if result.is_wrong]
    lines = [
        f"# Wrong results in the Metal kernels of torch {release}",
        "",
        "Launched on Linux out of the macOS wheel, on the host's processor: **no Mac was involved, and none has "
        f"confirmed any of this**. {len(wrong)} of {len(results)} findings are wrong in this release.",
        "",
        f"Written by `mpsmith shipped wrong --torch {release} --markdown docs/wrong_results.md`. The program at the "
        "end needs torch alone: on a Mac, `python check.py` confirms or refutes each finding in a line (`--script "
        "check.py` writes it to a file).",
        "",
        "| finding | kernel | value | the CPU's | last bits moved |",
        "|---|---|---|---|---|",
        *(_row(result) for result in wrong),
        "",
        *(f"*{name}*: {meaning}.  " for name, meaning in STANDING.items()),
    ]
    for result in wrong:
        lines += ["", *_entry(findings[result.name], result)]
    lines += ["", "## Not in this list", ""]
    right = [result.name for result in results if result.is_right]
    if right:
        lines.append(f"- Right in {release}, wrong in an earlier one: {', '.join(right)}.")
    untried = [result for result in results if not result.is_wrong and not result.is_right]
    lines += [f"- Not tried, {result.name}: {_why_not(result)}." for result in untried]
    standing = sorted(report.issue for report in reports if _stands(report, release))
    if standing:
        numbers = ", ".join(f"[#{issue}](https://github.com/pytorch/pytorch/issues/{issue})" for issue in standing)
        lines.append(f"- Reported upstream already, and wrong in {release} still (registry/known_wrong): {numbers}.")
    lines += ["", "## The program for a Mac", "", "```python", script_of(release, findings, results).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _row(result: FoundResult) -> str:
    given, expected = _values(result)
    return (
        f"| [{result.name}](#{result.name}) | {_kernels(result)} | {given} | {expected} | "
        f"{result.standing.value if result.standing else 'not tried'} |"
    )


def _entry(found: FoundWrong, result: FoundResult) -> list[str]:
    given, expected = _values(result)
    right = f", right from {found.right_from}" if found.right_from else ""
    lines = [
        f"## {found.name}",
        "",
        f"{found.summary} {found.why}",
        "",
        "```python",
        call_text(found).replace(", device=device", ""),
        "```",
        "",
        f"- kernels: {_kernels(result)}; operators: {', '.join(f'`{name}`' for name in found.operators)}",
        f"- inputs: `{result.inputs}`",
        f"- wrong in the releases tried from {found.wrong_in[0]} to {found.wrong_in[1]}{right}",
    ]
    place = result.place
    if place is None:
        lines.append(f"- {result.message}")
    else:
        lines.append(f"- element {place.index} of output {place.number}: {given}; the CPU: {expected}")
    if result.standing is not None:
        lines.append(f"- last bits moved: {result.standing.value}")
    if found.issue:
        lines.append(f"- upstream: [#{found.issue}](https://github.com/pytorch/pytorch/issues/{found.issue})")
    return lines


def _values(result: FoundResult) -> tuple[str, str]:
    if result.place is None:
        return "reads out of bounds" if "out of bounds" in result.message else "fails", ""
    place = result.place
    return f"{place.given} (`{place.given_bits}`)", f"{place.expected} (`{place.expected_bits}`)"


def _kernels(result: FoundResult) -> str:
    return ", ".join(f"`{kernel}`" for kernel in result.kernels)


def _why_not(result: FoundResult) -> str:
    return "; ".join(result.stood_in) or result.message or result.verdict.value


def _stands(report: KnownReport, release: str) -> bool:
    cause = report.cause
    if cause is None or cause.wrong_in is None or is_older(release, cause.wrong_in[0]):
        return False
    return cause.right_from is None and not is_older(cause.wrong_in[1], release)
