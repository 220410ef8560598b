"""What kernels cost in Python: the import, and a registered call above its shader launch."""

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
    """Calls of every overload that returns one tensor, with shaders that do nothing: our Python and torch's operators.

    A call is one of the family's own cases, with contiguous float32 tensors if it has any.
    """
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
    Shader.kernel = _does_nothing  # type: ignore[method-assign, assignment]
    x = torch.randn(64, device="mps")
    torch_neg = _microseconds(lambda: torch.neg(x))
    print(f"torch.neg, whole: {torch_neg:.1f} us")
    print(f"above the launch, of which in operators of torch; the rest is our Python (limit {CALL_LIMIT_US} us)")
    rows, unmeasured = [], []
    for overload, call in calls.items():
        try:
            operators = _operators_of(call)
            whole, of_torch = _microseconds(call), _microseconds(functools.partial(_replay, operators))
        except RuntimeError:  # it reads back what a kernel wrote
            unmeasured.append(overload)
        else:
            rows.append((whole - of_torch, whole, of_torch, len(operators), overload))
    for own, whole, of_torch, count, overload in sorted(rows):
        print(f"{overload}: {whole:.1f} us, {of_torch:.1f} in {count}{'' if own <= CALL_LIMIT_US else '  ABOVE'}")
    print("not measured:", ", ".join(unmeasured) or "none")


def _recorded_calls() -> dict[str, Callable[[], Any]]:
    """A call of each overload that returns one tensor, as a family's cases make it, with what autograd adds."""
    import torch

    from mpsmith.kernels.runtime import catalog
    from mpsmith.kernels.runtime.registration import observing
    from mpsmith.kernels.verification.timing import moved

    best: dict[str, tuple[tuple[bool, bool], Callable[[], Any]]] = {}

    def see(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
        fit = (
            all(x.is_contiguous() and x.numel() for x in tensors),
            all(x.dtype == torch.float32 for x in tensors[:1]),
        )
        if kernel.overload not in best or fit > best[kernel.overload][0]:
            plain = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
            best[kernel.overload] = fit, functools.partial(kernel.function, *plain, **kwargs)

    for family in catalog.families():
        names = [kernel.overload for kernel in catalog.family(family) if kernel.library == "aten"]
        cases = catalog.part_of(family, "cases") if names else None
        with observing(see, *names):
            for call in cases.CASES if cases else ():
                dtype = torch.float32 if torch.float32 in call.dtypes else call.dtypes[0]
                for case in itertools.islice(call.cases(dtype), _CASES):
                    with contextlib.suppress(RuntimeError, IndexError):  # what this profile of torch lacks
                        _run(case.call, [moved(x, "mps") for x in case.args])
    with torch.no_grad():
        return {name: call for name, (_, call) in best.items() if isinstance(call(), torch.Tensor)}


def _run(call: Callable[..., Any], args: list[Any]) -> None:
    """A call and the backward of its results."""
    import torch

    result = call(*args)
    for x in result if isinstance(result, list | tuple) else [result]:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            torch.autograd.backward(x, torch.ones_like(x))


def _operators_of(call: Callable[[], Any]) -> list[Callable[[], Any]]:
    """The operators of torch inside a call, each with its arguments."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[Callable[[], Any]] = []

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append(functools.partial(operator, *args, **(kwargs or {})))
            return found[-1]()

    with Recorder():  # type: ignore[no-untyped-call]
        call()
    return found


def _replay(operators: list[Callable[[], Any]]) -> None:
    for operator in operators:
        operator()


def _does_nothing(shader: object, name: str, device: object) -> Callable[..., None]:
    return lambda *arguments, **options: None


def _microseconds(call: Callable[[], Any], calls: int = 200, rounds: int = 25) -> float:
    """Of the processor, in the fastest round: whatever else the machine does only adds."""
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
