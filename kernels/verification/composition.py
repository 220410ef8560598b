"""What Inductor makes of a family's workload where our kernel is off: launches and memory, beside those of ours.

A fused composition of generated Metal may need fewer launches than a kernel of ours, or move less. What is counted is
the same wherever it runs, which the time on a simulated device is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ...audit.compiled.judging import ready_to_compile
from ...audit.compiled.lowering import Lowering, watching
from ...errors import one_line
from ..runtime import catalog
from ..runtime.registration import registered, use
from ..runtime.shader import MetalKernel, Shader
from .timing import median_milliseconds, moved, workload_of
from .workload import Workload

# Smaller differences in memory are ignored: one side may bind a small buffer of sizes, or write an unused output.
NO_DIFFERENCE = 0.05


@dataclass(frozen=True)
class Traffic:
    """What one call asks of the GPU.

    Attributes:
        launches: how many kernels are started.
        bound: the bytes of the tensors that they are given, each launch's counted anew: what goes through memory if
            each is read or written once.
    """

    launches: int
    bound: int


@dataclass(frozen=True)
class Composition:
    """A workload under torch.compile without our kernel, beside the call with it.

    Attributes:
        operator: the overload that it is about.
        ours: what the call with our kernel asks; None where the running torch has its own.
        compiled: what the compiled call asks; None where it is not all generated Metal, or not right.
        milliseconds: the median time of the compiled call.
        says: which of both is better, or why there is no compiled call.
    """

    operator: str
    ours: Traffic | None
    compiled: Traffic | None
    milliseconds: float | None
    says: str


def composed(family: str, elements: int) -> Composition:
    """Count and time what Inductor makes of the family's workload. Raises MpsmithError for one without a workload."""
    work = workload_of(family)
    torch.manual_seed(0)
    arguments = work.arguments(elements)
    ours = _ours(family, work, arguments)
    with use():
        try:
            compiled, milliseconds, problem = _compiled(work, arguments)
        except Exception as error:  # whatever Dynamo, Inductor or the Metal compiler stumble over
            compiled, milliseconds, problem = None, None, f"not compiled: {one_line(error)[:100]}"
        finally:
            torch._dynamo.reset()
    return Composition(work.operator, ours, compiled, milliseconds, problem or in_words(ours, compiled))


def in_words(ours: Traffic | None, compiled: Traffic | None) -> str:
    """Which of both asks less of the GPU."""
    if ours is None or compiled is None:
        return ""
    launches, bound = ours.launches - compiled.launches, ours.bound - compiled.bound
    if abs(bound) <= NO_DIFFERENCE * ours.bound:
        bound = 0
    signs = {(saved > 0) - (saved < 0) for saved in (launches, bound)} - {0}
    if not signs:
        return "as much as ours"
    if len(signs) == 2:
        return "fewer launches, more memory" if launches > 0 else "more launches, less memory"
    return "compile it: less than ours" if signs == {1} else "more than ours"


def _ours(family: str, work: Workload, arguments: tuple[Any, ...]) -> Traffic | None:
    """What our kernel asks, once it is compiled; None where it does not answer."""
    with use(*(kernel.overload for kernel in catalog.family(family))):
        if work.operator not in registered():
            return None
        work.call(*_on_mps(arguments))
        with _launches_of_shaders() as counted:
            work.call(*_on_mps(arguments))
            torch.mps.synchronize()
    return counted.traffic()


def _compiled(work: Workload, arguments: tuple[Any, ...]) -> tuple[Traffic | None, float | None, str]:
    """The traffic of the compiled call, its time, and the reason if it cannot be measured."""
    expected = work.call(*_copied(arguments))
    with ready_to_compile(), watching() as lowering, _launches_of_compiled_code() as counted:
        call = torch.compile(lambda *inputs: work.call(*inputs))
        found = call(*_on_mps(arguments))
        problem = _not_all_metal(lowering) or _not_right(found, expected)
        if problem:
            return None, None, problem
        counted.clear()
        call(*_on_mps(arguments))
        torch.mps.synchronize()
        traffic = counted.traffic()
        inputs = _on_mps(arguments)
        return traffic, median_milliseconds(call, inputs, torch.mps.synchronize), ""


def _not_all_metal(lowering: Lowering) -> str:
    if lowering.aten:
        return f"Inductor calls {', '.join(sorted(lowering.aten))}"
    return "" if lowering.kernels else "Inductor generates nothing for it"


def _not_right(found: Any, expected: Any) -> str:
    """Whether the compiled call gives something else than the CPU: then nothing is to be won by it."""
    try:
        torch.testing.assert_close(found, expected, check_device=False, equal_nan=True, rtol=1e-3, atol=1e-3)
    except AssertionError as error:
        return f"Inductor's is another result: {one_line(error)[:80]}"
    return ""


class _Counted:
    """The launches that were seen."""

    def __init__(self) -> None:
        self._bound: list[int] = []

    def clear(self) -> None:
        self._bound.clear()

    def traffic(self) -> Traffic:
        return Traffic(len(self._bound), sum(self._bound))

    def counting(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        """The launch, counted."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self._bound.append(sum(map(_bytes_of, arguments)))
            return launch(*arguments, **options)

        return counted


def _bytes_of(argument: Any) -> int:
    """The memory behind an argument of a launch; of a list of tensors, that of all."""
    if isinstance(argument, torch.Tensor):
        return min(argument.numel() * argument.element_size(), argument.untyped_storage().nbytes())
    return sum(map(_bytes_of, argument)) if isinstance(argument, (list, tuple)) else 0


@contextmanager
def _launches_of_shaders() -> Iterator[_Counted]:
    """Inside, what our families launch is counted."""
    counted, plain = _Counted(), Shader.kernel

    def kernel(self: Shader, name: str, device: torch.device) -> MetalKernel:
        return counted.counting(plain(self, name, device))

    Shader.kernel = kernel  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        Shader.kernel = plain  # type: ignore[method-assign]


@contextmanager
def _launches_of_compiled_code() -> Iterator[_Counted]:
    """Inside, the kernels of libraries that are compiled now are counted whenever they run."""
    counted, plain = _Counted(), torch.mps.compile_shader

    class Library:
        def __init__(self, library: Any) -> None:
            self._library = library

        def __getattr__(self, name: str) -> Any:
            return counted.counting(getattr(self._library, name))

    torch.mps.compile_shader = lambda source: Library(plain(source))
    try:
        yield counted
    finally:
        torch.mps.compile_shader = plain


def _copied(arguments: tuple[Any, ...]) -> list[Any]:
    return [moved(argument, "cpu", copy=True) for argument in arguments]


def _on_mps(arguments: tuple[Any, ...]) -> list[Any]:
    return [moved(argument, "mps", copy=True) for argument in arguments]
