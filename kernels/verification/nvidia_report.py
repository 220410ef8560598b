"""The page and the picture of kernels timed on an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tabulate import tabulate

from .nvidia_timing import NvidiaTiming

HEADERS = ("overload", "dtype", "layout", "elements", "us", "GB/s", "of a copy", "cuda us", "cuda / ours", "note")
PAGE, PICTURE = "nvidia.md", "nvidia.svg"
_SHOWN_ELEMENTS = 2**26
_ROW, _LEFT, _WIDTH, _RIGHT = 18, 300, 420, 80


def row_of(timing: NvidiaTiming) -> tuple[object, ...]:
    """A row under HEADERS."""
    note = timing.problem or ("" if timing.replayed else "waits for the GPU")
    return (
        timing.overload,
        timing.dtype,
        timing.layout,
        timing.elements,
        timing.kernel,
        timing.bytes / timing.kernel / 1e3 if timing.kernel else None,
        timing.of_copy,
        timing.cuda,
        timing.against_cuda,
        note,
    )


def write_report(folder: Path, timings: Sequence[NvidiaTiming], gpu: str, torch_version: str) -> None:
    """Write `nvidia.md` with every row and `nvidia.svg` with the contiguous float32 rows of 2^26 elements."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(_page(timings, gpu, torch_version), encoding="utf-8")
    (folder / PICTURE).write_text(picture(timings, gpu), encoding="utf-8")


def _page(timings: Sequence[NvidiaTiming], gpu: str, torch_version: str) -> str:
    table = tabulate([row_of(timing) for timing in timings], headers=HEADERS, tablefmt="github", floatfmt=".2f")
    return (
        f"# Our kernels on {gpu}\n\n"
        f"**NVIDIA, not Apple.** Made by `mpsmith kernels bench --on nvidia --report FOLDER` on {gpu} with torch "
        f"{torch_version}.\n\n"
        "Times are medians in microseconds, replayed from a CUDA graph where the call allows it. GB/s counts each "
        "tensor that goes in or comes out once. *of a copy*: the time of `Tensor.copy_` of as many bytes, divided "
        "by ours. "
        "*cuda / ours*: the time of torch's own CUDA operator, called with the same arguments and outputs, divided by "
        "ours.\n\n"
        f"![fraction of a copy's bandwidth]({PICTURE})\n\n{table}\n"
    )


def picture(timings: Sequence[NvidiaTiming], gpu: str) -> str:
    """A bar for each operator: which part of a copy's bandwidth it reaches, contiguous float32, 2^26 elements."""
    shown = [
        timing
        for timing in timings
        if (timing.dtype, timing.layout, timing.elements) == ("float32", "contiguous", _SHOWN_ELEMENTS)
        and timing.of_copy is not None
    ]
    shown.sort(key=lambda timing: -(timing.of_copy or 0))
    height = _ROW * (len(shown) + 3)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="{_ROW}">bandwidth as part of a copy\'s, float32, 2^26 elements, {escape(gpu)} '
        "(NVIDIA, not Apple)</text>",
    ]
    for number, timing in enumerate(shown):
        part = timing.of_copy or 0.0
        top = _ROW * (number + 2)
        bar = _WIDTH * min(part, 1.0)
        lines += [
            f'<text x="{_LEFT - 6}" y="{top + 12}" text-anchor="end">{escape(timing.overload)}</text>',
            f'<rect x="{_LEFT}" y="{top + 2}" width="{bar:.1f}" height="{_ROW - 5}" fill="#4477aa"/>',
            f'<text x="{_LEFT + bar + 4:.1f}" y="{top + 12}">{part:.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
