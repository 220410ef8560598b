"""What a faulty kernel does: to its results, its arguments, the memory around them, or its process."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .call import Call, device_tensors, host, host_view, map_tensors, on_device, share_memory

Corruption = Callable[..., Any]
CORRUPTIONS: dict[str, Corruption] = {}


def corruption(function: Corruption) -> Corruption:
    """Give a corruption its word: the function's name without a last underscore."""
    CORRUPTIONS[function.__name__.rstrip("_")] = function
    return function


# ---- the values of the results


@corruption
def values(call: Call) -> Any:
    """Every element of every result is wrong."""
    return _changed(call, _off)


@corruption
def second_result(call: Call) -> Any:
    """Every element of the last result is wrong, and the others are right."""
    returned = call.run()
    for result in call.results(returned)[-1:]:
        _off(host(result))
    return returned


@corruption
def last_element(call: Call) -> Any:
    """The last element of the first result is wrong."""
    return _changed(call, _off_last)


@corruption
def nan_result(call: Call) -> Any:
    """The last element of each result is NaN."""

    def spoiled(result: Tensor) -> None:
        if result.is_floating_point():
            result[tuple(size - 1 for size in result.shape)] = math.nan
        else:
            _off(result)

    return _changed(call, spoiled)


@corruption
def all_nan(call: Call) -> Any:
    """All results are NaN; integers zero."""
    return _changed(call, lambda result: result.fill_(math.nan if result.dtype.is_floating_point else 0))


@corruption
def zeros(call: Call) -> Any:
    """All results are zero."""
    return _changed(call, lambda result: result.zero_())


@corruption
def second_half(call: Call) -> Any:
    """What a kernel leaves that stops half-way: the rest of the result is zero, or what a written argument had."""
    before = {name: [host(t).clone() for t in call.tensors(name)] for name in call.written}
    returned = call.run()
    restored = {id(t): old for name in before for t, old in zip(call.tensors(name), before[name], strict=True)}
    for result in call.results(returned):
        flat = host(result)
        old = restored.get(id(result))
        positions = torch.arange(result.numel()).view(result.shape) >= (result.numel() + 1) // 2
        flat[positions] = old[positions] if old is not None and old.shape == flat.shape else 0
    return returned


@corruption
def near(call: Call, relative: float, absolute: float) -> Any:
    """One element is off by so much of it, and so much more."""

    def off(result: Tensor) -> None:
        if result.numel() and result.is_floating_point():
            index = tuple(size - 1 for size in result.shape)
            result[index] += result[index].abs() * relative + absolute

    return _changed(call, off)


@corruption
def nan_lost(call: Call) -> Any:
    """NaN in a result is zero."""
    return _changed(call, lambda result: result.nan_to_num_(nan=0.0, posinf=math.inf, neginf=-math.inf))


@corruption
def infinity_lost(call: Call) -> Any:
    """An infinity in a result is the largest finite number."""
    return _changed(call, lambda result: result.nan_to_num_(nan=math.nan))


@corruption
def infinity_to_nan(call: Call) -> Any:
    """An infinity in a result is NaN."""

    def spoiled(result: Tensor) -> None:
        if result.is_floating_point():
            result[result.isinf()] = math.nan

    return _changed(call, spoiled)


@corruption
def sign_of_zero_lost(call: Call) -> Any:
    """A negative zero in a result is a positive one."""

    def positive(result: Tensor) -> None:
        if result.is_floating_point():
            result[result == 0] = 0.0

    return _changed(call, positive)


@corruption
def quantised_near_zero(call: Call) -> Any:
    """Small results have an absolute error where they should have a relative one, as log(1+x) has for small x."""

    def coarse(result: Tensor) -> None:
        if result.is_floating_point():
            step = torch.finfo(result.dtype).eps
            small = result.abs() < 1
            result[small] = (result[small].double() / step).round().to(result.dtype) * step

    return _changed(call, coarse)


