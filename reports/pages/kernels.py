"""Pages about our kernels: the backlog, dtype gaps and independent references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..table import Cell, Document, Table, shortened
from .page import PageInputs

if TYPE_CHECKING:
    from ...kernels.verification.backlog import Backlog, BacklogRow
    from ...kernels.verification.dtype_gaps import DtypeGap
    from ...kernels.verification.references import ReferenceComparison

NEWEST_RELEASE = "2.15.0"
SHOWN_MESSAGE = 90
SIMULATED = "SIMULATED: the kernels ran on the host, with its mathematics library."


def backlog(inputs: PageInputs) -> Document:
    """The overloads that fall back or are refused, with and without our kernels, from audits `--with-kernels`."""
    from ...kernels.verification.backlog import backlogs_of

    return backlog_document([backlog for path in inputs.stores for backlog in backlogs_of(path)])


def backlog_document(backlogs: Sequence[Backlog]) -> Document:
    """The same from backlogs, one for each release."""
    device = "the SIMULATED mps device" if any(backlog.simulated for backlog in backlogs) else "an mps device"
    audits = [
        f"mpsmith audit --with-kernels --profile {backlog.release} --store backlog.sqlite" for backlog in backlogs
    ]
    releases = [backlog.release for backlog in backlogs]
    return Document(
        "What torch lacks on mps, with and without our kernels",
        [
            "\n".join(["For each release", "", "```", *audits, "```"]),
            f"ran on {device}. A row of the second table is an overload for which a case fell back to the CPU or was "
            "refused without our kernels. `12 > 0`: 12 such cases without our kernels, none with them. `-`: no such "
            "case on this release. A case that calls several overloads counts for each.",
        ],
        [
            Table("Each release", _BACKLOG_COLUMNS, tuple(map(_release_row, backlogs))),
            Table("Each overload", ("overload", "family", *releases), tuple(_overload_rows(backlogs))),
            Table("What is left, and why", ("rule", "reason", "entries", *releases), tuple(_rule_rows(backlogs))),
            Table(
                "What is left without a rule",
                ("entry", "verdict", "example message", *releases),
                tuple(_unexplained_rows(backlogs)),
            ),
        ],
    )


_BACKLOG_COLUMNS = (
    *("release", "audited", "lacking overloads", "still lacking", "cases with our kernels", "left", "without a rule"),
)


def _release_row(backlog: Backlog) -> tuple[Cell, ...]:
    explanation = backlog.explanation
    return (
        backlog.release,
        backlog.selection,
        len(backlog.overloads),
        len(backlog.left),
        backlog.executed,
        explanation.non_passes,
        explanation.unexplained_cases,
    )


def _overload_rows(backlogs: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    from ...kernels.verification.backlog import family_of

    for name in sorted({name for backlog in backlogs for name in backlog.overloads}):
        cells = (_backlog_cell(backlog.overloads.get(name)) for backlog in backlogs)
        yield name.removeprefix("aten::"), family_of(name), *cells


def _backlog_cell(overload: BacklogRow | None) -> str:
    from ...kernels.verification.backlog import LACKING

    if overload is None:
        return "-"
    lacking = sum(overload.left.get(verdict, 0) for verdict in LACKING)
    others = [f"{n} {verdict.value}" for verdict, n in overload.left.items() if verdict not in LACKING]
    return ", ".join([f"{overload.lacking} > {lacking}", *others])


def _rule_rows(backlogs: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    uses = [{rule.name: rule for rule in backlog.explanation.rules} for backlog in backlogs]
    for name in sorted({name for by_name in uses for name in by_name}):
        rules = [rule for by_name in uses if (rule := by_name.get(name)) is not None]
        entries = sorted({entry for rule in rules for entry in rule.entries})
        counts = (str(by_name[name].total) if name in by_name else "-" for by_name in uses)
        yield name, rules[0].reason, shortened(entries), *counts


def _unexplained_rows(backlogs: Sequence[Backlog]) -> Iterator[tuple[str, ...]]:
    """A row for each entry and verdict, with the message of its first case."""
    messages: dict[tuple[str, str], str] = {}
    counts: list[Counter[tuple[str, str]]] = [Counter() for _ in backlogs]
    for backlog, counted in zip(backlogs, counts, strict=True):
        for finding in backlog.explanation.unexplained:
            key = (finding.entry, finding.verdict.value)
            message = finding.message
            cut = message if len(message) <= SHOWN_MESSAGE else message[:SHOWN_MESSAGE].rpartition(" ")[0] + " ..."
            messages.setdefault(key, cut)
            counted[key] += finding.cases
    for key in sorted(messages):
        yield *key, messages[key], *(str(counted[key]) if counted[key] else "-" for counted in counts)


def dtype_gaps(inputs: PageInputs) -> Document:
    """Each dtype that upstream's tests expect to fail on mps: the kernel that closes the gap, or why there is none."""
    from ...audit.releases import data as release_data
    from ...audit.releases.coverage import from_data
    from ...kernels.verification.dtype_gaps import counted, dtypes_on_the_cpu
    from ...kernels.verification.dtype_gaps import dtype_gaps as gaps_of

    release = inputs.release or NEWEST_RELEASE
    data = release_data.load()
    gaps = gaps_of(from_data(data, data.index(release)), dtypes_on_the_cpu())
    counts = tuple((answer.value, number) for answer, number in counted(gaps).items())
    return Document(
        f"The dtypes that torch {release} expects to fail on mps",
        [_GAPS],
        [
            Table("Answers", ("answer", "pairs"), counts),
            Table("Each OpInfo", ("OpInfo", "stage", "dtypes", "answer", "by"), _gap_rows(gaps)),
        ],
    )


