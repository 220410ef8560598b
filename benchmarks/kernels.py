"""Measures the Python cost of kernels: the import, and a registered call without its shader launch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

IMPORT_LIMIT_MS = 50
CALL_LIMIT_US = 5
_CASES = 6

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
    """Print the median over new interpreters."""
    command = [sys.executable, "-c", _IMPORT]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5))
    plain = statistics.median(float(run.stdout) for run in runs)
    print(f"import mpsmith.kernels above import torch, no mps device: {plain:.1f} ms (limit {IMPORT_LIMIT_MS})")


def _call_cost() -> None:
    """Time calls of overloads that return one tensor, with shaders that do nothing: our Python, torch's operators."""
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    device.load(coverage_profile("2.0.1"))
    metal.install()
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from mpsmith.kernels.runtime.shader import Shader

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            operators.append(functools.partial(operator, *args, **(kwargs or {})))
            return operators[-1]()

    warnings.simplefilter("ignore")
    calls = _recorded_calls()
    Shader.kernel = lambda *place: lambda *arguments, **options: None  # type: ignore[method-assign]
    x = torch.randn(64, device="mps")
    print(f"torch.neg, whole: {_microseconds(lambda: torch.neg(x)):.1f} us")
    print(f"above the launch, of which in operators of torch; the rest is our Python (limit {CALL_LIMIT_US} us)")
    for overload, call in calls.items():
        operators: list[Callable[[], Any]] = []
        try:
            with Recorder():  # type: ignore[no-untyped-call]
                call()
            whole, of_torch = _microseconds(call), _microseconds(functools.partial(_run, operators))
        except RuntimeError as error:  # it reads back what a kernel wrote
            print(f"{overload}: not measured: {str(error).splitlines()[0]}")
        else:
            above = "  ABOVE" if whole - of_torch > CALL_LIMIT_US else ""
            print(f"{overload}: {whole:.1f} us, {of_torch:.1f} in {len(operators)}{above}")


def _recorded_calls() -> dict[str, Callable[[], Any]]:
    """A call of each overload that returns one tensor, from its family's cases; a contiguous one if there is any."""
    import torch

    from mpsmith.kernels.runtime import catalog
    from mpsmith.kernels.runtime.registration import observing
    from mpsmith.kernels.verification.timing import moved

    best: dict[str, tuple[bool, Callable[[], Any]]] = {}

    def see(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
        fits = all(x.is_contiguous() and x.numel() for x in tensors)
        if kernel.overload not in best or fits > best[kernel.overload][0]:
            plain = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
            best[kernel.overload] = fits, functools.partial(kernel.function, *plain, **kwargs)

    for family in catalog.families():
        names = [kernel.overload for kernel in catalog.family(family) if kernel.library == "aten"]
        cases = catalog.part_of(family, "cases") if names else None
        with observing(see, *names):
            for call in cases.CASES if cases else ():
                dtype = torch.float32 if torch.float32 in call.dtypes else call.dtypes[0]
                for case in itertools.islice(call.cases(dtype), _CASES):
                    with contextlib.suppress(RuntimeError, IndexError):  # what this profile of torch lacks
                        result = case.call(*[moved(x, "mps") for x in case.args])
                        for x in result if isinstance(result, list | tuple) else [result]:
                            if isinstance(x, torch.Tensor) and x.requires_grad:
                                torch.autograd.backward(x, torch.ones_like(x))
    with torch.no_grad():
        return {name: call for name, (_, call) in sorted(best.items()) if isinstance(call(), torch.Tensor)}


def _run(calls: list[Callable[[], Any]]) -> None:
    for call in calls:
        call()


def _microseconds(call: Callable[[], Any], calls: int = 200, rounds: int = 25) -> float:
    """Processor time of the fastest round; anything else that the machine does can only add to it."""
    import torch

    best = float("inf")
    with torch.no_grad():
        call()
        for _ in range(rounds):
            start = time.process_time()
            for _ in range(calls):
                call()
            best = min(best, (time.process_time() - start) / calls * 1e6)
    return best
