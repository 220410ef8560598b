"""Demonstrates a fault: finds a call that the CPU accepts and that behaves differently on the faulty device.

Results, arguments after the call and the type of an error are compared bit by bit. This uses none of the audit's
sources or judges, so a fault that they miss counts as missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import torch
from torch import Tensor

from ...simulator.device.faults import Fault, Term, clear, inject
from ..cases.calls.invocation import arguments_of, overload_of
from ..cases.calls.recorded_calls import RecordedCalls
from ..model.description import describe
from ..model.nested import leaves, map_leaves
from .argument_changes import Arguments
from .classes import Scenario
from .makers import MAKERS
from .observation import Raised, differs, execute
from .planted import Trigger
from .schemas import facts_of

# The number of calls to try before a fault counts as invisible.
ATTEMPTS = 12
CALLS = {Scenario.MANY_CALLS: 250}
DRAWN = 8192
# Distributions further apart than this differ: chance stays far below it with so many draws.
APART = 0.1


class BaseCalls:
    """The recorded calls of the overloads, in every dtype that the CPU accepts."""

    def __init__(self) -> None:
        self._memory = RecordedCalls.load()

    def of(self, overload: str, rng: Random, dtypes: tuple[str, ...] = ()) -> Iterator[Arguments]:
        """Calls in random order, those with empty tensors last; `dtypes`: only calls with these dtypes."""
        recorded = self._memory.overloads.get(overload)
        if recorded is None or recorded.refused:
            return
        names = [a.name for a in overload_of(overload)._schema.arguments]
        offered = [d for d in recorded.dtypes if not dtypes or d in dtypes]
        pairs = [(call, d) for d in offered for call in recorded.accepted(d)]
        rng.shuffle(pairs)
        pairs.sort(key=lambda pair: _is_empty(pair[0]))  # calls with empty tensors show few faults
        for call, dtype in pairs:
            torch.manual_seed(rng.randrange(2**31))
            args, kwargs = arguments_of(call, dtype)
            defaults = {a.name: a.default_value for a in overload_of(overload)._schema.arguments}
            yield {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _is_empty(recipe: Any) -> bool:
    """Whether a tensor of a recorded call is empty."""
    if isinstance(recipe, dict):
        return 0 in recipe.get("shape", ()) or any(map(_is_empty, recipe.values()))
    return isinstance(recipe, list) and any(map(_is_empty, recipe))


def demonstrate(fault: Fault, scenario: Scenario, calls: BaseCalls, rng: Random) -> Trigger | None:
    """A call that shows the fault, or None if none was found."""
    wanted = tuple(str(c.arguments[1]) for c in fault.conditions if c.name == "dtype")
    shown = SHOWN[scenario]
    tried = 0
    for base in calls.of(fault.overload, rng, wanted):
        arguments = _made(fault, base, rng)
        if arguments is not None and scenario is Scenario.REFUSED and fault.corruption.name == "other_error":
            arguments = _broken(arguments, rng)
        if arguments is None or _has_double(arguments):
            continue
        if shown(fault, arguments, rng):
            return Trigger(describe(arguments), scenario.value)
        tried += 1
        if tried == ATTEMPTS:
            break
    return None


def _made(fault: Fault, base: Arguments, rng: Random) -> Arguments | None:
    """The call, changed so that the fault's conditions may hold, with out= tensors of the right size."""
    named = {str(argument) for condition in fault.conditions for argument in condition.arguments}
    outs = facts_of(fault.overload).outs
    arguments = _fitted(fault.overload, base, outs)
    for condition in fault.conditions:
        make = MAKERS.get(condition.name)
        if make is not None and not make(arguments, rng, *condition.arguments):
            return None
    return _fitted(fault.overload, arguments, tuple(name for name in outs if name not in named))


def _fitted(overload: str, arguments: Arguments, outs: tuple[str, ...]) -> Arguments:
    """The call with out= tensors of the CPU's result shapes; unchanged if the CPU refuses it."""
    fitted = dict(arguments)
    if outs and not _has_double(arguments):
        (observed,) = execute(overload_of(overload), [arguments], "cpu", whole=True)
        if not isinstance(observed, Raised):
            for name in outs:
                there = observed[name]
                if isinstance(there, Tensor) and isinstance(fitted[name], Tensor):
                    fitted[name] = torch.ones(there.shape, dtype=fitted[name].dtype)
    return fitted


