"""What a conditional override costs a call that it does not answer: the same call with it and without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LIMIT_US = 2.0
_CALLS, _ROUNDS = 1000, 15


def main() -> None:
    from mpsmith.audit.surface.profiles import profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    device.load(profile("2.15.0"))
    metal.install()
    import torch

    from mpsmith import kernels

    x = torch.randn(8, 8, device="mps")
    row = torch.randn(8, device="mps")
    image = torch.randn(1, 1, 4, 4, device="mps")
    calls: dict[str, Callable[[], Any]] = {
        "aten::linear": lambda: torch.nn.functional.linear(row, x),
        "aten::addr": lambda: torch.addr(x, row, row),
        "aten::renorm": lambda: torch.renorm(x, 2.0, 0, 1.0),
        "aten::_adaptive_avg_pool2d": lambda: torch.nn.functional.adaptive_avg_pool2d(image, 2),
    }
    for overload, call in calls.items():
        with kernels.use():
            without = _microseconds(call)
        with kernels.use(overload):
            overridden = _microseconds(call)
        for _ in range(2):  # in turns, so that what else the machine does meets both
            with kernels.use():
                without = min(without, _microseconds(call))
            with kernels.use(overload):
                overridden = min(overridden, _microseconds(call))
        more = overridden - without
        print(
            f"{overload}: {without:.1f} us without, {overridden:.1f} with an override that does not apply:"
            f" {more:.1f} us more (limit {LIMIT_US:.0f}), {overridden / without:.2f} times (simulated)"
        )


def _microseconds(call: Callable[[], Any]) -> float:
    """The fastest round: whatever else the machine does only adds."""
    call()
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        best = min(best, (time.perf_counter() - start) / _CALLS * 1e6)
    return best