@corruption
def saturated(call: Call) -> Any:
    """Integers that should wrap stop at the ends of their dtype."""
    kinds = {torch.uint8: torch.int32, torch.int8: torch.int32, torch.int16: torch.int32, torch.int32: torch.int64}
    wide = map_arguments(call, lambda t: on_device(host(t).to(kinds[t.dtype])) if t.dtype in kinds else t)
    right, widened = call.run(), None
    try:
        widened = call.run(wide)
    except RuntimeError:
        return right
    for result, wider in zip(call.results(right), device_tensors([widened]), strict=False):
        if result.dtype in kinds and result.shape == wider.shape:
            limits = torch.iinfo(result.dtype)
            host(result).copy_(host(wider).clamp(limits.min, limits.max))
    return right


# ---- what the kernel makes of its arguments


@corruption
def ignores(call: Call, name: str) -> Any:
    """An argument counts as not given: as its default, or as None."""
    listed = next(a for a in call.overload._schema.arguments if a.name == name)
    return call.run({name: listed.default_value})


@corruption
def takes(call: Call, name: str, value: Any) -> Any:
    """An argument counts as this value, whatever it is."""
    return call.run({name: value})


@corruption
def truncates(call: Call, name: str) -> Any:
    """A number counts as the integer below it."""
    return call.run({name: float(math.floor(call.arguments[name]))})


@corruption
def positive(call: Call, name: str) -> Any:
    """A negative number, or one of a list, counts as its absolute value less one."""
    value = call.arguments[name]
    changed = [abs(v) - 1 if v < 0 else v for v in value] if isinstance(value, (list, tuple)) else abs(value) - 1
    return call.run({name: changed})


@corruption
def previous_number(call: Call, name: str) -> Any:
    """A number counts as that of the call before: the kernel was built for it.

    Goes with the condition near_previous.
    """
    return call.run({name: call.memory.cached.get(name, call.arguments[name])})


@corruption
def nan_as_zero(call: Call, name: str) -> Any:
    """NaN in an argument counts as zero."""
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clone().nan_to_num_(0, math.inf, -math.inf))))


@corruption
def reads_as_contiguous(call: Call, name: str) -> Any:
    """An argument is read as if its elements lay one behind the other."""
    return call.run(map_argument(call, name, _misread))


@corruption
def ignores_offset(call: Call, name: str) -> Any:
    """An argument is read from the beginning of its storage."""
    return call.run(map_argument(call, name, lambda t: on_device(host_view(t, t.size(), t.stride(), 0).clone())))


@corruption
def ignores_conjugation(call: Call, name: str) -> Any:
    """A conjugate or negative view counts as what it is a view of."""

    def plain(tensor: Tensor) -> Tensor:
        values = host(tensor)
        values = values.conj() if tensor.is_conj() else values
        return on_device((torch._neg_view(values) if tensor.is_neg() else values).resolve_conj().resolve_neg().clone())

    return call.run(map_argument(call, name, plain))


@corruption
def through_float32(call: Call, name: str) -> Any:
    """Integers go through float32, which has 24 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float32)))


@corruption
def through_float64(call: Call, name: str) -> Any:
    """Integers go through float64, which has 53 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float64)))


@corruption
def through_int32(call: Call, name: str) -> Any:
    """Integers keep their lower 32 bits."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.int32)))


@corruption
def through_half(call: Call, name: str) -> Any:
    """Floating numbers go through float16."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float16) if t.is_floating_point() else t))


@corruption
def only_first(call: Call, name: str, elements: int) -> Any:
    """Along its longest dimension only so many elements of an argument count; zero stands for the others."""

    def shortened(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        longest = max(range(copy.dim()), key=copy.size)
        copy.narrow(longest, elements, max(0, copy.size(longest) - elements)).zero_()
        return on_device(copy)

    return call.run(map_argument(call, name, lambda t: shortened(t) if max(t.size(), default=0) > elements else t))


@corruption
def ignores_last(call: Call, name: str) -> Any:
    """The last element of an argument counts as zero."""

    def without(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        if copy.numel():
            copy[tuple(size - 1 for size in copy.shape)] = 0
        return on_device(copy)

    return call.run(map_argument(call, name, without))


@corruption
def clamps(call: Call, name: str, bounding: str) -> Any:
    """Indices out of range count as the last one: nothing is raised."""
    smallest = min((min(t.size(), default=1) for t in call.tensors(bounding)), default=1)
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clamp(0, max(0, smallest - 1)))))


