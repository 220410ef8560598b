"""``mpsmith audit``: execute operators on the mps device and store what each case showed."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..audit.model.selection import Samples, Settings
from ..audit.running.worker_limits import default_workers
from ..errors import MpsmithError
from ..registry.folder import written_folder
from ..simulator.opening import DeviceKind
from .audit_lines import ending_lines, opening_lines
from .audit_options import (
    AUTO,
    AuditRequest,
    Cluster,
    Compile,
    Dtypes,
    HostCode,
    Imports,
    Large,
    MacOSVersions,
    MemoryLimit,
    Report,
    Resume,
    Seed,
    Shipped,
    Sources,
    Sync,
    Timeout,
    WithKernels,
    macos_versions,
    memory_limit_in_bytes,
    shapes_of_compiled_calls,
    shipped_samples,
)
from .compiled import show_ended, sync_compiled_run
from .host_code import built_folders, touched_operators
from .options import (
    DEFAULT_STORE,
    AsJson,
    AuditedOperators,
    Device,
    Profile,
    SampleLevel,
    StorePath,
    Workers,
    require_writable,
    values_of,
)
from .printing import print_json, say
from .registry import sync_measured
from .site import PUBLISHED, registered_statuses, write_site_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator

    from ..audit.findings.explanations import Explanation
    from ..audit.findings.run_data import RunData
    from ..audit.findings.tally import Tally
    from ..audit.model.verdicts import CaseVerdict
    from ..audit.store.records import Run


def audit(
    samples: SampleLevel = None,
    ops: AuditedOperators = None,
    dtypes: Dtypes = None,
    sources: Sources = None,
    large: Large = False,
    seed: Seed = 0,
    imports: Imports = None,
    device: Device = DeviceKind.AUTO,
    profile: Profile = None,
    shipped: Shipped = "none",
    host_code: HostCode = None,
    macos: MacOSVersions = None,
    with_kernels: WithKernels = False,
    compiled: Compile = False,
    store: StorePath = DEFAULT_STORE,
    resume: Resume = False,
    workers: Workers = None,
    cluster: Cluster = None,
    timeout: Timeout = 60.0,
    memory_limit: MemoryLimit = 8.0,
    sync: Sync = False,
    report: Report = False,
    as_json: AsJson = False,
) -> None:
    """Audit the mps device: run operators on it, compare with the CPU, and store a verdict for every case.

    Without a Mac the device is simulated, and all output says so.
    """
    settings = Settings(
        samples=samples or (Samples.QUICK if compiled else Samples.DEFAULT),
        seed=seed,
        ops=values_of(ops, "--ops"),
        dtypes=values_of(dtypes, "--dtypes"),
        device=device,
        profile=profile,
        workers=workers or default_workers(),
        timeout=timeout,
        memory_limit=memory_limit_in_bytes(memory_limit),
        sources=values_of(sources, "--sources"),
        imports=values_of(imports, "--import"),
        large=large,
        shipped_samples=shipped_samples(),
        compiled=shapes_of_compiled_calls() if compiled else None,
    )
    versions = macos_versions(macos)
    request = AuditRequest(
        settings, store, shipped, host_code, versions, with_kernels, resume, cluster, sync, report, as_json
    )
    request.check(workers=workers is not None)
    if report:
        require_writable("--report", PUBLISHED / "index.html")
    if sync:
        require_writable("--sync", written_folder() / "a.yaml")
    run_request(request)


def run_request(request: AuditRequest) -> None:
    """Run the audit or audits of a request whose options were checked, and print the results."""
    from ..reports.evidence.preflight import require_working_device

    if request.cluster is None:
        require_working_device(request.settings.device, say)
    settings = [request.settings] if request.resume else _subjects(request)
    if len(settings) > 1:
        _audit_releases(settings, request)
    elif request.with_kernels:
        _audit_with_kernels(settings[0], request)
    else:
        run = _run(settings[0], request)
        if run.compiled:
            _show_compiled(run, request)
        else:
            show_and_publish(run, request)


def _show_compiled(run: Run, request: AuditRequest) -> None:
    if request.sync:
        sync_compiled_run(run, request.store, quiet=request.as_json)
    show_ended(run, request.store, as_json=request.as_json, folder=PUBLISHED if request.report else None)


def show_and_publish(run: Run, request: AuditRequest) -> None:
    """Print, sync and publish what a run showed; it is read from the store once."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.measurements import measurements_of
    from ..audit.findings.run_data import read_run
    from ..audit.findings.summary import judged_run, summarize_judged
    from ..audit.store.store import Store

    with _without_collections(), Store.open(request.store) as store:
        judged = judged_run(read_run(store, run, only_verdicts=not request.report), audited_surface(run))
        now = judged.verdicts()
        outcome = _shown(judged.data, judged.explanation, request)
        if request.sync:
            outcome["registry"] = sync_measured(measurements_of(now), quiet=request.as_json)
        if request.report:
            summary = summarize_judged(store, judged, registered_statuses())
            outcome["reports"] = [str(path) for path in write_site_of(summary, PUBLISHED)]
            if not request.as_json:
                print(f"report: {_page(outcome['reports'])} ({len(outcome['reports'])} files beside it)")
        if request.as_json:
            print_json(outcome)
        else:
            print("\n".join(ending_lines(store, run, now)))


