"""Injects a fault into the device: wraps the kernel of its overload, and unwraps it again."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ....errors import near
from ...errors import SimulatorError
from .. import kernel_plan
from .. import loading as device
from .fault import Fault, Term

_armed: list[Any] = []


def inject(fault: Fault) -> None:
    """Inject a fault in this process, in addition to others; the last fault of an overload acts first.

    Raises SimulatorError if the simulated device is not loaded or has no native kernel for the overload, or for an
    unknown argument or word.
    """
    profile = device.loaded_profile()
    if profile is None:
        raise SimulatorError("a fault needs the simulated mps device, which this process has not loaded")
    overload = fault.overload.removeprefix("aten::")
    kernels = kernel_plan.plan(profile)
    if overload not in kernels.native:
        hint = near(overload, kernels.native)
        raise SimulatorError(f"fault {str(fault)!r}: the simulated device has no native kernel aten::{overload}{hint}")
    import torch

    if not hasattr(torch.library, "get_kernel"):
        raise SimulatorError(f"faults need a torch with torch.library.get_kernel, not {torch.__version__}")
    _armed.append(_wrap(fault, overload))


def clear() -> None:
    """Remove all faults from this process. Without the simulated device there are none."""
    while _armed:
        _armed.pop()._destroy()


def _wrap(fault: Fault, overload: str) -> Any:
    import torch

    from ..wrapped_numbers import prepare_wrapped_numbers, wrapped_number
    from . import conditions, corruptions
    from .call import FaultMemory, FaultyCall

    name, _, variant = overload.partition(".")
    operator = getattr(getattr(torch.ops.aten, name), variant or "default")
    _check_names(fault, {a.name for a in operator._schema.arguments})
    holds = [_bound(fault, term, conditions.CONDITIONS) for term in fault.conditions]
    corrupt = _bound(fault, fault.corruption, corruptions.CORRUPTIONS)
    right = torch.library.get_kernel(operator, "MPS")
    memory, lock = FaultMemory(), threading.Lock()
    listed = operator._schema.arguments
    tensors = [a.name for a in listed if str(a.type) in ("Tensor", "Optional[Tensor]")]
    prepare_wrapped_numbers()

    def faulty(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip((a.name for a in listed), args, strict=False))
        arguments = {a.name: given.get(a.name, kwargs.get(a.name, a.default_value)) for a in listed}
        arguments.update({name: wrapped_number(arguments[name]) for name in tensors})
        call = FaultyCall(operator, arguments, lambda *a, **k: right.call_boxed(keyset, *a, **k), memory)
        # Corruptions call operators too: below autograd and autocast, as the kernel does.
        with torch._C._AutoDispatchBelowADInplaceOrView(), torch._C._DisableAutocast(), torch._C.DisableTorchFunction():
            with lock:
                memory.calls += 1
                held = [condition(call) for condition in holds]  # evaluate all: some remember the call
            return corrupt(call) if all(held) else call.run()

    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # replaces the kernel on purpose
        library.impl(operator, faulty, "MPS", with_keyset=True, allow_override=True)  # type: ignore[no-untyped-call]
    return library


def _bound(fault: Fault, term: Term, words: dict[str, Callable[..., Any]]) -> Callable[[Any], Any]:
    if term.name not in words:
        raise SimulatorError(f"fault {str(fault)!r}: no {term.name!r}{near(term.name, sorted(words))}")
    function = words[term.name]
    wanted = function.__code__.co_argcount - 1
    least = wanted - len(function.__defaults__ or ())
    if not least <= len(term.arguments) <= wanted:
        names = ", ".join(itertools.islice(function.__code__.co_varnames, 1, wanted + 1))
        raise SimulatorError(f"fault {str(fault)!r}: write {term.name}({names})")
    return lambda call: function(call, *term.arguments)


def _check_names(fault: Fault, names: set[str]) -> None:
    for term in (fault.corruption, *fault.conditions):
        name = term.arguments[0] if term.arguments else None
        if isinstance(name, str) and name not in {*names, "any"}:
            listed = ", ".join(sorted(names))
            raise SimulatorError(f"fault {str(fault)!r}: {fault.overload} has no argument {name!r} (it has {listed})")
