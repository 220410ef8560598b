"""``mpsmith audit``: execute operators on the mps device and store what each case showed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..audit.model.selection import Samples, Settings, Shapes, ShippedSamples
from ..errors import MpsmithError
from ..simulator.opening import DeviceKind
from .compiled import show_ended, sync_compiled_run
from .options import DEFAULT_STORE, AsJson, AuditedOperators, StorePath, values_of
from .printing import print_json, say
from .registry import synced
from .registry_text import sync_json, sync_lines
from .report import PUBLISHED, publish

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from ..audit.findings.explanations import Explanation
    from ..audit.findings.store import Run
    from ..audit.findings.tally import Tally
    from ..audit.model.verdicts import CaseVerdict

# The panels of `mpsmith audit --help`.
_CASES, _DEVICE, _EXECUTION, _AFTERWARDS = "Which cases", "On which device", "How they are executed", "Afterwards"

LEAST_MEMORY_GIB = 1.0
"""What a worker takes before its first case: torch, the test samples and what they import."""


def audit(
    samples: Annotated[
        Samples | None,
        typer.Option(
            rich_help_panel=_CASES,
            help="How many cases of each operator and dtype; default where none is named, and quick with --compile.",
        ),
    ] = None,
    ops: AuditedOperators = None,
    dtypes: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_CASES, help="Only these dtypes; repeated or joined by commas."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_CASES,
            help="Only cases from these sources, such as opinfo, layouts, forms; repeated or joined by commas.",
        ),
    ] = None,
    large: Annotated[
        bool,
        typer.Option(
            "--large",
            rich_help_panel=_CASES,
            help="Also tensors of more than 2^31 elements: 9 to 25 GiB of memory a case, skipped where there is less;"
            " raise --memory-limit and lower --workers.",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=-(2**63),
            max=2**63 - 1,
            rich_help_panel=_CASES,
            help="Seed of the inputs: the same seed gives the same cases anywhere.",
        ),
    ] = 0,
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", rich_help_panel=_CASES, help="A package to import in the workers; may be repeated."),
    ] = None,
    device: Annotated[
        DeviceKind,
        typer.Option(
            rich_help_panel=_DEVICE, help="The real mps device, the simulated one, or the real one where there is one."
        ),
    ] = DeviceKind.AUTO,
    profile: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_DEVICE,
            help="Simulated device: a torch release, or a native_functions.yaml, whose coverage it has.",
        ),
    ] = None,
    refuse_dtypes_of: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            rich_help_panel=_DEVICE,
            help="Simulated device: native operators refuse the dtypes and sizes that this torch release refuses on a "
            "Mac, unless given that of the profile; none: they refuse nothing.",
        ),
    ] = None,
    faults: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="TEXT",
            rich_help_panel=_DEVICE,
            help="Simulated device: a fault to put in, as docs/self_test.md writes it; may be repeated.",
        ),
    ] = None,
    shipped: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            rich_help_panel=_DEVICE,
            help="Simulated device: compute with the Metal kernels that this torch release ships to Macs; several, "
            "joined by commas, are audited one after the other and compared. auto: those of the installed release, if "
            "they are at hand or can be fetched; none: the CPU's kernels stand in.",
        ),
    ] = "none",
    upstream: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=_DEVICE,
            help="The kernels that `mpsmith upstream build` noted in this folder answer on the simulated device.",
        ),
    ] = None,
    shipped_samples: Annotated[
        ShippedSamples,
        typer.Option(
            rich_help_panel=_DEVICE,
            help="How many cases take the shipped kernels: some of each kind (layout, size, values) for every operator "
            "and dtype, the others the CPU's; or all.",
        ),
    ] = ShippedSamples.DEFAULT,
    with_kernels: Annotated[
        bool,
        typer.Option(
            "--with-kernels",
            rich_help_panel=_EXECUTION,
            help="Audit twice, without and with mpsmith.kernels, and compare.",
        ),
    ] = False,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compile",
            rich_help_panel=_EXECUTION,
            help="Run every call under torch.compile, and say what Inductor made of it; kept beside the other audits "
            "of the store, and shown by `mpsmith report --compiled`.",
        ),
    ] = False,
    shapes: Annotated[
        Shapes,
        typer.Option(
            rich_help_panel=_EXECUTION,
            help="With --compile: sizes are numbers in generated code, symbols, or both.",
        ),
    ] = Shapes.STATIC,
    codegen: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_EXECUTION,
            metavar="RELEASE|FOLDER",
            help="With --compile: lay the code generator of this torch release, such as 2.15.0, or of a clone of "
            "pytorch's repository, over the installed Inductor; `mpsmith compiled releases` sets such audits side by "
            "side.",
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_EXECUTION,
            metavar="RELEASE",
            help="With --compile: audit with this torch release itself, in an environment of its own that pip makes "
            "and the cache keeps. Name pip an index with CPU builds, or several GB of CUDA come along.",
        ),
    ] = None,
    store: StorePath = DEFAULT_STORE,
    resume: Annotated[
        bool, typer.Option("--resume", rich_help_panel=_EXECUTION, help="Go on with the audit that was stopped.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=_EXECUTION,
            help="Worker processes of this machine.",
            show_default="one for each processor",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=_EXECUTION,
            help="Execute on the workers of this Dask scheduler, such as tcp://host:8786, instead of on this machine "
            "(docs/cluster.md).",
        ),
    ] = None,
    per_device: Annotated[
        bool,
        typer.Option(
            "--per-device",
            rich_help_panel=_EXECUTION,
            help="With --cluster: a run of its own for each kind of device (chip, system, torch) among the workers.",
        ),
    ] = False,
    releases: Annotated[
        list[str] | None,
        typer.Option(
            "--releases",
            metavar="A,B",
            rich_help_panel=_EXECUTION,
            help="Audit with each of these torch releases, in environments that pip makes and the cache keeps, here or "
            "on the workers of a cluster, and say which overloads do not stand alike.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1,
            rich_help_panel=_EXECUTION,
            help="Seconds of processor time that one case may take; five times as many on the wall clock.",
        ),
    ] = 60.0,
    memory_limit: Annotated[
        float,
        typer.Option(
            min=0, rich_help_panel=_EXECUTION, help="GiB of data that a worker may hold, 0 for no limit (Linux)."
        ),
    ] = 8.0,
    sync: Annotated[
        bool,
        typer.Option("--sync", rich_help_panel=_AFTERWARDS, help="Bring the registry's measured fields up to date."),
    ] = False,
    report: Annotated[
        bool,
        typer.Option("--report", rich_help_panel=_AFTERWARDS, help="Write the reports under reports/published."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Audit the mps device: run operators on it, compare with the CPU, and store a verdict for every case.

    Without a Mac the device is simulated, and everything that comes out says so.
    """
    if 0 < memory_limit < LEAST_MEMORY_GIB:
        raise MpsmithError(
            f"--memory-limit {memory_limit:g}: no worker starts with so little; give at least {LEAST_MEMORY_GIB:g}"
        )
    if compiled and (with_kernels or shipped != "none"):
        raise typer.BadParameter("goes with neither --with-kernels nor --shipped", param_hint="--compile")
    if codegen is not None and not compiled:
        raise typer.BadParameter("goes with --compile alone", param_hint="--codegen")
    if release is not None:
        if cluster is not None:
            raise typer.BadParameter("goes with --releases, not with --release", param_hint="--cluster")
        if not compiled or codegen is not None:
            raise typer.BadParameter("goes with --compile, and not with --codegen", param_hint="--release")
        if not _is_installed(release):
            raise typer.Exit(_audited_with(release))
    if upstream and (compiled or with_kernels or shipped != "none"):
        raise typer.BadParameter("goes with neither --compile, --with-kernels nor --shipped", param_hint="--upstream")
    _check_cluster(cluster, per_device, workers, upstream, afterwards=with_kernels or sync or report)
    if releases and (compiled or with_kernels or sync or report or per_device or as_json):
        raise typer.BadParameter(
            "goes with neither --compile, --with-kernels, --sync, --report, --per-device nor --json",
            param_hint="--releases",
        )
    settings = Settings(
        samples=samples or (Samples.QUICK if compiled else Samples.DEFAULT),
        seed=seed,
        ops=values_of(ops, "--ops"),
        dtypes=values_of(dtypes, "--dtypes"),
        device=device,
        profile=profile,
        refuse_dtypes_of=refuse_dtypes_of,
        workers=workers or os.cpu_count() or 1,
        timeout=timeout,
        memory_limit=int(memory_limit * 2**30),
        sources=values_of(sources, "--sources"),
        imports=values_of(imports, "--import"),
        large=large,
        faults=tuple(faults or ()),
        shipped_samples=shipped_samples,
        upstream=str(upstream.resolve()) if upstream else None,
        compiled=shapes if compiled else None,
        codegen=_other_codegen(codegen),
    )
    if releases:
        _audit_torches(values_of(releases, "--releases"), settings, store, resume=resume, cluster=cluster)
        return
    chosen = [settings] if resume else _with_shipped(settings, shipped)
    if len(chosen) > 1 and (with_kernels or sync or report):
        raise typer.BadParameter(
            "several releases go with neither --with-kernels, --sync nor --report", param_hint="--shipped"
        )
    if len(chosen) > 1:
        _audit_releases(chosen, store, cluster, as_json)
        return
    settings = chosen[0]
    if with_kernels:
        if resume or sync or report:
            raise typer.BadParameter("goes with neither --resume, --sync nor --report", param_hint="--with-kernels")
        _audit_with_kernels(settings, store, cluster, as_json)
        return
    if per_device:
        runs = _runs(settings, store, resume=resume, cluster=cluster, per_device=True)
        outcomes = [_shown(run, store, quiet=as_json) for run in runs]
        if as_json:
            print_json({"devices": outcomes})
        return
    (run,) = _runs(settings, store, resume=resume, cluster=cluster)
    if run.compiled:
        if sync:
            sync_compiled_run(run, store, quiet=as_json)
        show_ended(run, store, as_json=as_json, folder=PUBLISHED if report else None)
        return
    outcome = _shown(run, store, quiet=as_json)
    if sync:
        sync_report = synced(store)
        outcome["registry"] = sync_json(sync_report, None)
        if not as_json:
            print("\n".join(sync_lines(sync_report, None)))
    if report:
        outcome["reports"] = [str(path) for path in publish(store)]
        if not as_json:
            print(f"report: {', '.join(outcome['reports'])}")
    if as_json:
        print_json(outcome)


