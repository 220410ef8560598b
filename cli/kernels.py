"""`mpsmith kernels`: the Metal kernels that replace fallbacks. Lists, verifies and times them."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..registry.folder import written_folder
from .options import AsJson, require_writable
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..kernels.verification.timing import Timing
    from ..kernels.verification.verify import FamilyResult
    from ..simulator.device.coverage_profile import CoverageProfile


app = typer.Typer(name="kernels", help="The kernels that replace fallbacks on mps.", no_args_is_help=True)

Operators = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OP]...", help="Operators, such as aten::mode or mode, or families; all by default."),
]

_FAILURES_SHOWN = 5
# What `bench` times. A simulated launch of 2^20 elements takes minutes where a kernel works with matrices.
_ELEMENTS, _SIMULATED_ELEMENTS = 2**20, 2**12


@app.command("list")
def list_(operators: Operators = None, as_json: AsJson = False) -> None:
    """List every kernel, the dtypes that it is verified for, and whether torch uses it here."""
    simulated = _open_device()
    from ..kernels import status
    from ..kernels.runtime.catalog import named
    from ..kernels.verification.source import calls_of

    wanted = {kernel.overload for kernel in named(operators)} if operators else None
    rows = []
    for kernel in status():
        if wanted is not None and kernel.overload not in wanted:
            continue
        operator = kernel.overload.split(".")[0]
        dtypes = [dtype for call in calls_of(kernel.family) if operator in call.operators for dtype in call.dtypes]
        names = list(dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in dtypes))
        rows.append((kernel.overload, kernel.family, names, kernel.state))
    if as_json:
        print_json(
            {
                "simulated": simulated,
                "kernels": [
                    {"overload": o, "family": f, "dtypes": d, "state": s.value, "explanation": s.explanation}
                    for o, f, d, s in rows
                ],
            }
        )
        return
    from tabulate import tabulate

    table = [(overload, family, ", ".join(dtypes), state.value) for overload, family, dtypes, state in rows]
    typer.echo(tabulate(table, headers=("overload", "module", "dtypes", "here"), maxcolwidths=(None, None, 60, None)))
    typer.echo(f"{len(rows)} kernels{_marked(simulated)}")


@app.command()
def verify(
    operators: Operators = None,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Write the evidence of what passed into the registry.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Verify kernels in every dtype and layout, with gradients; exits with 1 on a failure.

    On the simulated device the evidence says so, and no kernel is called verified.
    """
    if record:
        require_writable("--record", written_folder() / "a.yaml")
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("MPSMITH_METAL_MODE", "schedules")
    _require_working_device()
    simulated = _open_device(lacking=True)
    from ..kernels.verification.evidence import record as record_evidence
    from ..kernels.verification.verify import verify as verify_family
    from ..registry.folder import registry_folder
    from ..registry.problems import shown
    from ..reports.counting import counted

    results = [verify_family(name) for name in _tracked(_families(operators), "verifying", quiet=as_json)]
    written = record_evidence(None, results, simulated=simulated) if record else []
    if as_json:
        families = [_result_json(result) for result in results]
        print_json({"simulated": simulated, "families": families})
    else:
        _print_results(results, simulated)
        if record:
            where = shown(registry_folder())
            typer.echo(f"registry in {where}: evidence for {counted(len(written), 'operator')}{_marked(simulated)}")
    if any(result.failures for result in results) or not any(result.cases for result in results):
        raise typer.Exit(1)


