"""`mpsmith kernels steps`: a step of a program for each call of each family, without and with our kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.steps import ProgramStep


def show_steps(
    families: Sequence[str], steps_of: Callable[[str], list[ProgramStep]], simulated: bool, style: str
) -> None:
    """Print the steps of families in a style of tables, or as "json"; exits 1 where one falls back with our kernels."""
    found = [step for family in families for step in steps_of(family)]
    if style == "json":
        print_json({"simulated": simulated, "steps": [asdict(step) for step in found]})
    elif style == "github":
        typer.echo("\n".join(_page(found, simulated)))
    else:
        typer.echo(_table(found, "simple"))
        typer.echo(_sentence(found, simulated))
    if any(step.after or step.error for step in found) or not found:
        raise typer.Exit(1)


def _page(found: Sequence[ProgramStep], simulated: bool) -> Iterator[str]:
    yield "# A step of a program for each of our kernels"
    yield ""
    yield "Written by `mpsmith kernels steps --markdown`. A call with gradients is a training step: forward, a loss,"
    yield "`loss.backward()` and SGD. Counted are the operators that fell back to the CPU in it, without our kernels"
    yield "and with them. The device lacks every overload that a family has a kernel for, whatever release has it. Of a"
    yield "call that an override answers nothing falls back: the simulated device computes what a Mac refuses."
    yield ""
    yield _sentence(found, simulated)
    yield ""
    yield _table(found, "github")


def _sentence(found: Sequence[ProgramStep], simulated: bool) -> str:
    trained = sum(step.trains for step in found)
    before, after = sum(len(step.before) for step in found), sum(len(step.after) for step in found)
    fallen = f"{before} fallbacks without our kernels, {after} with them"
    return f"{len(found)} steps, {trained} of them training: {fallen}{' (simulated)' if simulated else ''}."


def _table(found: Sequence[ProgramStep], style: str) -> str:
    from tabulate import tabulate

    rows = [
        (
            step.family,
            step.call,
            "training" if step.trains else "call",
            ", ".join(name.removeprefix("aten::") for name in step.before),
            ", ".join(name.removeprefix("aten::") for name in step.after) or str(len(step.after)),
            step.error or ", ".join(name.removeprefix("aten::") for name in step.answered),
        )
        for step in found
    ]
    headers = ("family", "call", "step", "fell back without", "fell back with", "answered by our kernels")
    return tabulate(rows, headers=headers, tablefmt=style)
