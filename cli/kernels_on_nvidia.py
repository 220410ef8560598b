"""What `mpsmith kernels` does with `--on nvidia`: opens the GPU, times kernels on it, prints and draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import MpsmithError
from .printing import print_json

if TYPE_CHECKING:
    from ..kernels.verification.nvidia_timing import NvidiaTiming
    from ..kernels.verification.shipped import ShippedLaunch


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


def bench_on_nvidia(
    families: Sequence[str], elements: int | None, shipped: str | None, report: Path | None, as_json: bool
) -> None:
    """Time families on the GPU, in all sizes or that of `elements`; print, and write a page and a picture."""
    import torch

    from ..simulator import nvidia

    nvidia.install("cuda")
    gpu = nvidia.default_driver().name
    if not torch.cuda.is_available():
        raise MpsmithError(f"torch {torch.__version__} was built without CUDA: bench --on nvidia times its tensors")
    timings = list(_timed(families, elements, _recorded(families, shipped), quiet=as_json))
    if report is not None:
        from ..kernels.verification.nvidia_report import write_report

        write_report(report, timings, gpu, torch.__version__)
    if as_json:
        print_json({"nvidia": gpu, "torch": torch.__version__, "timings": [asdict(timing) for timing in timings]})
        return
    from tabulate import tabulate

    from ..kernels.verification.nvidia_report import HEADERS, row_of

    typer.echo(tabulate([row_of(timing) for timing in timings], headers=HEADERS, floatfmt=".2f"))
    typer.echo(f"medians on {gpu}, torch {torch.__version__} (NVIDIA, not Apple)")


def _recorded(families: Sequence[str], release: str | None) -> Mapping[str, list[ShippedLaunch]]:
    """The launches of the kernels that a release ships, where one is named."""
    from ..kernels.verification.nvidia_timing import SHIPPED_ELEMENTS
    from ..kernels.verification.shipped import shipped_launches

    return shipped_launches(families, release, SHIPPED_ELEMENTS) if release else {}


def _timed(
    families: Sequence[str], elements: int | None, shipped: Mapping[str, list[ShippedLaunch]], quiet: bool
) -> Iterator[NvidiaTiming]:
    from rich.console import Console
    from rich.progress import track

    from ..kernels.verification.nvidia_timing import SIZES, measure_on_nvidia

    console = Console(stderr=True, quiet=quiet)
    for family in track(families, description="timing", console=console, transient=True):
        sizes = (elements,) if elements else SIZES
        yield from measure_on_nvidia(family, sizes, shipped=shipped.get(family, ()))
