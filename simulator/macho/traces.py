"""The calls of Metal that a release's host code made during one call, as the recorder writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Bound:
    """A bound buffer: the offset of the binding, and at most 256 bytes from there on."""

    offset: int
    content: bytes


@dataclass(frozen=True)
class Launched:
    """A dispatch: the kernel, grid and threadgroup in threads, and the binding at each index.

    Bindings of an earlier kernel on the same encoder may be among them.
    """

    kernel: str
    grid: Size
    group: Size
    bound: Mapping[int, Bound]


@dataclass
class MetalTrace:
    """The events of a call, by kind. `waits`: how often the host waited, the end of the call included."""

    launches: list[Launched] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)  # bytes of each copy by the blit encoder
    filled: list[int] = field(default_factory=list)  # bytes of each fill
    waits: int = 0
    graphs: int = 0


def launched_kernels(text: str) -> list[str]:
    """The kernels of a recording, in order, without parsing the rest of it."""
    return [line.split(" ", 2)[1] for line in text.splitlines() if line.startswith("launch ")]


def parse_trace(text: str) -> MetalTrace:
    """The trace in a recording of `recorder.mm`."""
    trace = MetalTrace()
    for line in text.splitlines():
        kind, *words = line.split(" ")
        if kind == "launch":
            trace.launches.append(_launched(words))
        elif kind == "copy":
            trace.copied.append(int(words[2]))
        elif kind == "fill":
            trace.filled.append(int(words[1]))
        elif kind == "waits":
            trace.waits = int(words[0])
        elif kind == "graphs":
            trace.graphs = int(words[0])
    return trace


def _launched(words: list[str]) -> Launched:
    x, y, z, group_x, group_y, group_z = map(int, words[1:7])
    rows = zip(words[7::3], words[8::3], words[9::3], strict=True)
    bound = {int(index): Bound(int(offset), bytes.fromhex(content)) for index, offset, content in rows}
    return Launched(words[0], (x, y, z), (group_x, group_y, group_z), bound)
