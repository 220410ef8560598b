"""`mpsmith kernels gaps`: what becomes of the dtypes that a release's own tests expect to fail on mps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson
from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.dtype_gaps import DtypeGap

Release = Annotated[str, typer.Option("--torch", metavar="RELEASE", help="A release of torch, as 2.15.0.")]


def gaps(
    release: Release = "2.15.0",
    markdown: Annotated[bool, typer.Option("--markdown", help="A Markdown page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say of every dtype that upstream expects to fail on mps what becomes of it: which kernel answers, or why none."""
    from ..audit.releases import data as release_data
    from ..audit.releases.coverage import from_data
    from ..kernels.verification.dtype_gaps import counted, dtype_gaps, dtypes_on_the_cpu

    data = release_data.load()
    found = dtype_gaps(from_data(data, data.index(release)), dtypes_on_the_cpu())
    if as_json:
        print_json([asdict(gap) for gap in found])
        return
    from tabulate import tabulate

    counts = [(answer.value, number) for answer, number in counted(found).items()]
    style = "github" if markdown else "simple"
    if markdown:
        typer.echo(_HEADING.format(release=release))
    typer.echo(tabulate(counts, headers=("answer", "pairs"), tablefmt=style))
    typer.echo()
    typer.echo(tabulate(_rows(found), headers=("OpInfo", "stage", "dtypes", "answer", "by"), tablefmt=style))


def _rows(found: Sequence[DtypeGap]) -> list[tuple[str, ...]]:
    """One row for the dtypes of an OpInfo that have one answer."""
    dtypes: dict[tuple[str, str, str, str], list[str]] = {}
    for gap in found:
        dtypes.setdefault((gap.opinfo, gap.stage, gap.answer.value, gap.by), []).append(gap.dtype)
    return [(opinfo, stage, ", ".join(names), answer, by) for (opinfo, stage, answer, by), names in dtypes.items()]


_HEADING = """\
# The dtypes that torch {release} expects to fail on mps

Written by `mpsmith kernels gaps --torch {release} --markdown`. Each pair of an OpInfo and a dtype stands in the list of
expected failures of PyTorch's own tests, which says that a test fails, not why.

| answer | means |
|---|---|
| kernel | torch has no kernel; that of the family answers after `import mpsmith.kernels` |
| override | torch's kernel refuses; that of the family answers after `mpsmith.kernels.enable("overrides")` |
| the CPU refuses it, too | by the dtypes that the OpInfo of the running torch declares |
| hardware | float64 or complex128 |
| no gap of a dtype | the test fails for another reason, which is named |
| open | not closed; what is known of it |

What the kernels are verified with is the simulated device.
"""
