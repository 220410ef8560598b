"""Corruptions beside the results: what is written and where, memory, errors, the process, random sequences."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, device_tensors, host, on_device, share_memory
from .corruption import changed_results, corruption, map_arguments, spoil

# ---- what is written, and where


@corruption
def unwritten(call: FaultyCall, name: str) -> Any:
    """An argument that should be written stays as it was."""
    before = [host(t).clone() for t in call.tensors(name)]
    returned = call.run()
    for tensor, old in zip(call.tensors(name), before, strict=True):
        if tensor.shape == old.shape:
            host(tensor).copy_(old)
    return returned


@corruption
def changes_input(call: FaultyCall) -> Any:
    """The first element of an argument that is not a result is changed."""
    returned = call.run()
    outputs = [*call.results(returned), *(t for name in call.written for t in call.tensors(name))]
    for tensor in call.tensors():
        if tensor.numel() and not any(share_memory(tensor, output) for output in outputs):
            spoil(host(tensor)[(slice(0, 1),) * tensor.dim()])
            break
    return returned


@corruption
def writes_outside(call: FaultyCall) -> Any:
    """The byte behind each result is flipped, where its storage goes on."""
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
    """A result's memory is somebody else's at the next call."""
    for storage in call.memory.kept:
        ctypes.memset(storage.data_ptr(), 0xFF, storage.nbytes())
    call.memory.kept.clear()
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def leaks(call: FaultyCall) -> Any:
    """A result's memory is never freed."""
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def cached(call: FaultyCall) -> Any:
    """Arguments of the same sizes give the result that those of the first call gave."""
    key = repr([(t.size(), t.dtype) for t in call.tensors()])
    returned = call.run()
    results = call.results(returned)
    kept = call.memory.cached.setdefault(key, [host(t).clone() for t in results])
    for result, old in zip(results, kept, strict=False):
        if result.shape == old.shape and result.dtype is old.dtype:
            host(result).copy_(old)
    return returned


# ---- errors and ends


@corruption
def raises(call: FaultyCall) -> Any:
    """An error where there is none."""
    raise RuntimeError("the kernel failed")


@corruption
def other_error(call: FaultyCall) -> Any:
    """An error of another type."""
    try:
        return call.run()
    except ValueError as error:
        raise TypeError(str(error)) from None
    except (RuntimeError, IndexError) as error:
        raise ValueError(str(error)) from None


@corruption
def on_cpu(call: FaultyCall) -> Any:
    """Runs on the CPU, without a warning and uncounted."""
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
    """The process aborts."""
    os.abort()


@corruption
def segfaults(call: FaultyCall) -> Any:
    """The process reads memory that it has not."""
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()


@corruption
def hangs(call: FaultyCall) -> Any:
    """The call never ends; where the process has a limit of time, it is near."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, 0.2)
    while True:
        pass


# ---- random numbers


@corruption
def own_seed(call: FaultyCall) -> Any:
    """Draws from a separate sequence, whatever the seed."""
    return _seeded(call, call.memory.calls)


@corruption
def same_draws(call: FaultyCall) -> Any:
    """Draws the same numbers at every call."""
    return _seeded(call, 0)


@corruption
def larger_of_two(call: FaultyCall) -> Any:
    """Gives the larger of two draws."""
    first = call.run()
    kept = [host(t).clone() for t in call.results(first)]
    returned = call.run()
    for result, old in zip(call.results(returned), kept, strict=True):
        if not result.is_complex() and result.dtype is not torch.bool:
            host(result).copy_(host(result).maximum(old))
    return returned


@corruption
def scaled(call: FaultyCall, factor: float) -> Any:
    """The results are so many times what they should be."""
    return changed_results(call, lambda result: result.mul_(factor) if result.is_floating_point() else spoil(result))


# ---- in common


def _fresh(call: FaultyCall, returned: Any) -> list[Tensor]:
    results = device_tensors([returned])
    return [t for t in results if not any(share_memory(t, argument) for argument in call.tensors())]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _seeded(call: FaultyCall, seed: int) -> Any:
    """The call with the numbers that a seed gives; the generator that the caller seeded goes on where it was."""
    given = call.arguments.get("generator")
    generator = given if given is not None else torch.mps._get_default_mps_generator()
    before = generator.get_state()
    generator.manual_seed(seed)
    returned = call.run()
    generator.set_state(before)
    return returned