def _has_double(arguments: Arguments) -> bool:
    doubles = (torch.float64, torch.complex128)
    return any(getattr(leaf, "dtype", leaf) in doubles for leaf in leaves(arguments))


def _broken(arguments: Arguments, rng: Random) -> Arguments | None:
    """The call with an invalid argument: a wrong size, or a dimension that does not exist."""
    broken = dict(arguments)
    tensors = [n for n, v in broken.items() if isinstance(v, Tensor) and v.dim() and v.size(0) > 1]
    integers = [
        n for n, v in broken.items() if n in ("dim", "dim0", "dim1", "diagonal", "num_samples") and type(v) is int
    ]
    if integers and rng.random() < 0.5:
        broken[rng.choice(integers)] = 17
    elif tensors:
        name = rng.choice(tensors)
        broken[name] = torch.cat([broken[name], broken[name][:1]]) if rng.random() < 0.5 else broken[name].unsqueeze(0)
    else:
        return None
    return broken


# ---- how faults show


@contextmanager
def device_with_fault(fault: Fault | None) -> Iterator[None]:
    """A context in which the device has exactly this fault."""
    clear()
    try:
        if fault is not None:
            inject(fault)
        yield
    finally:
        clear()


def differs_at_once(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """One call behaves differently."""
    return _shows(fault, [arguments])


def differs_with_other_values(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """The second of two calls behaves differently, or changes the result of the first one."""
    return _shows(fault, [arguments, _other_values(arguments)])


def differs_when_repeated(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """One of many calls behaves differently."""
    small = all(t.numel() <= 10_000 for t in leaves(arguments) if isinstance(t, Tensor))
    return small and _shows(fault, [arguments] * CALLS[Scenario.MANY_CALLS])


def differs_in_threads(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """The second call, from another thread, behaves differently."""
    return _shows(fault, [arguments, _other_values(arguments)], threads=True)


def differs_with_a_near_number(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """The second call, with a slightly larger number, behaves differently."""
    (name,) = (str(c.arguments[0]) for c in fault.conditions if c.name == "near_previous")
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    first = float(value) or 0.5
    return _shows(fault, [{**arguments, name: first}, {**arguments, name: first * 1.005}])


def differs_where_refused(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """The CPU raises, and the device returns or raises a different type."""
    (cpu,) = execute(overload_of(fault.overload), [arguments], "cpu")
    return isinstance(cpu, Raised) and _shows(fault, [arguments], refused=True)


def ends(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """The fault takes effect: if it raised an exception instead, the call would raise."""
    return _shows(replace(fault, corruption=Term("raises")), [arguments])


def uses_memory(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """Each further call leaves more memory in use."""
    overload = overload_of(fault.overload)
    if isinstance(execute(overload, [arguments], "cpu")[0], Raised):
        return False
    with device_with_fault(fault):
        levels = []
        for _ in range(3):
            execute(overload, [arguments], "mps")
            levels.append(torch.mps.current_allocated_memory())
    return levels[0] < levels[1] < levels[2]


def _shows(fault: Fault, calls: list[Arguments], *, threads: bool = False, refused: bool = False) -> bool:
    overload = overload_of(fault.overload)
    cpu = execute(overload, calls, "cpu", threads=threads)
    if not refused and any(isinstance(result, Raised) for result in cpu):
        return False
    with device_with_fault(None):
        clean = execute(overload, calls, "mps", threads=threads)
        again = execute(overload, calls, "mps", threads=threads)
    # A clean device that differs from the CPU or from itself is random, or has another defect.
    if any(_values_differ(a, b) for a, b in zip(clean, cpu, strict=True)) or any(map(differs, clean, again)):
        return False
    with device_with_fault(fault):
        faulty = execute(overload, calls, "mps", threads=threads)
    return any(map(differs, faulty, clean))


def _values_differ(left: Any, right: Any) -> bool:
    if isinstance(left, Raised) or isinstance(right, Raised):
        return differs(left, right)
    return any(differs((a[0], a[1], a[3]), (b[0], b[1], b[3])) for a, b in zip(left[0], right[0], strict=True))


def _other_values(arguments: Arguments) -> Arguments:
    def other(leaf: Any) -> Any:
        floats = isinstance(leaf, Tensor) and leaf.layout is torch.strided and leaf.is_floating_point()
        return (leaf.detach() * 0.8125).to(leaf.dtype) if floats else leaf

    return {name: map_leaves(other, value) for name, value in arguments.items()}


# ---- random operators


def differs_in_distribution(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """Many draws have a different distribution."""
    many = _enlarged(arguments)
    clean, faulty = (_draws(planted, fault.overload, many, 1) for planted in (None, fault))
    again = _draws(None, fault.overload, many, 2)
    if clean is None or faulty is None or again is None or clean.shape != faulty.shape:
        return False
    return _distance(clean, faulty) > APART and _distance(clean, again) < APART / 2


def differs_by_seed(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """A seed gives different draws the second time, or two seeds give the same draws."""
    many = _enlarged(arguments)
    draws = [[_draws(planted, fault.overload, many, seed) for seed in (3, 3, 4)] for planted in (None, fault)]
    if any(d is None for device_draws in draws for d in device_draws):
        return False
    (a, b, c), (d, e, f) = draws
    right = torch.equal(a, b) and not torch.equal(b, c)  # type: ignore[arg-type]
    with device_with_fault(fault):
        one_after_the_other = [_draw(fault.overload, many, None) for _ in range(2)]
    repeats = torch.equal(*one_after_the_other)  # type: ignore[arg-type]
    return right and (not torch.equal(d, e) or torch.equal(e, f) or repeats)  # type: ignore[arg-type]


def differs_by_generator(fault: Fault, arguments: Arguments, rng: Random) -> bool:
    """A generator with the same seed gives different draws."""
    overload, given = overload_of(fault.overload), dict(_enlarged(arguments))
    observed = []
    for planted in (None, fault):
        with device_with_fault(planted):
            torch.mps.manual_seed(7)
            pair = []
            for _ in range(2):
                given["generator"] = torch.Generator().manual_seed(5)
                pair.extend(execute(overload, [given], "mps"))
            observed.append(pair)
    (a, b), (c, d) = observed
    return not isinstance(a, Raised) and not differs(a, b) and differs(c, d)


def _enlarged(arguments: Arguments) -> Arguments:
    """The call with at least DRAWN draws, by a larger tensor."""
    larger = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Tensor) and value.numel() and name in ("self", "mean", "std", "input", "out"):
            times = -(-DRAWN // value.numel())
            larger[name] = torch.cat([value.reshape(-1)] * times)
    return larger


def _draws(fault: Fault | None, overload: str, arguments: Arguments, seed: int) -> Tensor | None:
    with device_with_fault(fault):
        return _draw(overload, arguments, seed)


def _draw(overload: str, arguments: Arguments, seed: int | None) -> Tensor | None:
    if seed is not None:
        torch.mps.manual_seed(seed)
    (observed,) = execute(overload_of(overload), [arguments], "mps")
    if isinstance(observed, Raised):
        return None
    values = observed[0][0][3]
    return values if values.numel() and not values.is_complex() else None


def _distance(left: Tensor, right: Tensor) -> float:
    """The Kolmogorov-Smirnov distance of two samples."""
    a, b = left.flatten().double().sort().values, right.flatten().double().sort().values
    points = torch.cat([a, b])
    shares = [torch.searchsorted(t, points, right=True) / len(t) for t in (a, b)]
    return float((shares[0] - shares[1]).abs().max())


SHOWN: dict[Scenario, Callable[[Fault, Arguments, Random], bool]] = {
    Scenario.ONE_CALL: differs_at_once,
    Scenario.OTHER_VALUES: differs_with_other_values,
    Scenario.NEAR_NUMBER: differs_with_a_near_number,
    Scenario.MANY_CALLS: differs_when_repeated,
    Scenario.TWO_THREADS: differs_in_threads,
    Scenario.DRAWS: differs_in_distribution,
    Scenario.SEED: differs_by_seed,
    Scenario.GENERATOR: differs_by_generator,
    Scenario.MEMORY: uses_memory,
    Scenario.ENDS: ends,
    Scenario.REFUSED: differs_where_refused,
}