# ---- what it writes, and where


@corruption
def unwritten(call: Call, name: str) -> Any:
    """An argument that should be written stays as it was."""
    before = [host(t).clone() for t in call.tensors(name)]
    returned = call.run()
    for tensor, old in zip(call.tensors(name), before, strict=True):
        if tensor.shape == old.shape:
            host(tensor).copy_(old)
    return returned


@corruption
def changes_input(call: Call) -> Any:
    """The first element of an argument that is no result is changed."""
    returned = call.run()
    outputs = [*call.results(returned), *(t for name in call.written for t in call.tensors(name))]
    for tensor in call.tensors():
        if tensor.numel() and not any(share_memory(tensor, output) for output in outputs):
            _off(host(tensor)[(slice(0, 1),) * tensor.dim()])
            break
    return returned


@corruption
def writes_outside(call: Call) -> Any:
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
def freed(call: Call) -> Any:
    """A result's memory is somebody else's at the next call."""
    for storage in call.memory.kept:
        ctypes.memset(storage.data_ptr(), 0xFF, storage.nbytes())
    call.memory.kept.clear()
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def leaks(call: Call) -> Any:
    """A result's memory is never freed."""
    returned = call.run()
    call.memory.kept.extend(t.untyped_storage() for t in _fresh(call, returned)[:1])
    return returned


@corruption
def cached(call: Call) -> Any:
    """Arguments of the same sizes give the result that those of the first call gave."""
    key = repr([(t.size(), t.dtype) for t in call.tensors()])
    returned = call.run()
    results = call.results(returned)
    kept = call.memory.cached.setdefault(key, [host(t).clone() for t in results])
    for result, old in zip(results, kept, strict=False):
        if result.shape == old.shape and result.dtype is old.dtype:
            host(result).copy_(old)
    return returned


# ---- what the results are


@corruption
def wrong_shape(call: Call) -> Any:
    """The first result has one dimension more, of size one."""
    return _replaced(call, lambda t: host(t).clone().unsqueeze(0))


@corruption
def squeezed(call: Call) -> Any:
    """The results lack their dimensions of size one."""
    return _replaced(call, lambda t: host(t).clone().squeeze())


@corruption
def wrong_dtype(call: Call) -> Any:
    """The first result is of another dtype."""
    return _replaced(call, lambda t: host(t).to(torch.float16 if t.dtype is torch.float32 else torch.float32))


@corruption
def wrong_stride(call: Call) -> Any:
    """The first result has the right values at other strides."""
    return _replaced(call, _with_other_strides)


@corruption
def copies(call: Call) -> Any:
    """A view is a copy."""
    return map_tensors(lambda t: on_device(host(t).clone()), call.run())


@corruption
def aliases(call: Call) -> Any:
    """A result lies in the memory of an argument."""
    returned = call.run()
    if isinstance(returned, Tensor):
        for tensor in call.tensors():
            fits = tensor.is_contiguous() and tensor.dtype is returned.dtype and tensor.numel() == returned.numel()
            if fits and not share_memory(tensor, returned):
                there: Tensor = tensor.detach().view(returned.shape)
                host(there).copy_(host(returned))
                return there
    return returned


# ---- errors and ends


@corruption
def raises(call: Call) -> Any:
    """An error where there is none."""
    raise RuntimeError("the kernel failed")


@corruption
def other_error(call: Call) -> Any:
    """An error of another type."""
    try:
        return call.run()
    except ValueError as error:
        raise TypeError(str(error)) from None
    except (RuntimeError, IndexError) as error:
        raise ValueError(str(error)) from None


@corruption
def on_cpu(call: Call) -> Any:
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
def aborts(call: Call) -> Any:
    """The process aborts."""
    os.abort()


