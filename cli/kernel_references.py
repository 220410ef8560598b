"""`mpsmith kernels references`: our kernels against scipy, numpy's LAPACK and Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.references import AgainstReference


def show_references(simulated: bool, style: str) -> None:
    """Measure and print, in a style of tables or as "json"."""
    from ..kernels.runtime.catalog import all_kernels
    from ..kernels.runtime.registration import use
    from ..kernels.verification.references import against_references

    with use(*(kernel.overload for kernel in all_kernels())):
        found = list(against_references())
    if style == "json":
        print_json({"simulated": simulated, "references": [asdict(each) for each in found]})
        return
    if style == "github":
        typer.echo(_HEADING)
    typer.echo(_table(found, style))
    if simulated:
        typer.echo("\nsimulated: the kernels ran on the host, with its mathematics library")


def _table(found: Sequence[AgainstReference], style: str) -> str:
    from tabulate import tabulate

    headers = ("family", "what", "unit", "ours", "torch's CPU", "reference")
    rows = [(each.family, each.what, each.unit, each.ours, each.torchs, each.reference) for each in found]
    return tabulate(rows, headers=headers, tablefmt=style, floatfmt=".3g")


_HEADING = """\
# Our kernels against independent references

Written by `mpsmith kernels references --markdown`. Arguments are float32, references are computed in float64 from the
same arguments. An ulp is the distance of neighbouring float32 numbers at the right result; of the envelope: at the size
that the function has around there, for near a zero no float32 argument says where it is. `n eps`: in 1-norms, beside
the norm of what is compared, by the size of the matrix and 2^-23.
"""
