"""Finds the overload at fault inside a wrong case: audits every inner call with its actual arguments.

A wrong case runs again under a dispatch mode, which sees every overload below autograd, including those of the backward
on autograd's threads. The arguments of each call are copied to the CPU before it runs. Afterwards the CPU's result for
them is compared with the device's, by the comparison that judges cases. The innermost of the first wrong calls is at
fault: for the same arguments, right or wrong, its result is not the CPU's.

Composite kernels below autograd (`aten::logsumexp.out`) run with the mode on, so that their inner calls are audited
first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from ...errors import one_line
from ...simulator.fallback_recorders import FallbackRecorder
from ..model.case import UNINITIALISED, Case, described, seed_generators
from ..model.nested import leaves, map_leaves
from ..model.verdicts import AtFault, CaseVerdict, Outcome
from .agreement import Comparison
from .call_tracer import CallTracer
from .compare import Difference
from .execution import Execution
from .judge import DEVICE, Trial
from .randomness import draws
from .reference import WideRuns
from .refusals import classify
from .transfer import Inputs, move
from .uninitialised_memory import reads_uninitialised_memory

# Limits for one case: the inner calls that are audited, and the elements of their arguments.
MOST_CALLS = 400
MOST_ELEMENTS = 1 << 24
# How often a case is run again until an inner call is wrong: some faults show only in some runs.
ATTEMPTS = 2

# Receives the overload and the described arguments of a call.
Note = Callable[[str, str], None]

# Composite kernels below autograd, in the order in which the dispatcher prefers them.
_COMPOSITE_KEYS = (
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
    torch._C.DispatchKey.CompositeImplicitAutograd,
)
DEVICE_KEY = torch._C.DispatchKey.MPS


def may_have_faulty_call(outcome: Outcome) -> bool:
    """Whether an inner call may be at fault for a case whose message does not name the operator.

    No operator is at fault for a missing float64.
    """
    if outcome.verdict is CaseVerdict.DTYPE_GAP:
        return "float64" not in outcome.message and "ComplexDouble" not in outcome.message
    return outcome.verdict in (CaseVerdict.WRONG, CaseVerdict.CRASH)


class _FaultFoundError(Exception):
    """Ends the run of a case whose faulty call is known."""


def fault_inside(
    case: Case, recorder: FallbackRecorder, seed: int, label: str, note: Note | None = None
) -> AtFault | None:
    """The overload at fault for a wrong case, or None if no inner call is wrong.

    Args:
        case, recorder, seed, label: as for `judge`.
        note: receives the innermost call before it runs, to know which one ended the process; empty strings between
            calls. Without it, the case is run only until a call is wrong.
    """
    for _ in range(ATTEMPTS):
        inner_calls = InnerCalls(case, note)
        Trial(case, recorder, seed, label, tracer=inner_calls).outcome()
        if inner_calls.at_fault is not None:
            return inner_calls.at_fault
    return None


class InnerCalls(CallTracer):
    """Traces the runs of one case on the device, and audits their inner calls.

    Attributes:
        at_fault: the first inner call that was wrong; None before that.
    """

    def __init__(self, case: Case, note: Note | None) -> None:
        super().__init__()
        self.at_fault: AtFault | None = None
        self._case = case
        self._note = note
        self._calls = 0
        self._elements = 0
        self._open: list[tuple[str, str]] = []  # the running calls: overload and arguments

    @contextmanager
    def tracing(self, forward: bool) -> Iterator[None]:
        """Audit the calls made in this context. Raises after them if one is wrong, which saves the comparison."""
        with _Mode(self):
            yield
        if self.at_fault is not None and self._note is None:
            raise _FaultFoundError

    def audited(self, mode: TorchDispatchMode, func: OpOverload[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Make one call on the device, and compare it with the CPU's unless an inner call was already wrong."""
        args = _with_tensors_for_numbers(func, args)
        before = _on_cpu(args, kwargs) if self._is_to_be_audited(args, kwargs) else None
        if before is None:
            return func(*args, **kwargs)
        try:
            with self._noted(func, before):
                result = self._made(mode, func, args, kwargs)
                torch.mps.synchronize()
        except Exception as error:
            self._compare(func, before, error)
            raise
        after = _on_cpu((*leaves(result), *_tensors(args, kwargs)), {})
        if after is not None:
            self._compare(func, before, after[0])
        return result

    def _is_to_be_audited(self, args: Any, kwargs: dict[str, Any]) -> bool:
        if self.at_fault is not None or self._calls >= MOST_CALLS or not _is_for_device(args, kwargs):
            return False
        elements = sum(tensor.numel() for tensor in _tensors(args, kwargs))
        if self._elements + elements > MOST_ELEMENTS:
            return False
        self._calls += 1
        self._elements += elements
        return True

    def _made(self, mode: TorchDispatchMode, func: OpOverload[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Make the call, with the mode on inside composite kernels."""
        is_open = any(name == func._name for name, _ in self._open[:-1])
        if is_open or not all(t.layout is torch.strided for t in _tensors(args, kwargs)):
            return func(*args, **kwargs)
        if _is_for_the_device_alone(func):
            with mode:
                return func.redispatch(torch._C.DispatchKeySet(DEVICE_KEY), *args, **kwargs)
        key = composite_key(func)
        if key is None:
            return func(*args, **kwargs)
        with mode:
            return func._op_dk(key, *args, **kwargs)

    @contextmanager
    def _noted(self, func: OpOverload[..., Any], before: Inputs) -> Iterator[None]:
        self._open.append((func._name, "" if self._note is None else described(Case(func, *before))))
        self._note_innermost()
        try:
            yield
        finally:
            self._open.pop()
            self._note_innermost()

    def _note_innermost(self) -> None:
        if self._note is not None:
            self._note(*(self._open[-1] if self._open else ("", "")))

    def _compare(self, func: OpOverload[..., Any], before: Inputs, after: tuple[Any, ...] | Exception) -> None:
        if self.at_fault is not None:  # an inner call of this one
            return
        try:
            with torch._C.DisableTorchFunction(), _untouched_generators():
                difference = _difference(self._case, func, before, after)
        except Exception:  # the CPU has no such kernel, or refuses
            return
        if difference:
            call = described(Case(func, *before))
            self.at_fault = AtFault(func._name, call, difference)


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Passes every called overload to InnerCalls. Autograd's threads inherit the mode with the engine's state."""

    def __init__(self, inner_calls: InnerCalls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inner_calls = inner_calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._inner_calls.audited(self, func, args, kwargs or {})


def _difference(case: Case, func: OpOverload[..., Any], before: Inputs, after: tuple[Any, ...] | Exception) -> str:
    """How the device's results and arguments differ from the CPU's; "" if they do not.

    Raises the CPU's error, unless the case is expected to raise.
    """
    seed = _seed
    call = Case(
        _and_arguments(func),
        *before,
        uninitialised=_undefined(func),
        elementwise=case.elementwise and torch.Tag.pointwise in func.tags,
        distribution=case.distribution and draws(func),
    )
    seed()
    drawn = torch.default_generator.get_state()
    inputs = move(*before, "cpu")
    try:
        outputs = call.call(*inputs[0], **inputs[1])
    except Exception as error:
        if case.errors_count and not isinstance(after, Exception) and not isinstance(error, NotImplementedError):
            return f"returns where the CPU raises {type(error).__name__}: {one_line(error)}"
        raise
    if isinstance(after, Exception):
        refusal = classify(after, "forward")
        return "" if refusal.verdict is CaseVerdict.MISSING else str(refusal)
    # An overload that may draw need not: attention without dropout draws nothing.
    is_random = draws(func) and any(isinstance(leaf, torch.Generator) for leaf in leaves(before))
    is_random |= not torch.equal(drawn, torch.default_generator.get_state())
    expected = Execution(inputs, list(outputs), [], [])
    arguments = after[len(after) - len(_tensors(*inputs)) :]
    actual = Execution(_rebuilt(inputs, arguments), list(after), [], [])
    comparison = Comparison(call, WideRuns(call, [], seed), "cpu", random=is_random)
    agreement = comparison.forward(actual, expected)
    if not isinstance(agreement, Difference) or reads_uninitialised_memory(call, expected, seed):
        return ""
    return agreement.text


def _with_tensors_for_numbers(func: OpOverload[..., Any], args: Any) -> Any:
    """The arguments with numbers wrapped in tensors, as C++ wraps them; a dispatch mode receives plain numbers.

    Operators that accept numbers in place of tensors from Python receive them unchanged.
    """
    if torch._C._should_allow_numbers_as_tensors(func._opname):
        return args
    first = next((arg for arg in args if isinstance(arg, Tensor)), None)
    return tuple(
        torch.tensor(arg, dtype=_dtype_of(first, arg), device="cpu")
        if isinstance(arg, (int, float, complex)) and isinstance(declared.type, torch.TensorType)
        else arg
        for arg, declared in zip(args, func._schema.arguments, strict=False)
    )


def _dtype_of(tensor: Tensor | None, number: complex) -> torch.dtype | None:
    """The dtype of a wrapped number that promotes the result as the number itself would."""
    return None if tensor is None else torch.result_type(tensor, number)


def _and_arguments(func: OpOverload[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """The call, returning its tensor arguments after its results, so that both are compared."""

    def call(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return (*leaves(func(*args, **kwargs)), *_tensors(args, kwargs))

    call.__name__ = func._name
    return call


def _rebuilt(inputs: Inputs, tensors: tuple[Any, ...]) -> Inputs:
    """`inputs` with its tensors replaced."""
    replaced = iter(tensors)
    args, kwargs = map_leaves(lambda leaf: next(replaced) if isinstance(leaf, Tensor) else leaf, inputs)
    return args, kwargs


def _undefined(func: OpOverload[..., Any]) -> str:
    return "uninitialised" if func._schema.name.removeprefix("aten::") in UNINITIALISED else ""


def composite_key(func: OpOverload[..., Any], device: torch._C.DispatchKey = DEVICE_KEY) -> Any:
    """The key of the composite kernel that a device runs for an overload; None if the device has its own kernel."""
    if has_kernel(func, device):
        return None
    return next((key for key in _COMPOSITE_KEYS if has_kernel(func, key)), None)


def _is_for_the_device_alone(func: OpOverload[..., Any]) -> bool:
    """Whether the overload has a kernel for mps and none for the CPU. Then only its inner calls can be compared."""
    return has_kernel(func, DEVICE_KEY) and not has_kernel(func, torch._C.DispatchKey.CPU)


def has_kernel(func: OpOverload[..., Any], key: torch._C.DispatchKey) -> bool:
    """Whether the dispatcher has a kernel of the overload for exactly this key."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func._name, key)


def _is_for_device(args: Any, kwargs: dict[str, Any]) -> bool:
    return any(
        (isinstance(leaf, Tensor) and leaf.device.type == DEVICE)
        or (isinstance(leaf, torch.device) and leaf.type == DEVICE)
        for leaf in leaves((args, kwargs))
    )


def _on_cpu(args: Any, kwargs: dict[str, Any]) -> Inputs | None:
    """Copies of arguments on the CPU, with devices among them replaced; None if they cannot be copied."""
    try:
        with torch._C.DisableTorchFunction():  # a default device applies to the case, not to the copies
            moved_args, moved_kwargs = move(tuple(args), kwargs, "cpu")
    except Exception:
        return None
    return _named_cpu(moved_args), _named_cpu(moved_kwargs)


def _named_cpu(tree: Any) -> Any:
    cpu = torch.device("cpu")
    return map_leaves(lambda leaf: cpu if isinstance(leaf, torch.device) and leaf.type == DEVICE else leaf, tree)


def _tensors(args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    return [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)]


def _seed() -> None:
    seed_generators(0, "inner call")


@contextmanager
def _untouched_generators() -> Iterator[None]:
    """Restore the generators: the case may draw numbers on the CPU between its calls."""
    states = torch.default_generator.get_state(), random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        torch.default_generator.set_state(states[0])
        random.setstate(states[1])
        numpy.random.set_state(states[2])
