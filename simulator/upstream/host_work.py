"""Counts the work of host code besides encoding commands: graphs, waits for the GPU, and operators on the CPU."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

# Copies and reads to the host, which are not kernels.
_PLAIN = frozenset(f"aten::{name}" for name in ("_copy_from", "_copy_from_and_resize", "_local_scalar_dense", "copy_"))

_CHECK = "aten::_linalg_check_errors"  # reads numbers that LAPACK's kernels return

LOST = "result that no one reads"


@dataclass(frozen=True)
class HostWork:
    """The work of the calls of one overload.

    Attributes:
        calls: how many there were.
        graphs: how many graphs of MPSGraph they ran.
        waits: how often they waited for the GPU.
        on_cpu: how often they ran each operator on the CPU, copied to the host, and wrote a result into the gathered
            copy of a view, where it is lost.
    """

    calls: int = 0
    graphs: int = 0
    waits: int = 0
    on_cpu: Counter[str] = field(default_factory=Counter)

    @property
    def computed_on_cpu(self) -> list[str]:
        """The operators that the calls computed on the CPU, the most frequent first."""
        return [name for name, _ in self.on_cpu.most_common() if "::" in name and name != _CHECK]

    @property
    def lost(self) -> int:
        """How many results were written where they are not read."""
        return self.on_cpu[LOST]

    def __add__(self, other: HostWork) -> HostWork:
        counted = self.on_cpu + other.on_cpu if self.on_cpu and other.on_cpu else self.on_cpu or other.on_cpu
        return HostWork(self.calls + other.calls, self.graphs + other.graphs, self.waits + other.waits, counted)


def observe(library: Path, overloads: Iterable[str]) -> Callable[[], dict[str, HostWork]]:
    """Observe these overloads in a built library; returns a function that drains their work since its last call."""
    loaded = ctypes.CDLL(str(library))
    loaded.mpsmith_drain_host_work.restype = ctypes.c_char_p
    # The functional and in-place forms of a structured kernel have no rows.
    operators = {overload.partition(".")[0] for overload in overloads} - _PLAIN
    names = "".join(f"{name}\n{name}_\n" for name in sorted(operators))
    loaded.mpsmith_observe_kernels(names.encode())
    return lambda: parse_host_work(loaded.mpsmith_drain_host_work().decode())


@lru_cache(maxsize=1024)
def parse_host_work(text: str) -> dict[str, HostWork]:
    """The work by overload, from the text that host_work.mm writes; not to be changed, as equal texts share it."""
    return dict(map(_parsed, text.splitlines()))


def joined(work: Mapping[str, HostWork], more: Mapping[str, HostWork]) -> dict[str, HostWork]:
    """The sum of both, by overload."""
    return {**work, **{name: work[name] + added if name in work else added for name, added in more.items()}}


def _parsed(line: str) -> tuple[str, HostWork]:
    overload, calls, graphs, waits, *on_cpu = line.split("\t")
    counts = Counter({name: int(count) for name, _, count in (cell.rpartition("=") for cell in on_cpu)})
    return overload, HostWork(int(calls), int(graphs), int(waits), counts)
