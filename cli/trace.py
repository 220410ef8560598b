"""``mpsmith trace``: run a program and say which operators fall back to the CPU in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..audit.selection import DeviceKind
from .options import AsJson

if TYPE_CHECKING:
    from ..audit.trace import Trace


def trace(
    script: Annotated[Path, typer.Argument(help="A Python program that uses device='mps'.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="The program's own arguments, after --.")] = None,
    device: Annotated[DeviceKind, typer.Option(help="The real mps device, or the simulated one.")] = DeviceKind.AUTO,
    profile: Annotated[
        str | None, typer.Option(help="Simulated device: a torch release whose coverage it has.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a program with fallbacks allowed and count the operators that ran on the CPU, backward included."""
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    from ..audit.trace import trace as run_traced

    traced = run_traced(script, arguments or [], device, profile)
    print(_as_json(traced) if as_json else _as_text(traced))
    if traced.failure is not None:
        print(f"error: {script} ended with {type(traced.failure).__name__}: {traced.failure}", file=sys.stderr)
        raise typer.Exit(1)


def _as_json(traced: Trace) -> str:
    return json.dumps({"simulated": traced.simulated, "fallbacks": dict(traced.fallbacks.most_common())}, indent=2)


def _as_text(traced: Trace) -> str:
    from tabulate import tabulate

    mark = " (SIMULATED mps device)" if traced.simulated else ""
    if not traced.fallbacks:
        return f"no operator fell back to the CPU{mark}"
    rows = traced.fallbacks.most_common()
    return f"operators that ran on the CPU{mark}:\n" + tabulate(rows, headers=("operator", "calls"))
