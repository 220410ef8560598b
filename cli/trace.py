"""``mpsmith trace``: run a program and show which operators fall back to the CPU, from which line, and what helps."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ..simulator.opening import DeviceKind
from .ending import ignore_broken_pipe
from .options import AsJson, Device, Profile, require_profile, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..tracing.summary import Summary
    from ..tracing.supervision import ProgramResult, TracedProgram

# Few programs have options of these names.
OWN_OPTIONS = frozenset({"--with-kernels", "--fail-on-fallback", "--json"})


def trace(
    program: Annotated[str, typer.Argument(help="A Python program that uses device='mps'.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The arguments and options of the program: all that follows it.")
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", help="PROGRAM is the name of a module, as for python -m.", show_default=False)
    ] = False,
    device: Device = DeviceKind.AUTO,
    profile: Profile = None,
    with_kernels: Annotated[
        bool, typer.Option("--with-kernels", help="Run the program again with `import mpsmith.kernels`, and compare.")
    ] = False,
    fail_on_fallback: Annotated[
        bool, typer.Option("--fail-on-fallback", help="Exit with 1 if an operator falls back.")
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="OP", help="This operator or overload may fall back; repeat it or use commas."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a program with fallbacks allowed. Show which operators ran on the CPU, where, how often, and what helps.

    The program ends with its own exit code. With --json its output goes to standard error.
    """
    from ..audit.answers.answer import require_operators

    request = TraceRequest(
        _program(program, arguments or [], is_module=module),
        device,
        profile,
        values_of(allow, "--allow"),
        with_kernels,
        fail_on_fallback,
        as_json,
    )
    require_operators(request.allowed)
    require_profile(profile)
    for option in OWN_OPTIONS.intersection(request.program.arguments):
        say(f"{option} goes to the program; an option of `mpsmith trace` comes before {program}")
    ended, summary = _traced(request, kernels=False)
    after = _traced(request, kernels=True)[1] if with_kernels else None
    with ignore_broken_pipe():  # the exit code remains that of the program
        _show(request, ended, summary, after)
    judged = after or summary
    if not ended.status and fail_on_fallback and judged.forbidden:
        say(f"--fail-on-fallback: {', '.join(judged.forbidden)} fell back")
        raise typer.Exit(1)
    if ended.status:
        raise typer.Exit(ended.status)


@dataclass(frozen=True)
class TraceRequest:
    """The program to trace, and the options that decide how it is traced and shown."""

    program: TracedProgram
    device: DeviceKind
    profile: str | None
    allowed: tuple[str, ...]
    with_kernels: bool
    fail_on_fallback: bool
    as_json: bool


def _program(name: str, arguments: list[str], *, is_module: bool) -> TracedProgram:
    from ..tracing.supervision import TracedProgram

    return TracedProgram(name, arguments[1:] if arguments[:1] == ["--"] else arguments, is_module)


def _traced(request: TraceRequest, *, kernels: bool) -> tuple[ProgramResult, Summary]:
    from ..tracing import supervision

    ended = supervision.run(
        request.program,
        request.device,
        request.profile,
        kernels=kernels,
        output=sys.__stderr__ if request.as_json else None,
    )
    return ended, _summarize(ended, request.allowed)


def _show(request: TraceRequest, ended: ProgramResult, summary: Summary, after: Summary | None) -> None:
    from ..tracing import annotations, json_form, text

    if request.as_json:
        print_json(json_form.to_json(summary) | {"status": ended.status} | _second(after))
    else:
        text.show(summary)
        if after is not None:
            text.show_both(summary, after)
    if os.environ.get("GITHUB_ACTIONS"):
        for line in annotations.github(summary, failing=request.fail_on_fallback):
            say(line) if request.as_json else print(line)
    if ended.killed_by:
        say(f"the program was ended by {ended.killed_by}; this is what was seen until then")


def _summarize(ended: ProgramResult, allowed: tuple[str, ...]) -> Summary:
    from ..tracing.summary import finished_kernels, summarize

    return summarize(ended.recording, kernels=finished_kernels(), allowed=allowed)


def _second(after: Summary | None) -> dict[str, object]:
    from ..tracing import json_form

    return {} if after is None else {"with_kernels": json_form.to_json(after)}
