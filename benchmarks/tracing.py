"""Times what a trace adds to a call on mps: only counting, and with source lines, and an empty TorchDispatchMode.

On the simulated device, with small tensors, in this thread's CPU time, the best of several rounds; the ways take turns,
so that a busy machine is slow for all of them.
"""

import os

os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"

import contextlib
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from tabulate import tabulate
from torch.utils._python_dispatch import TorchDispatchMode

import mpsmith
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.opening import device_of_this_process

CALLS, ROUNDS = 2000, 7
# What issue 17 allows, in microseconds a call.
LIMITS = {"counting": 10, "with lines": 30}


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no trace": contextlib.nullcontext,
    "empty mode": Empty,
    "counting": lambda: mpsmith.trace(lines=False),
    "with lines": mpsmith.trace,
}


def main() -> None:
    device_of_this_process(coverage_profile)
    warnings.simplefilter("ignore")
    x = torch.ones(16, device="mps")
    model = torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(10)])
    programs: dict[str, tuple[Callable[[], Any], int]] = {
        "native: relu": (lambda: torch.relu(x), 1),
        "native, in modules: 10 ReLU": (lambda: model(x), 10),
        "fallback: put_": (lambda: x.put_(INDEX, VALUE), 1),
    }
    rows = []
    with torch.no_grad():
        for name, (program, calls) in programs.items():
            best = _best(program, calls)
            bare = best["no trace"]
            added = {way: best[way] - bare for way in WAYS}
            rows.append([name, *(f"{best[way]:.2f}" for way in WAYS), *(f"{added[way]:.2f}" for way in LIMITS)])
            rows[-1] += [f"{added[way] / max(added['empty mode'], 1e-9):.1f}" for way in LIMITS]
    headers = ["us a call", *WAYS, *(f"{way} adds" for way in LIMITS), *(f"{way} / empty mode" for way in LIMITS)]
    print(tabulate(rows, headers))
    print("allowed: " + ", ".join(f"{way} {limit} us" for way, limit in LIMITS.items()))


INDEX: torch.Tensor
VALUE: torch.Tensor


def _best(program: Callable[[], Any], calls: int) -> dict[str, float]:
    global INDEX, VALUE
    INDEX, VALUE = torch.zeros(1, dtype=torch.int64, device="mps"), torch.zeros(1, device="mps")
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(ROUNDS):
        for way, context in WAYS.items():
            with context():
                program()
                start = time.thread_time()
                for _ in range(CALLS // calls):
                    program()
                microseconds = (time.thread_time() - start) / CALLS * 1e6
            best[way] = min(best[way], microseconds)
    return best
