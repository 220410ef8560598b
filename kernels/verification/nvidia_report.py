"""The page and the picture of kernels timed on an NVIDIA GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from tabulate import tabulate

from .nvidia_timing import NvidiaTiming

HEADERS = (
    *("overload", "dtype", "layout", "elements", "us", "GB/s", "of a copy", "GFLOP/s"),
    *("cuda / ours", "compiled / ours", "shipped / ours", "cpu / ours", "note"),
)
PAGE, PICTURE = "nvidia.md", "nvidia.svg"
# The frame of the picture, in pixels; its axes are logarithms of bytes and of GB/s.
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 70, 40, 640, 420, 250, 50
_BYTES, _SPEEDS = (2**12, 2**33), (0.1, 10_000.0)


def row_of(timing: NvidiaTiming) -> tuple[object, ...]:
    """A row under HEADERS."""
    note = timing.problem or ("" if timing.replayed else "waits for the GPU")

    def against(other: float | None) -> float | None:
        return other / timing.kernel if other and timing.kernel else None

    return (
        timing.overload,
        timing.dtype,
        timing.layout,
        timing.elements,
        timing.kernel,
        timing.bandwidth,
        timing.of_copy,
        timing.operations / timing.kernel / 1e3 if timing.operations and timing.kernel else None,
        *map(against, (timing.cuda, timing.compiled, timing.shipped, timing.cpu)),
        note,
    )


def write_report(folder: Path, timings: Sequence[NvidiaTiming], gpu: str, torch_version: str) -> None:
    """Write `nvidia.md` with every row and `nvidia.svg` with the contiguous float32 rows."""
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
        "tensor that goes in or comes out once, and one that is changed twice. *of a copy*: the time of "
        "`Tensor.copy_` of as many bytes, divided by ours. *cuda / ours*: the time of torch's own CUDA operator, "
        "called with the same arguments and outputs, divided by ours; *compiled*: what torch.compile makes of the "
        "operator; *shipped*: the Metal kernels that a release of torch ships for it; *cpu*: the operator on this "
        "machine's CPU.\n\n"
        f"![bandwidth against bytes, below that of a copy]({PICTURE})\n\n{table}\n"
    )


def picture(timings: Sequence[NvidiaTiming], gpu: str) -> str:
    """Each operator's bandwidth against the bytes that it moves, under a copy's: contiguous float32, all sizes."""
    shown = [
        timing
        for timing in timings
        if (timing.dtype, timing.layout) == ("float32", "contiguous") and timing.kernel and timing.copy
    ]
    shown.sort(key=lambda timing: (timing.overload, timing.bytes))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" '
        f'height="{_TOP + _HEIGHT + _BOTTOM}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="20">GB/s against bytes moved, float32, contiguous, {escape(gpu)} (NVIDIA, not Apple)</text>',
        *_axes(),
        *(line for _, group in groupby(shown, lambda each: each.overload) for line in _curve(list(group))),
        *_roof(shown),
        *_labels(shown),
    ]
    return "\n".join([*lines, "</svg>", ""])


def _x(size: float) -> float:
    low, high = map(math.log2, _BYTES)
    return _LEFT + _WIDTH * (math.log2(max(size, _BYTES[0])) - low) / (high - low)


def _y(speed: float) -> float:
    low, high = map(math.log10, _SPEEDS)
    return _TOP + _HEIGHT * (1 - (math.log10(max(speed, _SPEEDS[0])) - low) / (high - low))


def _axes() -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    for power in range(12, 34, 3):
        x = _x(2**power)
        yield f'<path d="M{x:.0f} {_TOP}V{bottom}" stroke="#eee"/>'
        yield f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">2^{power}</text>'
    for power in range(-1, 5):
        y = _y(10.0**power)
        yield f'<path d="M{_LEFT} {y:.0f}H{_LEFT + _WIDTH}" stroke="#eee"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{10.0**power:g}</text>'


def _curve(timings: Sequence[NvidiaTiming]) -> Iterator[str]:
    points = [(_x(each.bytes), _y(each.bandwidth or 0.0)) for each in timings]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield (
        f'<polyline points="{path}" fill="none" stroke="#4477aa" stroke-opacity="0.45"><title>'
        f"{escape(timings[0].overload)}</title></polyline>"
    )


def _roof(timings: Sequence[NvidiaTiming]) -> Iterator[str]:
    copies = sorted({each.bytes: each.copy for each in timings if each.copy}.items())
    path = " ".join(f"{_x(size):.1f},{_y(size / copy / 1e3):.1f}" for size, copy in copies)
    yield f'<polyline points="{path}" fill="none" stroke="#cc3311" stroke-width="2"><title>a copy</title></polyline>'


def _labels(timings: Sequence[NvidiaTiming]) -> Iterator[str]:
    """The operators at the right, those of the same height below each other, from the fastest to the slowest."""
    last = {each.overload: each for each in timings}
    below = float(_TOP) - 10
    for each in sorted(last.values(), key=lambda each: -(each.bandwidth or 0.0)):
        height = _y(each.bandwidth or 0.0)
        below = max(below + 9, height)
        right = _LEFT + _WIDTH
        yield (
            f'<path d="M{_x(each.bytes):.0f} {height:.0f}L{right + 8} {below - 3:.0f}" stroke="#bbb"/>'
            f'<text x="{right + 12}" y="{below:.0f}" font-size="9">{escape(each.overload.removeprefix("aten::"))}, '
            f"{each.of_copy or 0.0:.2f}</text>"
        )
