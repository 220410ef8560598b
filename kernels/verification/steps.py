"""One step of a small program for each operator of a family, and what falls back in it without and with our kernels.

A call with gradients is a training step: forward, a loss, `loss.backward()`, and SGD on what has gradients. Any other
call is made as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...audit.judging.fallbacks import NO_CPU_KERNEL, missing_operator
from ...audit.model.nested import leaves, map_leaves
from ...audit.releases.surface.profiles import coverage_profile
from ...simulator.opening import device_of_this_process
from ..runtime import catalog
from ..runtime.registration import counting, use
from .calls import KernelCall
from .source import calls_of

_LEARNING_RATE = 0.01


@dataclass(frozen=True)
class ProgramStep:
    """What one step showed.

    Attributes:
        family, call: whose call it makes.
        trains: whether the step has a backward and an optimizer.
        before: the operators that fell back to the CPU, or were refused, without our kernels.
        after: the same with them.
        answered: the overloads that our kernels answered.
        error: what the step raised with our kernels, or "".
    """

    family: str
    call: str
    trains: bool
    before: tuple[str, ...]
    after: tuple[str, ...]
    answered: tuple[str, ...]
    error: str = ""


def steps_of(family: str) -> list[ProgramStep]:
    """The steps of a family, one for each group of operators that one of its calls runs, in the call's first dtype.

    Fallbacks must be enabled. Raises UnknownKernelError for an unknown family.
    """
    first = {call.operators: call for call in reversed(calls_of(family))}  # other variants run the same kernels
    return [_step(family, call) for call in reversed(first.values())]


def _step(family: str, call: KernelCall) -> ProgramStep:
    kernels = catalog.family(family)
    overloads = [kernel.overload for kernel in kernels]
    overridden = {kernel.operator for kernel in kernels if kernel.applies is not None}
    before: tuple[str, ...] = ()
    if not overridden.issuperset(call.operators):  # of those torch has kernels, which nothing falls back from
        with use():
            before, _ = _fallen(call)
    with counting(*overloads) as answered:
        after, error = _fallen(call)
    return ProgramStep(family, call.label, bool(call.gradients), before, after, tuple(answered), error)


def _fallen(call: KernelCall) -> tuple[tuple[str, ...], str]:
    """The operators that fell back or were refused in a step, and what it raised."""
    inputs = next(call.inputs(call.dtypes[0]))
    torch.manual_seed(0)
    error = ""
    with device_of_this_process(coverage_profile).recorder.recording() as fallen:
        try:
            _run(call.call, map_leaves(_on_mps, inputs), call.gradients)
        except NotImplementedError as refused:
            no_cpu_kernel = NO_CPU_KERNEL.search(str(refused))
            operator = no_cpu_kernel[1] if no_cpu_kernel else missing_operator(refused)
            return (*fallen, operator or str(refused).splitlines()[0]), ""
        except RuntimeError as raised:
            error = str(raised).splitlines()[0]
    return tuple(dict.fromkeys(fallen)), error


def _on_mps(leaf: Any) -> Any:
    return leaf.to("mps") if isinstance(leaf, torch.Tensor) else leaf


def _run(function: Callable[..., Any], arguments: Sequence[Any], trained: Sequence[int]) -> None:
    given = list(arguments)
    for at in trained:
        given[at] = given[at].detach().requires_grad_()
    outputs = function(*given)
    if not trained:
        return
    parameters = [given[at] for at in trained]
    optimizer = torch.optim.SGD(parameters, lr=_LEARNING_RATE)
    # Complex outputs have a loss of their absolute values; integers, such as positions of maxima, have none.
    losses = [x.abs().sum() for x in leaves(outputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