@contextmanager
def _without_collections() -> Iterator[None]:
    """Disable garbage collection inside: millions of objects are read there, and all are kept to the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _page(files: list[str]) -> str:
    """The report's file to open first."""
    return next((file for file in files if file.endswith("index.html")), files[0])


def _subjects(request: AuditRequest) -> list[Settings]:
    """Settings for each release whose shipped kernels are used, with its coverage, or each host code and macOS."""
    from ..audit.shipped.requested_releases import coverage_of, releases_to_launch

    settings, shipped = request.settings, request.shipped
    if request.host_code is not None and (folders := built_folders(request.host_code.split(","))):
        ops = settings.ops or touched_operators(folders)
        versions = request.macos or (None,)
        return [replace(settings, host_code=code, macos=macos, ops=ops) for code in folders for macos in versions]
    if request.host_code is not None:  # auto, and this machine cannot run it
        if request.macos:
            raise MpsmithError("--macos: only host code asks for the version of macOS, and it cannot be run here")
        shipped = AUTO
    return [
        replace(settings, shipped=release, profile=settings.profile or coverage_of(release))
        for release in releases_to_launch(shipped, say)
    ]


def _audit_releases(settings: list[Settings], request: AuditRequest) -> None:
    """Audit the code of one release, tree or version of macOS after the other, and compare the wrong results."""
    from ..audit.store.store import Store
    from .release_changes_text import changes_json, changes_table, changes_with_rules

    audited = [_audit(release_settings, request) for release_settings in settings]
    with Store.open(request.store) as opened:
        changes = changes_with_rules([(opened, run) for run, _ in audited])
    if request.as_json:
        outcomes = [{"release": run.audited_code, **outcome} for run, outcome in audited]
        print_json({"releases": outcomes, "wrong_results": changes_json(changes)})
    else:
        print(changes_table(changes, [run.audited_code for run, _ in audited]))


