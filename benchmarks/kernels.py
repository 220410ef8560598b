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
# All calls are timed in turn so often: what else the machine does for some seconds then spoils one pass alone.
_PASSES = 5

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
    """Time calls of overloads that return one tensor, with shaders that do nothing: our Python, torch's functions."""
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    device.load(coverage_profile("2.0.1"))
    metal.install()
    import torch

    from mpsmith.kernels.runtime.shader import Shader

    warnings.simplefilter("ignore")
    calls = _recorded_calls()
    Shader.kernel = lambda *place: lambda *arguments, **options: None  # type: ignore[method-assign]
    timed = {"torch.neg": functools.partial(torch.neg, torch.randn(64, device="mps"))}
    functions = {}
    for overload, call in calls.items():
        with contextlib.suppress(RuntimeError):
            functions[overload] = _functions_of_torch(call)
            timed[overload], timed[_inside(overload)] = call, functools.partial(_run, functions[overload])
    best = _fastest(timed)
    print(f"torch.neg, whole: {best['torch.neg']:.1f} us")
    print(f"above the launch, of which in functions of torch; the rest is our Python (limit {CALL_LIMIT_US} us)")
    for overload in calls:
        if overload not in best or _inside(overload) not in best:
            print(f"{overload}: not measured: it reads back what a kernel wrote")
            continue
        whole, of_torch = best[overload], best[_inside(overload)]
        above = "  ABOVE" if whole - of_torch > CALL_LIMIT_US else ""
        print(f"{overload}: {whole:.1f} us, {of_torch:.1f} in {len(functions[overload])}{above}")


def _inside(overload: str) -> str:
    return f"{overload} in torch"


def _functions_of_torch(call: Callable[[], Any]) -> list[Callable[[], Any]]:
    """The calls of torch's functions in a call that reach an operator, as the kernel makes them.

    The operators themselves would not do: called from Python, one takes 2 to 5 us longer than `torch.empty`.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    functions: list[Callable[[], Any]] = []
    reached = 0

    class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal reached
            reached += 1
            return operator(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            before, inner = reached, functools.partial(function, *args, **(kwargs or {}))
            result = inner()
            if reached > before:
                functions.append(inner)
            return result

    with torch.no_grad(), Functions(), Operators():  # type: ignore[no-untyped-call]
        call()
    return functions


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
    _ = [call() for call in calls]  # kept to the end, as in the call: memory that is freed at once is found sooner


def _fastest(calls: dict[str, Callable[[], Any]], repeats: int = 200, rounds: int = 5) -> dict[str, float]:
    """Processor time of the fastest round of each call, in us: anything else that the machine does can only add to it.

    Without those that raise RuntimeError because a kernel did not write what they read back.
    """
    import torch

    best, raised = dict.fromkeys(calls, float("inf")), set()
    with torch.no_grad():
        for _, (name, call) in itertools.product(range(_PASSES), calls.items()):
            try:
                call()
                for _ in range(rounds):
                    start = time.process_time()
                    for _ in range(repeats):
                        call()
                    best[name] = min(best[name], (time.process_time() - start) / repeats * 1e6)
            except RuntimeError:
                raised.add(name)
    return {name: fastest for name, fastest in best.items() if name not in raised}