def _other_codegen(release: str | None) -> str | None:
    """The release whose code generator is laid over, fetched before any worker wants it; None for the installed one.

    Of a folder, a clone of upstream's repository, the absolute path.
    """
    from ..audit.releases.wheel.code_generator import code_generator, version_of_checkout

    if release is None or _is_installed(release):
        return None
    if (folder := Path(release)).is_dir():
        version_of_checkout(folder)
        return str(folder.resolve())
    code_generator(release)
    return release


def _is_installed(release: str) -> bool:
    from ..audit.releases.surface.native_functions import installed_release
    from ..registry.torch_release import public_version

    return release == public_version(installed_release())


def _audit_torches(
    releases: tuple[str, ...], settings: Settings, store: Path, *, resume: bool, cluster: str | None
) -> None:
    """Audit with the torch of each release, on this machine or on a cluster."""
    from ..audit.running.release_environment import audit_again, python_with
    from .audited_releases import arguments_of_one, audit_releases

    def audited(release: str, go_on: bool) -> None:
        if cluster is not None:
            (run,) = _runs(settings, store, resume=go_on, cluster=cluster, release=release)
            _shown(run, store, quiet=False)
            return
        arguments = [*arguments_of_one(sys.argv[1:]), *(["--resume"] if go_on else [])]
        if code := audit_again(python_with(release, say), arguments):
            raise typer.Exit(code)

    audit_releases(releases, store, resume=resume, audit=audited)


