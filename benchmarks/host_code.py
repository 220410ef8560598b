"""Times calls that PyTorch's own host code computes on the simulated device, compared with the CPU's kernels there.

With small tensors, in this thread's CPU time, the best of several rounds. Host code cannot be unloaded, so the stand-in
is measured first. The host code of 2.6.0 is built first if it is not in the cache (minutes).
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from tabulate import tabulate

from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.running.host_code import build_host_code, load_host_code
from mpsmith.simulator.opening import device_of_this_process

RELEASE = "2.6.0"
CALLS, ROUNDS = 500, 7
# The goal: at most so many times the call through the CPU's kernel.
LIMIT = 3


def main() -> None:
    folder, _ = build_host_code(RELEASE, lambda line: None)
    device = device_of_this_process(coverage_profile)
    torch.set_num_threads(1)  # as the workers of an audit
    x, images, kernels = (torch.ones(shape, device="mps") for shape in ((4, 16), (1, 3, 8, 8), (4, 3, 3, 3)))
    programs: dict[str, Callable[[], Any]] = {
        "add (graph)": lambda: x + x,
        "exp (Metal kernel)": lambda: x.exp(),
        "softmax (graph)": lambda: x.softmax(1),
        "layer_norm (graphs)": lambda: torch.nn.functional.layer_norm(x, (16,)),
        "mm (graph)": lambda: x.mm(x.t()),
        "conv2d (graph)": lambda: torch.nn.functional.conv2d(images, kernels),
        "sum (graph)": lambda: x.sum(1),
        "sort (graph)": lambda: x.sort(1),
        "gelu (graph)": lambda: torch.nn.functional.gelu(x),
        "clone (copy)": lambda: x.clone(),
    }
    stand_in = {name: _best(program) for name, program in programs.items()}
    load_host_code(str(folder), None, device)
    host_code = {name: _best(program) for name, program in programs.items()}
    rows = [(name, stand_in[name], host_code[name], host_code[name] / stand_in[name]) for name in programs]
    print(tabulate(rows, ("us a call", "stand-in", f"host code of {RELEASE}", "ratio"), floatfmt=".1f"))
    print(f"allowed: a ratio of {LIMIT}")


def _best(program: Callable[[], Any]) -> float:
    program()
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(CALLS):
            program()
        times.append((time.thread_time() - start) / CALLS * 1e6)
    return min(times)
