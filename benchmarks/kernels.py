"""What kernels cost in Python: the import, and a registered call above its shader launch."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

IMPORT_LIMIT_MS = 50
CALL_LIMIT_US = 10

_IMPORT = """
import time, torch
start = time.perf_counter()
import mpsmith.kernels
print((time.perf_counter() - start) * 1e3)
"""


def main() -> None:
    _import_cost()
    _call_cost()


def _import_cost() -> None:
    """Medians over fresh interpreters; the second also imports every family and registers it (simulated)."""
    plain = statistics.median(_printed(_IMPORT) for _ in range(5))
    print(f"import mpsmith.kernels above import torch, no mps device: {plain:.1f} ms (limit {IMPORT_LIMIT_MS})")
    with_device = _IMPORT.replace("start =", _DEVICE + "start =", 1)
    loaded = statistics.median(_printed(with_device) for _ in range(5))
    print(f"the same, all families imported, six operators registered (simulated): {loaded:.1f} ms")


_DEVICE = """
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator import metal
from mpsmith.simulator.device import loading as device
device.load(coverage_profile("2.0.1"))
metal.install()
import os
from mpsmith.registry.kernel_index import kernel_entries
os.environ["MPSMITH_KERNELS"] = ",".join(
    ["aten::mode", "aten::heaviside", "aten::put_", "aten::take", "aten::logit", "aten::linalg_ldl_solve"]
)
"""


def _printed(script: str) -> float:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _call_cost() -> None:
    """Calls with shaders that do nothing, so that only our Python is left."""
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    device.load(coverage_profile("2.0.1"))
    metal.install()
    import torch

    from mpsmith import kernels
    from mpsmith.kernels.heaviside import heaviside
    from mpsmith.kernels.logit import logit
    from mpsmith.kernels.mode import mode
    from mpsmith.kernels.put_take import put_take
    from mpsmith.kernels.shrink import shrink

    kernels.enable("softshrink", "heaviside", "logit", "take", "mode")
    x = torch.randn(64, device="mps")
    square = torch.randn(8, 8, device="mps")
    index = torch.zeros(16, dtype=torch.int64, device="mps")
    out = torch.empty_like(x)
    square_out = torch.empty_like(square)
    for module in (heaviside, logit, mode, put_take, shrink):
        module._shader.kernel = _does_nothing  # type: ignore[method-assign]
    calls: dict[str, Callable[[], Any]] = {
        "softshrink, contiguous": lambda: shrink.softshrink_out(x, 0.5, out=out),
        "softshrink, transposed": lambda: shrink.softshrink_out(square.t(), 0.5, out=square_out),
        "heaviside, contiguous": lambda: heaviside.heaviside_out(x, x, out=out),
        "logit_, contiguous": lambda: logit.logit_(x),
        "take": lambda: put_take.take(x, index),
        "softshrink through torch's dispatcher": lambda: torch.nn.functional.softshrink(x),
    }
    for name, call in calls.items():
        print(f"{name}: {_microseconds(call):.1f} us of Python a call (limit {CALL_LIMIT_US} above the launch)")


def _does_nothing(name: str, device: object) -> Callable[..., None]:
    return lambda *arguments, **options: None


def _microseconds(call: Callable[[], Any], calls: int = 2000, rounds: int = 7) -> float:
    """The fastest round: whatever else the machine does only adds."""
    call()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls * 1e6)
    return best