def _audit(settings: Settings, request: AuditRequest) -> tuple[Run, dict[str, Any]]:
    """Run one audit, print the results unless JSON is requested, and return the run and its JSON."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explain
    from ..audit.findings.run_data import read_run
    from ..audit.store.store import Store

    run = _run(settings, request)
    with Store.open(request.store) as opened:
        data = read_run(opened, run, only_verdicts=True)
    return run, _shown(data, explain(data, audited_surface(run))[0], request)


def _run(settings: Settings, request: AuditRequest) -> Run:
    """Run an audit on this machine or on a cluster."""
    store, cluster = request.store, request.cluster
    resume_with = (
        f"what had finished is in {store}, continue with: mpsmith audit --resume"
        f"{f' --cluster {cluster}' if cluster else ''} --store {store}"
    )
    opening = () if request.resume or settings.compiled else opening_lines(settings)
    tell = _print_first(opening, say)
    try:
        if cluster is None:
            from ..audit.running.runner import run_audit

            return run_audit(settings, store, resume=request.resume, say=tell)
        from ..audit.running.cluster import StoppedError, audit_on_cluster

        try:
            return audit_on_cluster(settings, store, cluster, resume=request.resume, say=tell)
        except StoppedError as error:
            raise MpsmithError(f"{error}; {resume_with}") from error
    except KeyboardInterrupt:
        say(f"stopped; {resume_with}")
        raise typer.Exit(130) from None


def _print_first(lines: Iterable[str], tell: Callable[[str], None]) -> Callable[[str], None]:
    """A function that prints `lines` before its first text, so that a refused audit prints only its error."""
    waiting = iter(lines)

    def said(text: str) -> None:
        for line in waiting:
            tell(line)
        tell(text)

    return said


def _shown(data: RunData, explanation: Explanation, request: AuditRequest) -> dict[str, Any]:
    """Print the results of a run, and return them as plain data."""
    from ..audit.findings.tally import tally

    counts = tally(data)
    if not request.as_json:
        print("\n".join(_lines(counts, explanation, request.store)))
    if counts.executed == 0:
        if request.as_json:
            print_json(_as_json(counts, explanation, request.store))
        say("error: no case was executed, so nothing is known")
        raise typer.Exit(1)
    return _as_json(counts, explanation, request.store)


def _lines(counts: Tally, explanation: Explanation, store: Path) -> Iterator[str]:
    yield from counts.lines()
    if explanation.non_passes:
        yield f"  {explanation.sentence}"
    if explanation.unexplained:
        yield f"  list them: mpsmith report --unexplained --store {store}"


def _as_json(counts: Tally, explanation: Explanation, store: Path) -> dict[str, Any]:
    run = counts.run
    return {
        "store": str(store),
        "run": run.id,
        "torch": run.environment["torch"],
        "simulated": run.simulated,
        "executed": counts.executed,
        "grades": {grade.value: number for grade, number in counts.grades.items()},
        "verdicts": {mode: _by_name(verdicts) for mode, verdicts in counts.by_mode.items()},
        "fallbacks": dict(counts.fallbacks.most_common()),
        "host_work": {name: vars(work) for name, work in counts.host_work.items()},
        "non_passes": explanation.non_passes,
        "unexplained": explanation.unexplained_cases,
    }


def _audit_with_kernels(settings: Settings, request: AuditRequest) -> None:
    from tabulate import tabulate

    from ..audit.findings.tally import changes
    from ..audit.store.store import Store

    before, without_kernels = _audit(settings, request)
    after, with_kernels = _audit(replace(settings, imports=(*settings.imports, "mpsmith.kernels")), request)
    with Store.open(request.store) as opened:
        changed = changes(opened, before, after)
    if request.as_json:
        rows = [
            {"operator": change.operator, "before": _by_name(change.before), "after": _by_name(change.after)}
            for change in changed
        ]
        print_json({"without_kernels": without_kernels, "with_kernels": with_kernels, "changes": rows})
    elif not changed:
        print("the kernels changed nothing here")
    else:
        table = [(change.operator, _in_words(change.before), _in_words(change.after)) for change in changed]
        mark = " (SIMULATED)" if before.simulated else ""
        print(tabulate(table, headers=("operator", f"without kernels{mark}", f"with kernels{mark}")))


def _by_name(counts: Counter[CaseVerdict]) -> dict[str, int]:
    return {verdict.value: number for verdict, number in counts.most_common()}


def _in_words(counts: Counter[CaseVerdict]) -> str:
    return ", ".join(f"{number} {verdict.value}" for verdict, number in counts.most_common())
