"""``mpsmith replay``: run one stored case again and show both results, or print it as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import DEFAULT_STORE, StorePath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..audit.compiled.verdicts import CompiledOutcome
    from ..audit.model.launches import LaunchesByOverload
    from ..audit.running.replay import Replayed

# Seconds of processor time that the case may take.
TIMEOUT = 60.0


def replay(
    case: Annotated[
        str, typer.Argument(metavar="CASE", help="The case's number or label; `mpsmith report --cases` lists both.")
    ],
    store: StorePath = DEFAULT_STORE,
    script: Annotated[
        bool, typer.Option("--script", help="Reduce the case and print it as a program that needs only torch.")
    ] = False,
) -> None:
    """Run one case of an audit again, exactly as it was, in a separate process."""
    from ..audit.running.replay import replay_case, script_of_case

    if script:
        print(script_of_case(store, case, TIMEOUT), end="")
        return
    for line in _lines(replay_case(store, case, TIMEOUT)):
        print(line)


def _launches(launches: LaunchesByOverload) -> Iterator[str]:
    """Launches and declined native calls, if shipped kernels computed."""
    for overload, launched in launches.items():
        kernels = ", ".join(
            f"{kernel} ({number})" if number > 1 else kernel for kernel, number in launched.kernels.items()
        )
        if kernels:
            yield f"shipped:  {overload}: {kernels}"
        for reason, calls in launched.stood_in.items():
            yield f"stand-in: {overload}: {reason}" + (f" ({calls} calls)" if calls > 1 else "")


def _compiled_lines(outcome: CompiledOutcome) -> Iterator[str]:
    """The result of a call under torch.compile, and its generated Metal."""
    yield f"now:      {outcome.verdict.value} {outcome.reason}".rstrip()
    if outcome.line:
        yield f"line:     {outcome.line}"
    if outcome.faulty_stage:
        yield f"due to:   {outcome.faulty_stage.value}"
    yield f"graphs:   {outcome.graphs}, {outcome.kernels} Metal kernels, {outcome.recompilations} recompilations"
    for reason in outcome.breaks:
        yield f"break:    {reason}"
    if outcome.aten:
        yield f"aten:     {', '.join(outcome.aten)}"
    if outcome.source:
        yield f"--- generated Metal\n{outcome.source}"


def _lines(replayed: Replayed) -> Iterator[str]:
    recorded = replayed.recorded
    yield f"case {recorded.id}: {recorded.label}, {recorded.group.mode} mode, run {replayed.run.id}"
    if replayed.run.simulated:
        yield "on the SIMULATED mps device: not evidence about a Mac"
    yield f"recorded: {recorded.outcome.verdict.value} ({recorded.grade.value}) {recorded.outcome.message}".rstrip()
    if recorded.at_fault is not None:
        inner_call = recorded.at_fault
        yield f"at fault: {inner_call.overload}{inner_call.call}: {inner_call.message}"
    if replayed.replay is None:
        yield f"now:      {replayed.verdict} {replayed.worker_exit}"
        return
    outcome = replayed.replay.outcome
    if replayed.replay.compiled is not None:
        yield f"inputs:   {replayed.replay.inputs}"
        yield from _compiled_lines(replayed.replay.compiled)
        return
    yield f"now:      {outcome.verdict.value} {outcome.message}".rstrip()
    yield f"inputs:   {replayed.replay.inputs}"
    yield from _launches(replayed.replay.launches)
    for name, error in replayed.replay.fits.items():
        yield f"as predicted by: {name}" + (f", {error:.3g} tolerances at most" if error else "")
    if outcome.fallbacks:
        yield f"on the CPU: {', '.join(outcome.fallbacks)}"
    if outcome.max_error is not None:
        yield f"largest error: {outcome.max_error:.3g} of the tolerance, {outcome.stage}, compared: {outcome.compared}"
    yield f"--- cpu\n{replayed.replay.cpu}"
    yield f"--- mps{' (simulated)' if replayed.run.simulated else ''}\n{replayed.replay.mps}"