def _gap_rows(gaps: Sequence[DtypeGap]) -> tuple[tuple[str, ...], ...]:
    """One row for the dtypes of an OpInfo that have one answer."""
    dtypes: dict[tuple[str, str, str, str], list[str]] = {}
    for gap in gaps:
        dtypes.setdefault((gap.opinfo, gap.stage, gap.answer.value, gap.by), []).append(gap.dtype)
    return tuple((opinfo, stage, ", ".join(names), answer, by) for (opinfo, stage, answer, by), names in dtypes.items())


_GAPS = """\
Each pair of an OpInfo and a dtype is in the list of expected failures of PyTorch's own tests. That list says that a
test fails, not why.

| answer | meaning |
|---|---|
| kernel | torch has no kernel; that of the family answers after `import mpsmith.kernels` |
| override | torch's kernel refuses; that of the family answers these calls alone after `import mpsmith.kernels` |
| the CPU refuses it, too | by the dtypes that the OpInfo of the running torch declares |
| hardware | float64 or complex128 |
| no gap of a dtype | the test fails for another reason, which is named |
| open | not closed; what is known about it |

The kernels were verified on the simulated device."""


def references(inputs: PageInputs) -> Document:
    """The largest errors of our kernels and of torch's CPU kernels against scipy, LAPACK and Pillow."""
    from ...kernels.runtime.catalog import all_kernels
    from ...kernels.runtime.registration import use
    from ...kernels.verification.references import against_references

    simulated = inputs.open_device is not None and inputs.open_device()
    with use(*(kernel.overload for kernel in all_kernels())):
        return references_document(list(against_references()), simulated=simulated)


def references_document(errors: Sequence[ReferenceComparison], *, simulated: bool) -> Document:
    """The same from measured errors."""
    rows = [
        (error.family, error.what, error.unit, *(f"{value:.3g}" for value in (error.ours, error.cpu)), error.reference)
        for error in errors
    ]
    columns = ("family", "what", "unit", "ours", "torch's CPU", "reference")
    return Document(
        "Our kernels against independent references",
        [
            "Arguments are float32. References are computed in float64 from the same arguments. An ulp is the distance "
            "between neighbouring float32 numbers at the right result; an ulp of the envelope has the size that the "
            "function has nearby, because close to a zero no float32 argument is exact enough. `n eps`: in 1-norms, "
            "relative to the norm of what is compared, to the size of the matrix and to 2^-23. `eps`: in Frobenius "
            "norms, relative to the norm of the matrix and to 2^-23; of 24 kinds of matrices and sizes up to 256 the "
            "row has the ones at which our error is the most times LAPACK's. LAPACK's is the median of the sizes from "
            "n - 2 to n + 2, because a single size may have an error far below those of its neighbours.",
            *([SIMULATED] if simulated else []),
        ],
        [Table("Largest errors", columns, tuple(rows))],
    )
