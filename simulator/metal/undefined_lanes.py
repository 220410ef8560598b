"""Finds results that depend on the values of inactive lanes, which Metal leaves undefined.

A lane is inactive if it has returned, took another branch, or is past the end of a threadgroup whose size is not a
multiple of the SIMD width. Reading one is not an error: a reduction by `simd_shuffle_down` in a partial SIMD group
discards the value. So a kernel that reads inactive lanes runs again with other bytes in them. If its results differ, or
if it fails, it depends on them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

from .dispatch import GridLaunch, RunReport

# NaN, -1 and the largest unsigned number; then a large positive and a large negative number of every type. The
# second reveals a maximum that ignores NaN, the third a minimum.
POISON = (0xFF, 0x7B, 0xFB)


def run_with_poison(run: Callable[[GridLaunch], RunReport], launch: GridLaunch) -> tuple[list[str], str | None]:
    """Run `launch` with zero in inactive lanes, and again with poison if any is read.

    Returns the errors of the first run, and the dependence on inactive lanes, or None. Memory has the results of the
    first run. Only memory that the launch guards is compared.
    """
    written = [(address, size, index) for address, size, index, writable in launch.regions if writable]

    def contents() -> list[bytes]:
        return [ctypes.string_at(address, size) for address, size, _ in written]

    def restore(kept: list[bytes]) -> None:
        for (address, size, _), content in zip(written, kept, strict=True):
            ctypes.memmove(address, content, size)

    before = contents()
    first = run(launch)
    if first.errors or not first.lane_reads:
        return first.errors, None
    zero = contents()
    reads = "; ".join(first.lane_reads)
    for poison in POISON:
        restore(before)
        poisoned = run(replace(launch, inactive_fill=poison))
        other = contents()
        restore(zero)
        if poisoned.errors:
            return [], f"with bytes of 0x{poison:02X} in inactive lanes it fails: {poisoned.errors[0]}; {reads}"
        for (_, _, index), a, b in zip(written, zero, other, strict=True):
            if a != b:
                byte = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
                return [], f"byte {byte} of argument {index} differs if they hold 0x{poison:02X} and not 0; {reads}"
    return [], None
