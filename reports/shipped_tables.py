"""Tables about shipped kernels: launches, wrong results, and the overloads that took no shipped kernel."""

from __future__ import annotations

from collections import defaultdict

from ..audit.findings.results import AuditSummary
from ..audit.findings.shipped.launches import ENOUGH_CASES, KernelTemplate
from ..audit.findings.shipped.wrong_kernels import WrongKernel
from .audit_tables import UNEXPLAINED, number_of
from .table import Cell, Table, shortened
from .wording import marked

MOST_KERNELS = 3
MOST_TEMPLATES = 12


def shipped_table(summary: AuditSummary) -> Table:
    """The numbers of launched kernels, launches and overloads; empty without shipped kernels."""
    shipped = summary.shipped
    rows: list[tuple[Cell, ...]] = []
    if shipped is not None:
        rows = [
            ("release", shipped.release),
            ("native overloads with evidence of shipped kernels", shipped.native_shipped),
            ("native overloads in all", shipped.native),
            ("kernels that it ships", shipped.kernels),
            ("kernels launched", len(shipped.launches)),
            ("kernels never launched", len(shipped.never_launched)),
            ("kernel templates: names without dtypes", len(shipped.templates)),
            (
                f"templates that {ENOUGH_CASES} cases or more launch",
                sum(template.cases >= ENOUGH_CASES for template in shipped.templates),
            ),
            *((f"cases: {grade.value}", number) for grade, number in summary.run.grades.items()),
        ]
    note = (
        "The Metal kernels in the macOS wheel of the release ran on the host in a part of the cases. Apple's "
        "mathematics library and code generator were not involved."
    )
    return Table(marked("Shipped kernels", summary), ("", "number"), tuple(rows), note)


def wrong_kernel_table(summary: AuditSummary, *, numbers: bool = False) -> Table:
    """Wrong results of cases that only shipped kernels computed, unexplained ones first.

    A row has the first example of an operator, dtype and ULP sensitivity that a rule explains; others have a row each.
    """
    grouped: defaultdict[tuple[object, ...], list[WrongKernel]] = defaultdict(list)
    for wrong in summary.wrong_kernels:
        key = (
            wrong.overload or wrong.entry,
            wrong.dtype,
            wrong.verdict,
            wrong.ulp_sensitivity,
            wrong.rule or wrong.example,
        )
        grouped[key].append(wrong)
    rows = []
    for group in grouped.values():
        first = group[0]
        kernels = list(dict.fromkeys(kernel for wrong in group for kernel in wrong.kernels))
        rows.append(
            (
                first.overload or first.entry,
                first.dtype,
                shortened(kernels, MOST_KERNELS),
                f"{first.verdict.value} in {sum(wrong.cases for wrong in group):,}",
                first.ulp_sensitivity.value if first.ulp_sensitivity else "not tried",
                first.message,
                first.inputs,
                first.rule or UNEXPLAINED,
                number_of(summary, first.example) if numbers else first.example,
            )
        )
    return Table(
        marked("Wrong results of shipped kernels", summary),
        (
            *("operator", "dtype", "kernels", "cases", "ULP sensitivity", "values", "inputs", "explained by"),
            "case" if numbers else "example",
        ),
        tuple(rows),
        "Only shipped kernels computed these cases; of several in a row the first is shown. The cause of a "
        "difference is a kernel of the release, the convention that launched it, or a mathematical function that "
        "differs between Apple and the host. `mpsmith replay --script` writes a program that finds out on a Mac. "
        "ULP sensitivity: the verdict when the kernels' mathematics is perturbed within the bounds of Apple's "
        "specification.",
        frozenset({"operator", "kernels", "example"}),
    )


def stand_in_table(summary: AuditSummary) -> Table:
    """Why native overloads that were called have no evidence of shipped kernels."""
    rows: list[tuple[Cell, ...]] = []
    if summary.shipped is not None:
        rows = [
            (stood_in.reason, len(stood_in.overloads), stood_in.cases, shortened(stood_in.overloads, 6))
            for stood_in in summary.shipped.stood_in
        ]
    return Table(
        marked("Why native overloads took no shipped kernel", summary),
        ("reason", "overloads", "cases", "such as"),
        tuple(rows),
        "The most frequent reason of each overload that was called and has no evidence of shipped kernels.",
        frozenset({"such as"}),
    )


def never_launched_table(summary: AuditSummary) -> Table:
    """The kernel templates that too few cases launch, by reason."""
    by_reason: defaultdict[str, list[KernelTemplate]] = defaultdict(list)
    for template in summary.shipped.templates if summary.shipped else ():
        if template.cases < ENOUGH_CASES:
            by_reason[template.reason].append(template)
    rows: list[tuple[Cell, ...]] = [
        (
            reason or UNEXPLAINED,
            len(templates),
            sum(template.kernels - template.launched for template in templates),
            shortened([template.name for template in templates], MOST_TEMPLATES),
        )
        for reason, templates in sorted(by_reason.items())
    ]
    return Table(
        marked("Shipped kernels that were never launched", summary),
        ("reason", "templates", "kernels never launched", "such as"),
        tuple(rows),
        f"Kernels whose names differ by dtypes alone are one template. Here are those that fewer than {ENOUGH_CASES} "
        "cases launch. After a whole audit, `mpsmith report --unexplained` fails if one of them has no reason. "
        "The JSON report has every kernel.",
        frozenset({"such as"}),
    )