def _audited_with(release: str) -> int:
    """Run this command again, but for --release, with the torch of a release; its exit code."""
    from ..audit.running.release_environment import audit_again, python_with

    return audit_again(python_with(release, say), sys.argv[1:])


def _with_shipped(settings: Settings, shipped: str) -> list[Settings]:
    """An audit for each release whose shipped kernels are to compute, with the coverage of that release."""
    from ..audit.shipped.releases import coverage_of, releases_to_launch

    return [
        replace(settings, shipped=release, profile=settings.profile or coverage_of(release))
        for release in releases_to_launch(shipped, say)
    ]


def _audit_releases(settings: list[Settings], store: Path, cluster: str | None, as_json: bool) -> None:
    """Audit with the kernels of one release after the other, and compare what came out wrong."""
    from ..audit.findings.store import Store
    from .release_changes_text import changes_json, changes_table, changes_with_rules

    audited = [_audit(each, store, cluster, quiet=as_json) for each in settings]
    with Store.open(store) as opened:
        changes = changes_with_rules([(opened, run) for run, _ in audited])
    if as_json:
        print_json({"releases": [outcome for _, outcome in audited], "wrong_results": changes_json(changes)})
    else:
        print(changes_table(changes, [str(each.shipped) for each in settings]))


def _audit(settings: Settings, store: Path, cluster: str | None, *, quiet: bool) -> tuple[Run, dict[str, Any]]:
    """Run one audit, print what it showed unless `quiet`, and return it as plain data too."""
    (run,) = _runs(settings, store, resume=False, cluster=cluster)
    return run, _shown(run, store, quiet=quiet)


