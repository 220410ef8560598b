"""What torch itself logs of a real mps device where PYTORCH_MPS_LOG_PROFILE_INFO asks for it, a line at the end of each
operation: Metal kernels and graphs with the GPU's time, copies, and CPU fallbacks.

The lines go to standard error of the program, among what it prints there itself.
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
# Where the tensors begin in `softmax_mps_out:MPS:Float[3, 4]` and `aten::mode:MPS:Float[3]`.
_TENSORS = re.compile(r":(?:MPS|CPU)(?:\(buf[^)]*\))?:|(?<=[^:]):(?=[^:])")
_UNITS = {"B": 1, "bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


class Work(str, Enum):
    """What a line is of."""

    graph = "graph"
    kernel = "kernel"
    copy = "copy"
    fallback = "CPU fallback"


@dataclass(frozen=True)
class Logged:
    """The lines of one operation together.

    Attributes:
        name: the kernel's or the graph's, `aten::mode` of a fallback, `MPS to CPU` of a copy.
        calls: how many lines.
        gpu, cpu: milliseconds; `cpu` is the time of scheduling, or the host's of what needs no GPU.
        length: bytes that were copied.
    """

    work: Work
    name: str
    calls: int = 1
    gpu: float = 0.0
    cpu: float = 0.0
    length: int = 0

    def __add__(self, other: Logged) -> Logged:
        return replace(
            self,
            calls=self.calls + other.calls,
            gpu=self.gpu + other.gpu,
            cpu=self.cpu + other.cpu,
            length=self.length + other.length,
        )


def parse(line: str) -> Logged | None:
    """What a line of standard error says, None for one of the program's own."""
    text = line.strip()
    if found := _OPERATION.fullmatch(text):
        return _logged(Work.graph if found["kind"] == "G" else Work.kernel, _name(found["key"]), found)
    if found := _FALLBACK.fullmatch(text):
        return _logged(Work.fallback, _name(found["key"]), found, _bytes(found["length"]))
    if found := _COPY.fullmatch(text):
        source, _, target = found["ends"].partition(" --> ")
        return _logged(Work.copy, f"{_device(source)} to {_device(target)}", found, _bytes(found["length"]))
    return None


def together(logged: Iterable[Logged]) -> list[Logged]:
    """The lines of each operation as one, the longest on the GPU first."""
    found: dict[tuple[Work, str], Logged] = {}
    for each in logged:
        key = (each.work, each.name)
        found[key] = found[key] + each if key in found else each
    return sorted(found.values(), key=lambda each: (-each.gpu, -each.cpu, each.name))


def _logged(work: Work, name: str, found: re.Match[str], length: int = 0) -> Logged:
    return Logged(work, name, 1, float(found["gpu"] or 0), float(found["cpu"] or 0), length)


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
