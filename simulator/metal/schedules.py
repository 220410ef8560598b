"""Runs the threads of a kernel in several orders: a result that depends on the order shows a race."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

from .dispatch import GridLaunch


def run_schedules(run: Callable[[GridLaunch], None], launch: GridLaunch) -> str | None:
    """Run `launch` in reverse, in a random order and forward, each from the same memory; the last result stays.

    Returns the difference, or None. Only memory that the launch guards is compared.
    """
    # In the order of the arguments: regions come in that of their addresses, which differ from process to process.
    written = sorted(
        ((address, size, index) for address, size, index, writable in launch.regions if writable),
        key=lambda region: region[2],
    )
    before = [ctypes.string_at(address, size) for address, size, _ in written]
    results: list[tuple[str, list[bytes]]] = []
    schedules: list[tuple[str, GridLaunch]] = [
        ("in reverse", replace(launch, order="reverse")),
        ("in a random order", replace(launch, order="random", seed=20240229)),
        ("forward", launch),
    ]
    for name, schedule in schedules:
        for (address, size, _), content in zip(written, before, strict=True):
            ctypes.memmove(address, content, size)
        run(schedule)
        results.append((name, [ctypes.string_at(address, size) for address, size, _ in written]))
    _, forward = results[-1]
    for name, outcome in results[:-1]:
        for (_, _, index), a, b in zip(written, forward, outcome, strict=True):
            if a != b:
                byte = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
                return (
                    f"argument {index} depends on the order of the threads: byte {byte} differs between a "
                    f"run forward and a run {name}; a barrier is missing or threads write the same place"
                )
    return None
