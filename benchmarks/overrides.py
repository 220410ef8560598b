"""Times a call that an override passes on to torch, with and without the override.

For comparison it times torch's own kernel registered again as a Python function. An override cannot cost less.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

LIMIT_US = 2.0
_CALLS, _ROUNDS, _TURNS = 1000, 15, 3


def main() -> None:
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    device.load(coverage_profile("2.15.0"))
    metal.install()
    import torch

    from mpsmith import kernels

    warnings.filterwarnings("ignore", message="(?s).*[Oo]verriding a previously registered kernel")
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
        ways = (kernels.use, partial(_through_python, overload), partial(kernels.use, overload))
        without, handed_on, overridden = _fastest(call, ways)
        more, of_torch = overridden - without, handed_on - without
        print(
            f"{overload}: {without:.1f} us without, {overridden:.1f} with an override that does not apply:"
            f" {more:.1f} us more (limit {LIMIT_US:.0f}), of which {of_torch:.1f} are torch's own way through Python"
            " (simulated)"
        )


@contextmanager
def _through_python(overload: str) -> Iterator[None]:
    """torch's kernel for mps, which the dispatcher calls through a Python function that only calls the kernel."""
    import torch

    original = torch.library.get_kernel(overload, "MPS")
    library = torch.library.Library("aten", "IMPL")
    name = overload.removeprefix("aten::")
    library.impl(name, original.call_boxed, "MPS", with_keyset=True, allow_override=True)
    try:
        yield
    finally:
        library._destroy()


def _fastest(call: Callable[[], Any], ways: Sequence[Callable[[], AbstractContextManager[Any]]]) -> list[float]:
    """The fastest call of each way. They take turns, so that other load on the machine affects all of them."""
    best = [float("inf")] * len(ways)
    for _ in range(_TURNS):
        for number, way in enumerate(ways):
            with way():
                best[number] = min(best[number], _microseconds(call))
    return best


def _microseconds(call: Callable[[], Any]) -> float:
    """Processor time of the fastest round; anything else that the machine does can only add to it."""
    call()
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.thread_time()
        for _ in range(_CALLS):
            call()
        best = min(best, (time.thread_time() - start) / _CALLS * 1e6)
    return best