def _runs(
    settings: Settings,
    store: Path,
    *,
    resume: bool,
    cluster: str | None,
    per_device: bool = False,
    release: str | None = None,
) -> list[Run]:
    """Run an audit on this machine, or on a cluster, where it may be several runs."""
    here = "".join((f" --cluster {cluster}" if cluster else "", " --per-device" if per_device else ""))
    go_on = f"what had finished is in {store}, go on with: mpsmith audit --resume{here} --store {store}"
    try:
        if cluster is None:
            from ..audit.running.runner import run_audit

            return [run_audit(settings, store, resume=resume, say=say)]
        from ..audit.running.cluster.auditing import audit_on_cluster
        from ..audit.running.cluster.errors import StoppedError

        try:
            return audit_on_cluster(
                settings, store, cluster, resume=resume, per_device=per_device, say=say, release=release
            )
        except StoppedError as error:
            raise MpsmithError(f"{error}; {go_on}") from error
    except KeyboardInterrupt:
        say(f"stopped; {go_on}")
        raise typer.Exit(130) from None


def _check_cluster(
    cluster: str | None, per_device: bool, workers: int | None, upstream: Path | None, *, afterwards: bool
) -> None:
    """Raises BadParameter for options that mean nothing on a cluster, or nothing without one."""
    if cluster is None and per_device:
        raise typer.BadParameter("goes with --cluster alone", param_hint="--per-device")
    if cluster is None:
        return
    if workers is not None:
        raise typer.BadParameter("is for this machine; a cluster has its own threads", param_hint="--workers")
    if upstream is not None:
        raise typer.BadParameter("names a folder of this machine; leave out --cluster", param_hint="--upstream")
    if per_device and afterwards:
        raise typer.BadParameter("goes with neither --with-kernels, --sync nor --report", param_hint="--per-device")


def _shown(run: Run, store: Path, *, quiet: bool) -> dict[str, Any]:
    """Print what a run showed unless `quiet`, and return it as plain data."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explain
    from ..audit.findings.store import Store
    from ..audit.findings.tally import tally

    with Store.open(store) as opened:
        counts = tally(opened, run)
        explanation, _ = explain(opened, run, audited_surface(run))
    if not quiet:
        print("\n".join(_lines(counts, explanation, store)))
    if counts.executed == 0:
        say("error: no case was executed, so nothing is known")
        raise typer.Exit(1)
    return _as_json(counts, explanation, store)


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
        "non_passes": explanation.non_passes,
        "unexplained": explanation.unexplained_cases,
    }


def _audit_with_kernels(settings: Settings, store: Path, cluster: str | None, as_json: bool) -> None:
    from tabulate import tabulate

    from ..audit.findings.store import Store
    from ..audit.findings.tally import changes

    before, without = _audit(settings, store, cluster, quiet=as_json)
    with_ours = replace(settings, imports=(*settings.imports, "mpsmith.kernels"))
    after, including = _audit(with_ours, store, cluster, quiet=as_json)
    with Store.open(store) as opened:
        changed = changes(opened, before, after)
    if as_json:
        rows = [
            {"operator": change.operator, "before": _by_name(change.before), "after": _by_name(change.after)}
            for change in changed
        ]
        print_json({"without_kernels": without, "with_kernels": including, "changes": rows})
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
