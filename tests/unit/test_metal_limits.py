"""The limits of Metal are known to Python, to the runtime in C++ and to the Metal headers: all three agree."""

from __future__ import annotations

import re
from pathlib import Path

from mpsmith import metal_limits

METAL = Path(metal_limits.__file__).parent / "simulator" / "metal"


def test_the_runtime_has_the_same_limits() -> None:
    constants = dict(re.findall(r"(k\w+) = (\d+)", (METAL / "runtime" / "runtime.h").read_text(encoding="utf-8")))
    assert int(constants["kMaxThreads"]) == metal_limits.MAX_THREADS_PER_THREADGROUP == 1024
    assert int(constants["kSimdWidth"]) == metal_limits.SIMD_WIDTH == 32


def test_the_metal_headers_have_the_same_width() -> None:
    header = (METAL / "include" / "msl" / "base.h").read_text(encoding="utf-8")
    assert re.findall(r"#define MSL_SIMD_WIDTH (\w+)", header) == [f"{metal_limits.SIMD_WIDTH}u"]
