"""The same call again: with other values, after another shape, after an in-place change, from two threads, 200 times.

What a device keeps from one call to the next (a compiled graph, a buffer, a result) must depend on everything that the
result depends on. The tensors of the other call are made on the CPU, beside those of the case, so that no further
operator has a part in them.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from threading import Barrier
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from ....registry.files import full_name
from ...judging.compare import same_bits
from ...judging.randomness import draws
from ...model.case import Case, QuickShare
from ...model.nested import leaves, map_leaves
from ...model.selection import DTYPES
from ..calls.invocation import SchemaCall, overload_of, runs_a_kernel, written_arguments
from .arguments import MAIN_DTYPES, UNCHECKED_OPERATORS
from .case_tensors import accepts, tensors_of
from .derived import BaseGroup, Factor, distinct
from .forms import copied, detached
from .random import draws_numbers

Call = Callable[..., Any]
# The positional and the named arguments of one call.
Inputs = tuple[tuple[Any, ...], dict[str, Any]]

LARGEST = 5_000
REPETITIONS = 200
# Two threads go on until both have made so many calls: one may be far ahead of the other.
CALLS_OF_A_THREAD = 20
MOST_CALLS_OF_A_THREAD = 200
# Python files that are not kernels: the auditor's, the simulator's, torch's and Python's, but not what is installed.
PACKAGE = Path(__file__).parents[3]
NO_KERNELS = (str(PACKAGE / "audit"), str(PACKAGE / "simulator"), str(Path(torch.__file__).parent), "<")
STANDARD_LIBRARY, INSTALLED = sysconfig.get_path("stdlib"), "-packages"
SAME = "every call gives the first result"

# Operators whose tensors have an order, or a sum, that the other values must have too.
ORDERED = re.compile(
    r"searchsorted|bucketize|hist|segment_reduce|ctc_loss|lengths|ldl_solve|quantile|unpool|_unique|pack"
    r"|embedding_bag"
)


def _applies(group: BaseGroup) -> bool:
    """One dtype of each operator that gives the same result at every call."""
    main = next((dtype for dtype in MAIN_DTYPES if dtype in group.dtypes), group.dtypes[0])
    return group.key.dtype == main and is_repeated(group.key.operator, of_schema=group.key.source == "schema")


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """One case for each way; between the calls is one that differs in its shapes or kind, where there is one.

    Threads and many calls are for overloads alone: an OpInfo's operator calls them.
    """
    if not cases:
        return
    chosen = [plain(case) for case in cases]
    case, between = chosen[0], chosen[-1]
    first = (case.args, case.kwargs)
    other = other_values(case, keep_order=ORDERED.search(group.key.operator) is not None)
    copies = isinstance(case.call, SchemaCall) and changes_arguments(case.call.__name__)
    ways = (WithOtherValues, FromTwoThreads, ManyTimes) if isinstance(case.call, SchemaCall) else (WithOtherValues,)
    for way in ways:
        call = way(case.call, copies=copies)
        args, title = (first, other, (between.args, between.kwargs)), call.__name__
        yield replace(case, call=call, args=args, kwargs={}, form=title, title=title)


# A call of each operator, in one dtype, repeated in the ways above.
REPETITION_FACTOR = Factor(
    "repetition",
    _variations,
    _applies,
    choose=lambda group, cases: distinct(filter(_is_repeatable, cases), 2),
    quick=QuickShare.NONE,
)


def is_repeated(operator: str, *, of_schema: bool) -> bool:
    """Whether an operator gives the same result at every call, and of overloads whether it has its own kernel."""
    if not of_schema:
        return not draws_numbers(operator)
    name = full_name(operator)
    if UNCHECKED_OPERATORS.search(operator) or draws(overload_of(name)):
        return False
    return runs_a_kernel(name)


def changes_arguments(name: str) -> bool:
    """Whether an overload changes arguments: batch norm does so to its statistics, which its schema does not say."""
    return bool(written_arguments(name)) or "batch_norm" in name


def plain(case: Case) -> Case:
    """The case without gradients, its devices as torch has them, so that they follow the tensors."""

    def device(leaf: Any) -> Any:
        return torch.device("cpu") if leaf == "cpu" and isinstance(leaf, str) else leaf

    kwargs = map_leaves(device, detached(case.kwargs))
    return replace(case, args=detached(case.args), kwargs=kwargs, differentiable=False, elementwise=False)


def other_values(case: Case, *, keep_order: bool) -> Inputs:
    """The call with other values in tensors of the same shapes and dtypes, as the CPU takes it; else the call itself.

    Floating values are made smaller by a quarter, which keeps what is positive, sorted or well conditioned so; and all
    are put into the reverse order, unless their order means something.
    """
    for reverse in (False,) if keep_order else (True, False):
        args, kwargs = map_leaves(partial(_other, reverse=reverse), (case.args, case.kwargs))
        if accepts(replace(case, args=args, kwargs=kwargs)):
            return args, kwargs
    return case.args, case.kwargs


def _other(leaf: Any, *, reverse: bool) -> Any:
    if not isinstance(leaf, Tensor) or leaf.layout is not torch.strided or str(leaf.dtype)[6:] not in DTYPES:
        return leaf
    floating = leaf.is_floating_point() or leaf.is_complex()
    values = leaf.flatten().flip(0).reshape(leaf.shape) if reverse else leaf
    return (values * 0.75).to(leaf.dtype) if floating else values.clone()


class _Repetition:
    """Calls an operator more than once.

    Args:
        operator: what is called.
        copies: whether it writes into its arguments: then each call gets its own tensors.
    """

    def __init__(self, operator: Call, *, copies: bool) -> None:
        self._operator = operator
        self._copies = copies

    def _run(self, inputs: Inputs) -> Any:
        args, kwargs = copied(inputs) if self._copies else inputs
        return self._operator(*args, **kwargs)


class WithOtherValues(_Repetition):
    """Calls in a row: other values, another shape, tensors changed in place, and tensors in memory just freed."""

    __name__ = "with other values"

    def __call__(self, first: Inputs, other: Inputs, between: Inputs) -> list[Any]:
        """All results, in the order of the calls."""
        results = [self._run(inputs) for inputs in (first, other, between, first)]
        changed = copied(first)
        results.append(self._run(changed))
        if not self._copies and _change(changed, other):
            results.append(self._run(changed))
        del changed
        results.append(self._run(copied(other)))
        return results


class FromTwoThreads(_Repetition):
    """Many calls from two threads at the same time, each with its own inputs, on the device only.

    Returns one result for each input, and a text that says whether each thread always got its own.
    """

    __name__ = "from two threads"

    def __call__(self, first: Inputs, other: Inputs, between: Inputs) -> list[Any]:
        """See the class."""
        expected = [self._run(inputs) for inputs in (first, other)]
        if not on_device((first, other)):
            return [expected, [SAME, SAME]]
        calls_made = [0, 0]
        both_are_there = Barrier(2)  # on a busy machine the first could be through before the other begins

        def keep_calling(thread: int, calls: int) -> bool:
            calls_made[thread] = calls
            return min(calls_made) < CALLS_OF_A_THREAD and calls < MOST_CALLS_OF_A_THREAD

        def repeat(thread: int, inputs: Inputs) -> str:
            both_are_there.wait()
            try:
                with switching_threads():
                    return repeated(lambda: self._run(inputs), expected[thread], partial(keep_calling, thread))
            finally:
                calls_made[thread] = CALLS_OF_A_THREAD  # the other one need not wait for more

        with ThreadPoolExecutor(2) as threads:
            running = [threads.submit(repeat, thread, inputs) for thread, inputs in enumerate((first, other))]
            return [expected, [thread.result() for thread in running]]


class ManyTimes(_Repetition):
    """The same call 200 times, only on the device: shows a failure of one call in a hundred."""

    __name__ = "200 times"

    def __call__(self, first: Inputs, other: Inputs, between: Inputs) -> list[Any]:
        """The first result, and in words whether the others are like it."""
        own = self._run(first)
        if not on_device(first):
            return [own, SAME]
        return [own, repeated(lambda: self._run(first), own, lambda calls: calls < REPETITIONS)]


def repeated(call: Callable[[], Any], own: Any, keep_calling: Callable[[int], bool]) -> str:
    """Whether calls all give what the first one gave; `keep_calling` says after how many of them there is one more."""
    expected = on_host(own)
    calls = 0
    while keep_calling(calls):
        if not all(map(_alike, on_host(call()), expected)):
            return "a later call gives another result"
        calls += 1
    return SAME


def on_host(result: Any) -> list[Any]:
    """The leaves of a result, their tensors on the CPU."""
    return [leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf for leaf in leaves(result)]


def _alike(actual: Any, expected: Any) -> bool:
    """Whether two results of one call are the same but for the order in which a device may add."""
    if not isinstance(expected, Tensor):
        return bool(actual == expected)
    if actual.shape != expected.shape or actual.dtype is not expected.dtype:
        return False
    if expected.dtype is torch.complex32:  # torch cannot compare them
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if same_bits(actual, expected):
        return True
    if not (expected.is_floating_point() or expected.is_complex()):
        return False
    largest = float(expected.abs().nan_to_num(posinf=0.0).max())
    return torch.allclose(actual, expected, rtol=1e-2, atol=1e-3 * largest, equal_nan=True)


@contextmanager
def switching_threads() -> Iterator[None]:
    """Kernels written in Python let the other thread go on at each of their lines, where a race would need it.

    By itself Python lets a thread run on for milliseconds, and what it does in between is over by then.
    """
    before = sys.gettrace()
    sys.settrace(_switch_threads)
    try:
        yield
    finally:
        sys.settrace(before)


def _switch_threads(frame: FrameType, event: str, argument: Any) -> Any:
    if not _may_be_a_kernel(frame.f_code.co_filename):
        return None
    if event == "line":
        time.sleep(1e-6)
    return _switch_threads


@cache
def _may_be_a_kernel(file: str) -> bool:
    of_python = file.startswith(STANDARD_LIBRARY) and INSTALLED not in file
    return not of_python and not file.startswith(NO_KERNELS)


def on_device(tree: Any) -> bool:
    """Whether any input is on another device than the CPU, whose results are the reference."""
    return any(isinstance(leaf, Tensor | torch.device) and _type_of(leaf) != "cpu" for leaf in leaves(tree))


def _type_of(leaf: Tensor | torch.device) -> str:
    return leaf.device.type if isinstance(leaf, Tensor) else leaf.type


def _change(target: Inputs, source: Inputs) -> bool:
    """Put the values of one call's tensors into another's; says whether there is a tensor to change."""
    changed = False
    for mine, other in zip(leaves(target), leaves(source), strict=True):
        if isinstance(mine, Tensor) and mine.layout is torch.strided and not mine.is_quantized:
            mine.copy_(other)
            changed = True
    return changed


def _is_repeatable(case: Case) -> bool:
    """Whether the case is small, defined, has a tensor, and none that stays on the CPU."""
    sizes = [tensor.numel() for tensor in tensors_of(case)]
    return bool(sizes) and max(sizes) <= LARGEST and not case.uninitialised and not case.on_host and accepts(case)