@app.command()
def bench(
    operators: Operators = None,
    elements: Annotated[
        int | None,
        typer.Option(min=1, help="Elements of the largest tensor. Default: 2^20; 2^12 on the simulated device."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time kernels beside what runs without them (a fallback or torch's own kernel) and the CPU."""
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # torch reads it while it is imported
    _require_working_device()
    simulated = _open_device(lacking=True)
    from ..kernels.verification.timing import measure

    elements = elements or (_SIMULATED_ELEMENTS if simulated else _ELEMENTS)
    timings = [measure(family, elements) for family in _tracked(_families(operators), "timing", quiet=as_json)]
    if as_json:
        print_json({"simulated": simulated, "timings": [asdict(timing) for timing in timings]})
    else:
        _print_timings(timings, elements, simulated=simulated)


def _print_timings(timings: Sequence[Timing], elements: int, *, simulated: bool) -> None:
    from tabulate import tabulate

    headers = ["overload", "kernel ms", "without ms", "without is", "cpu ms", "without / kernel"]
    rows = [_timing_row(timing) for timing in timings]
    typer.echo(tabulate(rows, headers=headers, floatfmt=".3f"))
    typer.echo(f"{elements} elements, float32, medians{_marked(simulated)}")
    if simulated:
        typer.echo("simulated: shaders ran on the CPU; these times say nothing about a GPU")


def _open_device(*, lacking: bool = False) -> bool:
    """Make mps usable in this process; return whether it is the simulated one, with Metal on the host.

    `lacking`: the simulated device lacks every overload that we have a kernel for, so that all of them are used.
    """
    from ..audit.releases.surface.profiles import coverage_profile
    from ..simulator.opening import DeviceKind, import_torch, open_device

    torch = import_torch()
    if torch.backends.mps.is_available() or torch.backends.mps.is_built():  # a Mac, whose GPU may not be usable
        return open_device(DeviceKind.MPS, coverage_profile, None).simulated
    from ..simulator import metal
    from ..simulator.device import loading as device

    chosen = coverage_profile(None)
    device.load(_without_ours(chosen) if lacking else chosen)
    metal.install()
    return True


def open_with_kernels() -> bool:
    """Make mps usable for our kernels, whatever overloads torch has; return whether it is the simulated one."""
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # torch reads it while it is imported
    return _open_device(lacking=True)


def _require_working_device() -> None:
    from ..reports.evidence.preflight import require_working_device
    from ..simulator.opening import DeviceKind

    require_working_device(DeviceKind.AUTO, say)


def _without_ours(profile: CoverageProfile) -> CoverageProfile:
    """A profile without the overloads that we replace, and without those that PyTorch derives from them."""
    from dataclasses import replace

    import torch

    from ..kernels.runtime.catalog import all_kernels

    replaced = [kernel for kernel in all_kernels() if kernel.applies is None]
    operators = {kernel.operator.removeprefix("aten::") for kernel in replaced}
    overloads = {kernel.overload.removeprefix("aten::") for kernel in replaced}
    derived = {
        name
        for name in profile.native
        if name.split(".")[0].rstrip("_") in operators
        and torch._C._dispatch_has_kernel(f"aten::{name}")
        and torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CompositeExplicitAutogradNonFunctional")
    }
    return replace(profile, native=profile.native - overloads - derived)


def _families(operators: Sequence[str] | None) -> list[str]:
    """The families of the operators, sorted; all of them by default. Raises UnknownKernelError for unknown names."""
    from ..kernels.runtime.catalog import families, named

    return sorted({kernel.family for kernel in named(operators)}) if operators else list(families())


def _tracked(families: Sequence[str], what: str, *, quiet: bool) -> Iterable[str]:
    """The families, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import track

    return track(families, description=what, console=Console(stderr=True, quiet=quiet), transient=True)


def _print_results(results: Sequence[FamilyResult], simulated: bool) -> None:
    from tabulate import tabulate

    rows = []
    for result in results:
        outcome = "passed" if result.passed else f"{len(result.failures)} failed" if result.cases else "nothing ran"
        rows.append((result.family, result.cases, outcome, ", ".join(sorted(result.operators))))
    typer.echo(tabulate(rows, headers=("module", "cases", "outcome", "operators"), maxcolwidths=(None, None, None, 80)))
    for result in results:
        for failure in result.failures[:_FAILURES_SHOWN]:
            typer.echo(f"  {failure}")
        if len(result.failures) > _FAILURES_SHOWN:
            typer.echo(f"  and {len(result.failures) - _FAILURES_SHOWN} more of {result.family}")
        if result.native:
            typer.echo(f"  left out, torch has its own kernel here: {', '.join(result.native)}")
    cases = sum(result.cases for result in results)
    failed = sum(len(result.failures) for result in results)
    refused = sum(result.without_reference for result in results)
    beside = f"; {refused} more have nothing to compare with" if refused else ""
    typer.echo(f"{cases} cases, {failed} failed{beside}{_marked(simulated)}")


def _result_json(result: FamilyResult) -> dict[str, object]:
    return {
        "family": result.family,
        "operators": sorted(result.operators),
        "cases": result.cases,
        "without_reference": result.without_reference,
        "passed": result.passed,
        "checks": sorted(result.checks),
        "dtypes": sorted(result.dtypes),
        "failures": [str(failure) for failure in result.failures],
        "native": result.native,
    }


def _timing_row(timing: Timing) -> tuple[object, ...]:
    ratio = timing.without / timing.kernel if timing.without and timing.kernel else None
    return timing.operator, timing.kernel, timing.without, timing.without_is, timing.cpu, ratio


def _marked(simulated: bool) -> str:
    return " (simulated)" if simulated else ""
