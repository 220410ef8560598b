"""Corruptions other than wrong results: written arguments, memory, errors, the process, random sequences."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, device_tensors, host, on_device, share_memory
from .corruption import changed_results, corrupt, corruption, map_arguments

# ---- writes and memory


@corruption
def unwritten(call: FaultyCall, name: str) -> Any:
    """Leave an argument unchanged that should be written."""
    before = [host(t).clone() for t in call.tensors(name)]
    returned = call.run()
    for tensor, old in zip(call.tensors(name), before, strict=True):
        if tensor.shape == old.shape:
            host(tensor).copy_(old)
    return returned


@corruption
def changes_input(call: FaultyCall) -> Any:
    """Change the first element of an argument that is not a result."""
    returned = call.run()
    outputs = [*call.results(returned), *(t for name in call.written for t in call.tensors(name))]
    for tensor in call.tensors():
        if tensor.numel() and not any(share_memory(tensor, output) for output in outputs):
            corrupt(host(tensor)[(slice(0, 1),) * tensor.dim()])
            break
    return returned


@corruption
def writes_outside(call: FaultyCall) -> Any:
    """Flip the byte after each result, if its storage has one."""
    returned = call.run()
    for result in call.results(returned):
        storage = result.untyped_storage()
        last = sum((size - 1) * stride for size, stride in zip(result.size(), result.stride(), strict=True))
        end = (int(result.storage_offset()) + int(last) + 1) * result.element_size()
        if result.numel() and end < storage.nbytes():
            byte = ctypes.c_ubyte.from_address(storage.data_ptr() + end)
            byte.value ^= 0xFF
    return returned


@corruption
def freed(call: FaultyCall) -> Any:
    """Overwrite the memory of a result at the next call."""
    for storage in call.memory.kept:
        ctypes.memset(storage.data_ptr(), 0xFF, storage.nbytes())
    call.memory.kept.clear()
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def leaks(call: FaultyCall) -> Any:
    """Never free the memory of a result."""
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def cached(call: FaultyCall) -> Any:
    """Return the result of the first call for all arguments of the same sizes."""
    key = repr([(t.size(), t.dtype) for t in call.tensors()])
    returned = call.run()
    results = call.results(returned)
    kept = call.memory.cached.setdefault(key, [host(t).clone() for t in results])
    for result, old in zip(results, kept, strict=False):
        if result.shape == old.shape and result.dtype is old.dtype:
            host(result).copy_(old)
    return returned


# ---- errors, crashes and hangs


@corruption
def raises(call: FaultyCall) -> Any:
    """Raise an error for a valid call."""
    raise RuntimeError("the kernel failed")


@corruption
def other_error(call: FaultyCall) -> Any:
    """Raise an error of a different type."""
    try:
        return call.run()
    except ValueError as error:
        raise TypeError(str(error)) from None
    except (RuntimeError, IndexError) as error:
        raise ValueError(str(error)) from None


@corruption
def on_cpu(call: FaultyCall) -> Any:
    """Run on the CPU, without a warning and without counting it."""
    originals: list[Tensor] = []

    def there(tensor: Tensor) -> Tensor:
        originals.append(tensor)
        copies: list[Tensor] = torch.ops.aten._to_cpu([tensor])
        return copies[0]

    moved = map_arguments(call, there)
    keywords = {a.name for a in call.overload._schema.arguments if a.kwarg_only}
    positional = [value for name, value in moved.items() if name not in keywords]
    named = {name: torch.device("cpu") if name == "device" else moved[name] for name in keywords}
    returned = call.overload(*positional, **named)
    copies_ = [copy for value in moved.values() for copy in _tensors(value)]
    for original, copy in zip(originals, copies_, strict=False):
        if original.shape == copy.shape and original.dtype is copy.dtype:
            host(original).copy_(copy)
    by_copy = {id(copy): original for original, copy in zip(originals, copies_, strict=False)}

    def back(value: Any) -> Any:
        if isinstance(value, Tensor):
            return by_copy.get(id(value)) if id(value) in by_copy else on_device(value)
        return type(value)(map(back, value)) if isinstance(value, (list, tuple)) else value

    return back(returned)


@corruption
def aborts(call: FaultyCall) -> Any:
    """Abort the process."""
    os.abort()


@corruption
def segfaults(call: FaultyCall) -> Any:
    """Read memory that the process does not have."""
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()


@corruption
def hangs(call: FaultyCall) -> Any:
    """Never return. A time limit of the process is shortened."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, 0.2)
    while True:
        pass


# ---- random numbers


@corruption
def own_seed(call: FaultyCall) -> Any:
    """Draw from a separate sequence, independent of the seed."""
    return _seeded(call, call.memory.calls)


@corruption
def same_draws(call: FaultyCall) -> Any:
    """Draw the same numbers in every call."""
    return _seeded(call, 0)


@corruption
def larger_of_two(call: FaultyCall) -> Any:
    """Return the larger of two draws."""
    first = call.run()
    kept = [host(t).clone() for t in call.results(first)]
    returned = call.run()
    for result, old in zip(call.results(returned), kept, strict=True):
        if not result.is_complex() and result.dtype is not torch.bool:
            host(result).copy_(host(result).maximum(old))
    return returned


@corruption
def scaled(call: FaultyCall, factor: float) -> Any:
    """Multiply the results by a factor."""
    return changed_results(call, lambda result: result.mul_(factor) if result.is_floating_point() else corrupt(result))


# ---- shared by corruptions


def _fresh(call: FaultyCall, returned: Any) -> list[Tensor]:
    results = device_tensors([returned])
    return [t for t in results if not any(share_memory(t, argument) for argument in call.tensors())]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _seeded(call: FaultyCall, seed: int) -> Any:
    """Run the call with a seed; the state of the caller's generator does not change."""
    given = call.arguments.get("generator")
    generator = given if given is not None else torch.mps._get_default_mps_generator()
    before = generator.get_state()
    generator.manual_seed(seed)
    returned = call.run()
    generator.set_state(before)
    return returned
