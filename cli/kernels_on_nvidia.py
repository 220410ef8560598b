"""What `mpsmith kernels` does with `--on nvidia`: opens the GPU, times kernels on it and prints the times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from ..errors import MpsmithError
from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.nvidia_timing import NvidiaTiming

HEADERS = (
    *("overload", "dtype", "layout", "elements", "us", "GB/s", "of a copy", "GFLOP/s"),
    *("cuda / ours", "compiled / ours", "cpu / ours", "note"),
)


def require_nvidia() -> None:
    """Raise MpsmithError where there is no NVIDIA GPU, before anything takes long."""
    from ..simulator import nvidia

    nvidia.default_driver()


def open_nvidia_under_mps(simulated: bool) -> str:
    """Let Metal source of the simulated mps device run on the first NVIDIA GPU; returns the GPU's name.

    Raises MpsmithError on a Mac and where there is no NVIDIA GPU.
    """
    if not simulated:
        raise MpsmithError("--on nvidia is for machines without an mps device; this one has one")
    from ..audit.releases.surface.profiles import coverage_profile
    from ..simulator import nvidia
    from ..simulator.opening import device_of_this_process

    device_of_this_process(coverage_profile)  # it puts the host's compile_shader in place, now and not later
    nvidia.install("mps")
    return nvidia.default_driver().name


def bench_on_nvidia(families: Sequence[str], elements: int | None, as_json: bool) -> None:
    """Time families on the GPU, in all sizes or that of `elements`, and print the times."""
    import torch

    from ..simulator import nvidia

    nvidia.install("cuda")
    gpu = nvidia.default_driver().name
    if not torch.cuda.is_available():
        raise MpsmithError(f"torch {torch.__version__} was built without CUDA: bench --on nvidia times its tensors")
    timings = list(_timed(families, elements, quiet=as_json))
    if as_json:
        print_json({"nvidia": gpu, "torch": torch.__version__, "timings": [asdict(timing) for timing in timings]})
        return
    from tabulate import tabulate

    typer.echo(tabulate(list(map(_row, timings)), headers=HEADERS, floatfmt=".2f"))
    typer.echo(f"medians on {gpu}, torch {torch.__version__} (NVIDIA, not Apple)")


def _row(timing: NvidiaTiming) -> tuple[object, ...]:
    """The cells below HEADERS: times in microseconds, those of others divided by ours."""
    ratios = (
        other / timing.kernel if other and timing.kernel else None
        for other in (timing.cuda, timing.compiled, timing.cpu)
    )
    return (
        *(timing.overload, timing.dtype, timing.layout, timing.elements, timing.kernel),
        *(timing.bandwidth, timing.of_copy, timing.gigaflops, *ratios),
        timing.problem or ("" if timing.replayed else "waits for the GPU"),
    )


def _timed(families: Sequence[str], elements: int | None, quiet: bool) -> Iterator[NvidiaTiming]:
    from rich.console import Console
    from rich.progress import track

    from ..kernels.verification.nvidia_timing import SIZES, measure_on_nvidia

    console = Console(stderr=True, quiet=quiet)
    for family in track(families, description="timing", console=console, transient=True):
        yield from measure_on_nvidia(family, (elements,) if elements else SIZES)
