"""The page of wrong results in the kernels that a release ships, with a program that tries them on a Mac."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..table import Document, Table
from .page import PageInputs

if TYPE_CHECKING:
    from ...audit.shipped.finding_result import FindingResult
    from ...registry.found_wrong import FoundWrong
    from ...registry.known_wrong import KnownReport

ISSUES = "https://github.com/pytorch/pytorch/issues/"
ROBUSTNESS = """\
*exact arithmetic*: the kernel calls no function whose last bits Apple's specification leaves open.
*not ULP-sensitive*: wrong with each of three seeds that perturb the mathematics within Apple's bounds.
*ULP-sensitive*: right with some seed that perturbs the mathematics within Apple's bounds: no defect by itself."""


def document(inputs: PageInputs) -> Document:
    """Launch the kernels of a release for every finding, and list those that are wrong."""
    from ...audit.releases.surface.native_functions import installed_release
    from ...audit.releases.wheel.shipped import full_release, shipped_library
    from ...audit.running.finding_launches import launch_findings
    from ...registry import found_wrong, known_wrong
    from ...registry.torch_release import public_version

    release = full_release(inputs.release or public_version(installed_release()))
    shipped_library(release)
    findings = found_wrong.of_kernels()
    results = launch_findings(release, list(findings.values()), lambda result: inputs.report(result.name))
    return wrong_results_document(release, findings, results, known_wrong.load().values())


def wrong_results_document(
    release: str, findings: Mapping[str, FoundWrong], results: Sequence[FindingResult], reports: Iterable[KnownReport]
) -> Document:
    """The page of one release.

    Args:
        release: whose kernels were launched.
        findings: by name.
        results: the outcome of each finding.
        reports: the upstream reports of wrong results, to name those that are not repeated here.
    """
    from .wrong_results_script import script_of

    wrong = [result for result in results if result.is_wrong]
    return Document(
        f"Wrong results in the Metal kernels of torch {release}",
        [
            "SIMULATED: the kernels come from the macOS wheel and ran on Linux, on the host's processor. **No Mac was "
            f"involved, and none has confirmed this.** {len(wrong)} of {len(results)} findings are wrong in this "
            "release. The program at the end needs only torch: on a Mac, `python check.py` confirms or refutes each "
            "finding in a line (`mpsmith shipped wrong --script check.py` writes it)."
        ],
        [
            Table(
                "Findings",
                ("finding", "kernel", "value", "the CPU's", "ULP sensitivity"),
                tuple(_row(result) for result in wrong),
                links={result.name: f"#{result.name}" for result in wrong},
            )
        ],
        [
            ROBUSTNESS.replace("\n", "  \n"),
            *("\n".join(_section(findings[result.name], result)) for result in wrong),
            "## Not in this list",
            "\n".join(_others(release, results, reports)),
            f"## The program for a Mac\n\n```python\n{script_of(release, findings, results).rstrip()}\n```",
        ],
    )


def _others(release: str, results: Sequence[FindingResult], reports: Iterable[KnownReport]) -> list[str]:
    right = [result.name for result in results if result.is_right]
    lines = [f"- Right in {release}, wrong in an earlier one: {', '.join(right)}."] if right else []
    untried = [result for result in results if not result.is_wrong and not result.is_right]
    lines += [f"- Not tried, {result.name}: {_reason_not_shown(result)}." for result in untried]
    still_wrong = sorted(report.issue for report in reports if _is_wrong_in(report, release))
    if still_wrong:
        numbers = ", ".join(f"[#{issue}]({ISSUES}{issue})" for issue in still_wrong)
        lines.append(f"- Reported upstream, and still wrong in {release} (registry/known_wrong): {numbers}.")
    return lines


def _row(result: FindingResult) -> tuple[str, ...]:
    robustness = result.ulp_sensitivity.value if result.ulp_sensitivity else "not tried"
    return result.name, ", ".join(result.kernels), *_values(result), robustness


def _section(finding: FoundWrong, result: FindingResult) -> list[str]:
    from .wrong_results_script import call_text

    value, expected = _values(result)
    right = f", right from {finding.right_from}" if finding.right_from else ""
    element = result.place
    kernels = ", ".join(f"`{kernel}`" for kernel in result.kernels)
    lines = [
        f"## {finding.name}",
        "",
        f"{finding.summary} {finding.why}",
        "",
        "```python",
        call_text(finding).replace(", device=device", ""),
        "```",
        "",
        f"- kernels: {kernels}; operators: {', '.join(f'`{name}`' for name in finding.operators)}",
        f"- inputs: `{result.inputs}`",
        f"- wrong in the releases tried from {finding.wrong_in[0]} to {finding.wrong_in[1]}{right}",
        f"- element {element.index} of output {element.number}: {value}; the CPU: {expected}"
        if element
        else f"- {result.message}",
    ]
    if result.ulp_sensitivity is not None:
        lines.append(f"- ULP sensitivity: {result.ulp_sensitivity.value}")
    if finding.issue:
        lines.append(f"- upstream: [#{finding.issue}]({ISSUES}{finding.issue})")
    return lines


def _values(result: FindingResult) -> tuple[str, str]:
    element = result.place
    if element is None:
        return "reads out of bounds" if "out of bounds" in result.message else "fails", ""
    return f"{element.given} ({element.given_bits})", f"{element.expected} ({element.expected_bits})"


def _reason_not_shown(result: FindingResult) -> str:
    return "; ".join(result.stood_in) or result.message or result.verdict.value


def _is_wrong_in(report: KnownReport, release: str) -> bool:
    from ...registry.torch_release import is_older

    cause = report.cause
    if cause is None or cause.wrong_in is None or is_older(release, cause.wrong_in[0]):
        return False
    return cause.right_from is None and not is_older(cause.wrong_in[1], release)
