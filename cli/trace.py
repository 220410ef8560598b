"""``mpsmith trace``: run a program and say what falls back to the CPU in it, from which line, and what would help."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import MpsmithError
from ..simulator.opening import DeviceKind
from .ending import ignore_broken_pipe
from .options import AsJson, Device, Profile, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..tracing.summary import Summary
    from ..tracing.supervision import ProgramResult


def trace(
    program: Annotated[str, typer.Argument(help="A Python program that uses device='mps'.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The program's own arguments, options included: all that follows it.")
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
        bool, typer.Option("--fail-on-fallback", help="End with status 1 where an operator falls back.")
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="OP", help="This operator or overload may fall back; repeated or by commas."),
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev.", dir_okay=False)
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the tables and the timeline.")
    ] = None,
    signposts: Annotated[
        bool,
        typer.Option("--signposts", help="On a Mac: let torch write signposts for Metal System Trace in Instruments."),
    ] = False,
    metal_log: Annotated[
        bool,
        typer.Option("--metal-log", help="On a Mac: join in what torch logs of kernels, graphs and copies on the GPU."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a program with fallbacks allowed and say which operators ran on the CPU, where, how often, and what helps.

    The program ends with its own exit code. With --json its output goes to standard error.
    """
    from ..tracing import annotations, json_form, page, supervision, text, timeline

    allowed = values_of(allow, "--allow")
    for path in (perfetto, html):
        if path is not None and not path.parent.is_dir():
            raise MpsmithError(f"{path}: there is no folder {path.parent}")  # not after hours of a program
    given = arguments or []
    traced = supervision.Program(program, given[1:] if given[:1] == ["--"] else given, module)

    def run(kernels: bool) -> tuple[ProgramResult, Summary]:
        output = sys.__stderr__ if as_json else None
        ended = supervision.run(
            traced,
            device,
            profile,
            kernels=kernels,
            output=output,
            signposts=signposts,
            metal_log=metal_log,
        )
        return ended, _summarize(ended, allowed)

    ended, summary = run(kernels=False)
    after = run(kernels=True)[1] if with_kernels else None
    with ignore_broken_pipe():  # the exit code is the program's all the same
        if as_json:
            logged = {"metal_log": [asdict(each) for each in ended.metal_log]} if metal_log else {}
            print_json(json_form.to_json(summary) | {"status": ended.status} | logged | _second(after))
        else:
            text.show(summary)
            text.show_metal_log(ended.metal_log)
            if after is not None:
                text.show_both(summary, after)
        if os.environ.get("GITHUB_ACTIONS"):
            for line in annotations.github(summary, failing=fail_on_fallback):
                say(line) if as_json else print(line)
    if metal_log and not ended.metal_log:
        say("--metal-log: torch logged nothing; only a real mps device does")
    if signposts and not summary.recording.fact("signposts"):
        say("--signposts: none were written; only a real mps device does")
    if ended.killed_by:
        say(f"the program was ended by {ended.killed_by}; this is what was seen until then")
    if perfetto is not None:
        timeline.write(perfetto, summary.recording)
    if html is not None:
        page.write(html, summary, after)
    judged = after or summary
    if not ended.status and fail_on_fallback and judged.forbidden:
        say(f"--fail-on-fallback: {', '.join(judged.forbidden)} fell back")
        raise typer.Exit(1)
    if ended.status:
        raise typer.Exit(ended.status)


def _summarize(ended: ProgramResult, allowed: tuple[str, ...]) -> Summary:
    from ..tracing.summary import finished_kernels, summarize

    return summarize(ended.recording, kernels=finished_kernels(), allowed=allowed)


def _second(after: Summary | None) -> dict[str, object]:
    from ..tracing import json_form

    return {} if after is None else {"with_kernels": json_form.to_json(after)}
