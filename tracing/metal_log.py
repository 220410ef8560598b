"""Parses torch's own log of a real mps device, which PYTORCH_MPS_LOG_PROFILE_INFO turns on.

torch writes a line to standard error after each operation: Metal kernels and graphs with their GPU time, copies, and
CPU fallbacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

VARIABLE = "PYTORCH_MPS_LOG_PROFILE_INFO"
# Operations, copies and fallbacks, each when it ends, with the GPU's time and the scheduler's apart.
OPTIONS = 1 | 2 | 4 | 1 << 7 | 1 << 8

_TIMES = r"(?:, gpu=(?P<gpu>[\d.]+) ms)?(?:, cpu=(?P<cpu>[\d.]+) ms)?\)"
_OPERATION = re.compile(r"aten::(?P<key>.+) \(id=(?P<kind>[GK])\d+, run=\d+" + _TIMES)
_FALLBACK = re.compile(r"CPU Fallback::(?P<key>.+) \(id=\d+, run=\d+, CopyOverhead=(?P<length>[^,)]+)" + _TIMES)
_COPY = re.compile(r"(?P<how>Blit|Mem)Copy(?:Sync)?: (?P<ends>.+ --> .+) \(len=(?P<length>[^,)]+)" + _TIMES)
# The start of the tensors in `softmax_mps_out:MPS:Float[3, 4]` and `aten::mode:MPS:Float[3]`.
_TENSORS = re.compile(r":(?:MPS|CPU)(?:\(buf[^)]*\))?:|(?<=[^:]):(?=[^:])")
_UNITS = {"B": 1, "bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


class Work(str, Enum):
    """The kind of work in a line."""

    graph = "graph"
    kernel = "kernel"
    copy = "copy"
    fallback = "CPU fallback"


@dataclass(frozen=True)
class LoggedWork:
    """The lines of one operation, merged.

    Attributes:
        name: of the kernel or the graph; `aten::mode` for a fallback, `MPS to CPU` for a copy.
        calls: the number of lines.
        gpu, cpu: milliseconds; `cpu` is scheduling time, or host time of work without the GPU.
        length: copied bytes.
    """

    work: Work
    name: str
    calls: int = 1
    gpu: float = 0.0
    cpu: float = 0.0
    length: int = 0

    def __add__(self, other: LoggedWork) -> LoggedWork:
        return replace(
            self,
            calls=self.calls + other.calls,
            gpu=self.gpu + other.gpu,
            cpu=self.cpu + other.cpu,
            length=self.length + other.length,
        )


def parse(line: str) -> LoggedWork | None:
    """The work in a line of standard error, None for a line of the program itself."""
    text = line.strip()
    if match := _OPERATION.fullmatch(text):
        return _logged(Work.graph if match["kind"] == "G" else Work.kernel, _name(match["key"]), match)
    if match := _FALLBACK.fullmatch(text):
        return _logged(Work.fallback, _name(match["key"]), match, _bytes(match["length"]))
    if match := _COPY.fullmatch(text):
        source, _, target = match["ends"].partition(" --> ")
        return _logged(Work.copy, f"{_device(source)} to {_device(target)}", match, _bytes(match["length"]))
    return None


def merged(logged: Iterable[LoggedWork]) -> list[LoggedWork]:
    """The work merged by operation, the longest on the GPU first."""
    by_operation: dict[tuple[Work, str], LoggedWork] = {}
    for each in logged:
        key = (each.work, each.name)
        by_operation[key] = by_operation[key] + each if key in by_operation else each
    return sorted(by_operation.values(), key=lambda each: (-each.gpu, -each.cpu, each.name))


def _logged(work: Work, name: str, match: re.Match[str], length: int = 0) -> LoggedWork:
    return LoggedWork(work, name, 1, float(match["gpu"] or 0), float(match["cpu"] or 0), length)


def _name(key: str) -> str:
    return _TENSORS.split(key, maxsplit=1)[0]


def _device(end: str) -> str:
    return end.split(":")[0].split("(")[0]


def _bytes(text: str) -> int:
    number, _, unit = text.strip().partition(" ")
    try:
        return int(float(number) * _UNITS.get(unit, 1))
    except ValueError:
        return 0