@corruption
def segfaults(call: Call) -> Any:
    """The process reads memory that it has not."""
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()


@corruption
def hangs(call: Call) -> Any:
    """The call never ends; where the process has a limit of time, it is near."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, 0.2)
    while True:
        pass


# ---- random numbers


@corruption
def own_seed(call: Call) -> Any:
    """Draws from a sequence of its own, whatever the seed."""
    return _seeded(call, call.memory.calls)


@corruption
def same_draws(call: Call) -> Any:
    """Draws the same numbers at every call."""
    return _seeded(call, 0)


@corruption
def larger_of_two(call: Call) -> Any:
    """Gives the larger of two draws."""
    first = call.run()
    kept = [host(t).clone() for t in call.results(first)]
    returned = call.run()
    for result, old in zip(call.results(returned), kept, strict=True):
        if not result.is_complex() and result.dtype is not torch.bool:
            host(result).copy_(host(result).maximum(old))
    return returned


@corruption
def scaled(call: Call, factor: float) -> Any:
    """The results are so many times what they should be."""
    return _changed(call, lambda result: result.mul_(factor) if result.is_floating_point() else _off(result))


# ---- in common


def map_argument(call: Call, name: str, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """One argument with its tensors changed."""
    return {name: map_tensors(change, call.arguments[name])}


def map_arguments(call: Call, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """All arguments with their tensors changed."""
    return {name: map_tensors(change, value) for name, value in call.arguments.items()}


def _changed(call: Call, change: Callable[[Tensor], Any]) -> Any:
    returned = call.run()
    for result in call.results(returned):
        if result.numel():
            change(host(result))
    return returned


def _replaced(call: Call, make: Callable[[Tensor], Tensor]) -> Any:
    """The first tensor that is returned replaced by another."""
    returned = call.run()
    if isinstance(returned, Tensor):
        return on_device(make(returned))
    if isinstance(returned, (list, tuple)) and returned and isinstance(returned[0], Tensor):
        return type(returned)([on_device(make(returned[0])), *returned[1:]])
    return returned


def _off(result: Tensor) -> None:
    """Every element another: booleans and bytes flipped, numbers one more, or half as much again where that is more."""
    if result.dtype is torch.bool:
        result.logical_not_()
    elif result.is_floating_point() or result.is_complex():
        result.copy_(torch.where(result.isfinite(), result + result.abs() / 2 + 1, torch.zeros_like(result)))
    else:
        result.add_(1)


def _off_last(result: Tensor) -> None:
    _off(result[tuple(slice(size - 1, size) for size in result.shape)])


def _misread(tensor: Tensor) -> Tensor:
    """The values that contiguous strides find in the tensor's storage; what lies behind its end counts as zero."""
    copy = torch.zeros(tensor.size(), dtype=tensor.dtype, device="cpu")
    storage = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    there = min(storage, tensor.numel())
    copy.view(-1)[:there] = host_view(tensor, (there,), (1,), int(tensor.storage_offset()))
    return on_device(copy)


def _through(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return on_device(host(tensor).to(dtype).to(tensor.dtype))


def _fresh(call: Call, returned: Any) -> list[Tensor]:
    results = device_tensors([returned])
    return [t for t in results if not any(share_memory(t, argument) for argument in call.tensors())]


def _with_other_strides(tensor: Tensor) -> Tensor:
    """The first dimension is the dense one, with a gap between the others."""
    strides, step = [], 1
    for size in tensor.size():
        strides.append(step)
        step *= size + 1
    if tensor.dim() == 1:
        strides = [2]
    other = torch.empty_strided(tuple(tensor.size()), strides, dtype=tensor.dtype, device="cpu")
    other.copy_(host(tensor))
    return other


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _seeded(call: Call, seed: int) -> Any:
    """The call with the numbers that a seed gives; the generator that the caller seeded goes on where it was."""
    given = call.arguments.get("generator")
    generator = given if given is not None else torch.mps._get_default_mps_generator()
    before = generator.get_state()
    generator.manual_seed(seed)
    returned = call.run()
    generator.set_state(before)
    return returned
