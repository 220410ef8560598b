"""``mpsmith audit``: execute operators on the mps device and store what each case showed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..audit.selection import DeviceKind, Samples, Settings

if TYPE_CHECKING:
    from collections import Counter

    from ..audit.findings.store import Run
    from ..audit.verdicts import CaseVerdict

DEFAULT_STORE = Path("audit.sqlite")


def audit(
    samples: Annotated[Samples, typer.Option(help="How many cases of each operator and dtype.")] = Samples.DEFAULT,
    ops: Annotated[
        list[str] | None,
        typer.Option(help="Only these operators: a name, aten::name or a pattern such as 'linalg.*'; may be repeated."),
    ] = None,
    dtypes: Annotated[list[str] | None, typer.Option(help="Only these dtypes; may be repeated.")] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(help="Only cases from these sources, such as opinfo, layouts, forms; may be repeated."),
    ] = None,
    large: Annotated[
        bool,
        typer.Option(
            "--large",
            help="Also tensors of more than 2^31 elements: 9 to 25 GiB of memory a case, skipped where there is less;"
            " raise --memory-limit and lower --workers.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the inputs: the same seed gives the same cases anywhere.")] = 0,
    device: Annotated[
        DeviceKind, typer.Option(help="The real mps device, the simulated one, or the real one where there is one.")
    ] = DeviceKind.AUTO,
    profile: Annotated[
        str | None,
        typer.Option(help="Simulated device: a torch release, or a native_functions.yaml, whose coverage it has."),
    ] = None,
    refuse_dtypes_of: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="Simulated device: native operators refuse the dtypes that this torch release refuses on a Mac.",
        ),
    ] = None,
    store: Annotated[Path, typer.Option(help="The results store, an SQLite file.")] = DEFAULT_STORE,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the audit that was stopped.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = os.cpu_count() or 1,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1, help="Seconds of processor time that one case may take; five times as many on the wall clock."
        ),
    ] = 60.0,
    memory_limit: Annotated[
        float, typer.Option(min=0, help="GiB of data that a worker may hold, 0 for no limit (Linux).")
    ] = 8.0,
    imports: Annotated[
        list[str] | None, typer.Option("--import", help="A package to import in the workers; may be repeated.")
    ] = None,
    with_kernels: Annotated[
        bool, typer.Option("--with-kernels", help="Audit twice, without and with mpsmith.kernels, and compare.")
    ] = False,
    sync: Annotated[bool, typer.Option("--sync", help="Then bring the registry's measured fields up to date.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Then write the reports under reports/published.")] = False,
    replay: Annotated[
        str | None,
        typer.Option(metavar="CASE", help="Instead, run one stored case, a number or a label, and show both results."),
    ] = None,
    script: Annotated[
        bool,
        typer.Option("--script", help="With --replay: make the case small and print it as a program for a Mac."),
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Instead, put faults into the simulated device and see which are found."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --self-test: print JSON.")] = False,
) -> None:
    """Audit the mps device: run operators on it, compare with the CPU, and store a verdict for every case.

    Without a Mac the device is simulated, and everything that comes out says so.
    """
    if self_test:
        from .self_test import self_test as run_self_test

        run_self_test(workers, as_json)
        return
    if as_json:
        raise typer.BadParameter("it goes with --self-test", param_hint="--json")
    if replay is not None:
        _print_script(store, replay, timeout) if script else _replay(store, replay, timeout)
        return
    if script:
        raise typer.BadParameter("it goes with --replay CASE_ID", param_hint="--script")
    settings = Settings(
        samples=samples,
        seed=seed,
        ops=_split(ops),
        dtypes=_split(dtypes),
        device=device,
        profile=profile,
        refuse_dtypes_of=refuse_dtypes_of,
        workers=workers,
        timeout=timeout,
        memory_limit=int(memory_limit * 2**30),
        sources=_split(sources),
        imports=_split(imports),
        large=large,
    )
    if with_kernels:
        _audit_with_kernels(settings, store, resume=resume, follow_up=sync or report)
        return
    _audit(settings, store, resume)
    if sync:
        from .registry import sync as sync_registry

        sync_registry(store=store)
    if report:
        from .report import publish

        publish(store)


def _audit_with_kernels(settings: Settings, store: Path, *, resume: bool, follow_up: bool) -> None:
    if resume or follow_up:
        raise typer.BadParameter("goes with neither --resume, --sync nor --report", param_hint="--with-kernels")
    from tabulate import tabulate

    from ..audit.findings.store import Store
    from ..audit.findings.tally import changes

    before = _audit(settings, store, resume=False)
    after = _audit(replace(settings, imports=(*settings.imports, "mpsmith.kernels")), store, resume=False)
    with Store.open(store) as opened:
        found = changes(opened, before, after)
    if not found:
        print("the kernels changed nothing here")
        return
    rows = [(change.operator, _counted(change.before), _counted(change.after)) for change in found]
    mark = " (SIMULATED)" if before.simulated else ""
    print(tabulate(rows, headers=("operator", f"without kernels{mark}", f"with kernels{mark}")))


def _counted(counts: Counter[CaseVerdict]) -> str:
    return ", ".join(f"{number} {verdict.value}" for verdict, number in counts.most_common())


def _audit(settings: Settings, store: Path, resume: bool) -> Run:
    from ..audit.running.runner import run_audit

    try:
        result = run_audit(settings, store, resume=resume, say=_say)
    except KeyboardInterrupt:
        _say(f"stopped; what had finished is in {store}, go on with: mpsmith audit --resume --store {store}")
        raise typer.Exit(130) from None
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explain
    from ..audit.findings.store import Store
    from ..audit.findings.tally import tally

    with Store.open(store) as opened:
        counts = tally(opened, result.run)
        explanation, _ = explain(opened, result.run, audited_surface(result.run))
    for line in counts.lines():
        print(line)
    if explanation.non_passes:
        print(f"  {explanation.sentence}")
    if explanation.unexplained:
        print(f"  list them: mpsmith report --unexplained --store {store}")
    if counts.executed == 0:
        _say("error: no case was executed, so nothing is known")
        raise typer.Exit(1)
    return result.run


def _replay(store: Path, name: str, timeout: float) -> None:
    from ..audit.running.replay import replay_case

    replayed = replay_case(store, name, timeout)
    recorded = replayed.recorded
    print(f"case {recorded.id}: {recorded.label}, {recorded.group.mode} mode, run {replayed.run.id}")
    if replayed.run.simulated:
        print("on the SIMULATED mps device: not evidence about a Mac")
    print(f"recorded: {recorded.outcome.verdict.value} {recorded.outcome.message}".rstrip())
    if replayed.replay is None:
        print(f"now:      {replayed.verdict} {replayed.death}")
        return
    outcome = replayed.replay.outcome
    print(f"now:      {outcome.verdict.value} {outcome.message}".rstrip())
    print(f"inputs:   {replayed.replay.inputs}")
    if outcome.fallbacks:
        print(f"on the CPU: {', '.join(outcome.fallbacks)}")
    if outcome.max_error is not None:
        print(f"largest error: {outcome.max_error:.3g} of the tolerance, {outcome.stage}, compared: {outcome.compared}")
    print(f"--- cpu\n{replayed.replay.cpu}\n--- mps{' (simulated)' if replayed.run.simulated else ''}")
    print(replayed.replay.mps)


def _print_script(store: Path, name: str, timeout: float) -> None:
    from ..audit.running.replay import script_of_case

    print(script_of_case(store, name, timeout), end="")


def _split(values: list[str] | None) -> tuple[str, ...]:
    """Options may be repeated or joined by commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
