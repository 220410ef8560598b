"""``mpsmith preflight``: whether this machine's real mps device works."""

from __future__ import annotations

import sys

import typer

from .options import AsJson
from .printing import print_json, say


def preflight(as_json: AsJson = False) -> None:
    """Try the real mps device of this Mac: memory, arithmetic, fallbacks, and every kernel of mpsmith.

    Takes under two minutes. Audits and evidence run it by themselves, and stop if it fails. Exit code 1: it
    failed; 2: this is not a Mac.
    """
    from tabulate import tabulate

    from ..errors import MpsmithError
    from ..reports.evidence.machine import is_mac, is_virtual
    from ..reports.evidence.preflight import BEGINS, what_to_do
    from ..reports.evidence.preflight import preflight as tried

    if not is_mac():
        raise MpsmithError(f"preflight tries the real mps device of a Mac; this is {sys.platform}, which has none")
    say(BEGINS)
    result = tried()
    virtual = is_virtual()
    if as_json:
        print_json({"steps": result.steps, "problem": result.problem, "seconds": result.seconds, "virtual": virtual})
    elif result.steps:
        print(tabulate(list(result.steps.items()), headers=("step", "passed")))
    if virtual and not as_json:
        print("This Mac is a virtual machine: audits run here, evidence of it is refused.")
    if result.problem:
        print(f"error: preflight failed at {result.problem} ({what_to_do(result.problem)})", file=sys.stderr)
        raise typer.Exit(1)
