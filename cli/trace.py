"""``mpsmith trace``: run a program and say which operators fall back to the CPU in it."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Annotated

import typer

from ..audit.selection import DeviceKind
from .options import AsJson
from .printing import print_json, say

if TYPE_CHECKING:
    from ..audit.trace import Trace


def trace(
    program: Annotated[str, typer.Argument(help="A Python program that uses device='mps'.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The program's own arguments, options included: all that follows it.")
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", help="PROGRAM is the name of a module, as for python -m.", show_default=False)
    ] = False,
    device: Annotated[DeviceKind, typer.Option(help="The real mps device, or the simulated one.")] = DeviceKind.AUTO,
    profile: Annotated[
        str | None, typer.Option(help="Simulated device: a torch release whose coverage it has.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a program with fallbacks allowed and count the operators that ran on the CPU, backward included."""
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    from ..audit.trace import trace as run_traced

    given = arguments or []
    own = given[1:] if given[:1] == ["--"] else given
    traced = run_traced(program, own, device, profile, is_module=module)
    if as_json:
        print_json({"simulated": traced.simulated, "fallbacks": dict(traced.fallbacks.most_common())})
    else:
        print(_as_text(traced))
    if status := _status(traced.failure):
        raise typer.Exit(status)


def _status(end: BaseException | None) -> int:
    """What the interpreter would print, and end with, after the exception that ended the program."""
    if isinstance(end, SystemExit):
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        say(str(end.code))
        return 1
    if end is not None:
        traceback.print_exception(end)
    return 1 if end else 0


def _as_text(traced: Trace) -> str:
    from tabulate import tabulate

    mark = " (SIMULATED mps device)" if traced.simulated else ""
    if not traced.fallbacks:
        return f"no operator fell back to the CPU{mark}"
    rows = traced.fallbacks.most_common()
    return f"operators that ran on the CPU{mark}:\n" + tabulate(rows, headers=("operator", "calls"))
