"""Verifies calls: two processes with different contents of fresh memory must get the same result.

An operator that does not check its arguments may read uninitialised memory or write outside its tensors. So each call
runs in two processes. Each fills fresh memory with another byte. In one of them the C library also checks the heap and
ends the process if memory was overwritten.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

Call = dict[str, Any]
# What a call gave: a flat description of its results, or the text of its error.
Answer = list[Any] | str

# Environment of the process with the checked heap: glibc's and macOS's names, each ignored by the other.
CHECKED_HEAP = {
    "LD_PRELOAD": "libc_malloc_debug.so.0",
    "MALLOC_CHECK_": "3",
    "MALLOC_PERTURB_": "128",  # fresh bytes are 0x7f: 3.4e38 as float32
    "MallocPreScribble": "1",
    "MallocScribble": "1",
    "MallocCheckHeapEach": "100",
}
M_PERTURB = -6  # of mallopt(3)
PERTURBED_WITH = 0x3C  # fresh bytes are 0xc3: -391 as float32
LARGEST_COMPARED = 4096
RELATIVE, ABSOLUTE = 1e-2, 1e-4

_environment = threading.Lock()


class _PlainProcess(SpawnProcess):
    """A process that starts only while no other process changes the environment."""

    def start(self) -> None:
        with _environment:
            super().start()


class _CheckedProcess(SpawnProcess):
    """A process whose heap is checked, if this system can."""

    def start(self) -> None:
        with _environment, _variables(CHECKED_HEAP if _has_checked_heap() else {}):
            super().start()


class PlainContext(SpawnContext):
    """Makes ordinary processes."""

    Process = _PlainProcess


class CheckedContext(SpawnContext):
    """Makes processes whose C library checks the heap."""

    Process = _CheckedProcess


@contextmanager
def _variables(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _has_checked_heap() -> bool:
    """Whether glibc's debugging library can be loaded. Preloading a missing one makes the linker print an error."""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL(CHECKED_HEAP["LD_PRELOAD"])
    except OSError:
        return False
    return True


def fill_fresh_memory() -> None:
    """Make malloc fill the memory that it returns, if the C library can; a checked heap ignores this."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_PERTURB, PERTURBED_WITH)


def answers(name: str, calls: Sequence[tuple[int, str | None]], given: Sequence[Call], log: int) -> list[Answer]:
    """In a worker: the CPU's answer to each call, given by its position in `given` and the dtype that replaces its own.

    Args:
        log: a file descriptor to which a byte is written before each call, so that the parent knows which one ended
            the process.
    """
    import torch

    from ....errors import one_line
    from ...model.case import seed_generators
    from ..calls.invocation import SchemaCall, arguments_of

    call = SchemaCall(name)
    given_answers: list[Answer] = []
    for position, dtype in calls:
        os.write(log, b".")
        try:
            seed_generators(0, f"{name}:{position}")
            args, kwargs = arguments_of(given[position], dtype)
            torch.manual_seed(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given_answers.append(described(call(*args, **kwargs)))
        except Exception as error:
            given_answers.append(one_line(error, 160))
    return given_answers


def described(tree: Any) -> list[Any]:
    """Type, shape and the first elements of every result."""
    import torch

    from ...model.nested import leaves

    lines: list[Any] = []
    for leaf in leaves(tree):
        if not isinstance(leaf, torch.Tensor):
            lines.append(leaf if isinstance(leaf, (bool, int, float, str, type(None))) else str(leaf))
            continue
        lines.append(f"{leaf.dtype} {tuple(leaf.shape)} {leaf.layout}")
        lines.extend(_elements(leaf.detach()))
    return lines


def _elements(tensor: Any) -> list[Any]:
    import torch

    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    values = tensor.resolve_conj().resolve_neg().flatten()[:LARGEST_COMPARED]
    if values.is_complex():
        values = torch.view_as_real(values.to(torch.complex128)).flatten()
    return values.to(torch.float64).tolist() if values.is_floating_point() else values.tolist()  # type: ignore[no-any-return]


def agree(first: Answer, second: Answer) -> bool:
    """Whether two processes gave the same results up to rounding."""
    if isinstance(first, str) or isinstance(second, str):
        return False
    return len(first) == len(second) and all(map(_same, first, second))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(a == b)


def shapes_agree(first: Answer, second: Answer) -> bool:
    """Whether types and shapes agree: all that can be compared if the result is uninitialised memory."""
    if isinstance(first, str) or isinstance(second, str):
        return False
    return [x for x in first if isinstance(x, str)] == [x for x in second if isinstance(x, str)]
