"""Corruptions of what a kernel gives: the values of its results, their shapes, dtypes, strides and memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, device_tensors, host, map_tensors, on_device, share_memory
from .corruption import changed_results, corruption, map_arguments, replaced_result, spoil, spoil_last

# ---- values


@corruption
def values(call: FaultyCall) -> Any:
    """Every element of every result is wrong."""
    return changed_results(call, spoil)


@corruption
def second_result(call: FaultyCall) -> Any:
    """Every element of the last result is wrong, and the others are right."""
    returned = call.run()
    for result in call.results(returned)[-1:]:
        spoil(host(result))
    return returned


@corruption
def last_element(call: FaultyCall) -> Any:
    """The last element of the first result is wrong."""
    return changed_results(call, spoil_last)


@corruption
def nan_result(call: FaultyCall) -> Any:
    """The last element of each result is NaN."""

    def spoiled(result: Tensor) -> None:
        if result.is_floating_point():
            result[tuple(size - 1 for size in result.shape)] = math.nan
        else:
            spoil(result)

    return changed_results(call, spoiled)


@corruption
def all_nan(call: FaultyCall) -> Any:
    """All results are NaN; integers zero."""
    return changed_results(call, lambda result: result.fill_(math.nan if result.dtype.is_floating_point else 0))


@corruption
def zeros(call: FaultyCall) -> Any:
    """All results are zero."""
    return changed_results(call, lambda result: result.zero_())


@corruption
def second_half(call: FaultyCall) -> Any:
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
def near(call: FaultyCall, relative: float, absolute: float) -> Any:
    """One element is off by so much of it, and so much more."""

    def off(result: Tensor) -> None:
        if result.numel() and result.is_floating_point():
            index = tuple(size - 1 for size in result.shape)
            result[index] += result[index].abs() * relative + absolute

    return changed_results(call, off)


@corruption
def nan_lost(call: FaultyCall) -> Any:
    """NaN in a result is zero."""
    return changed_results(call, lambda result: result.nan_to_num_(nan=0.0, posinf=math.inf, neginf=-math.inf))


@corruption
def infinity_lost(call: FaultyCall) -> Any:
    """An infinity in a result is the largest finite number."""
    return changed_results(call, lambda result: result.nan_to_num_(nan=math.nan))


@corruption
def infinity_to_nan(call: FaultyCall) -> Any:
    """An infinity in a result is NaN."""

    def spoiled(result: Tensor) -> None:
        if result.is_floating_point():
            result[result.isinf()] = math.nan

    return changed_results(call, spoiled)


@corruption
def sign_of_zero_lost(call: FaultyCall) -> Any:
    """A negative zero in a result is a positive one."""

    def positive(result: Tensor) -> None:
        if result.is_floating_point():
            result[result == 0] = 0.0

    return changed_results(call, positive)


@corruption
def quantised_near_zero(call: FaultyCall) -> Any:
    """Small results have an absolute error where they should have a relative one, as log(1+x) has for small x."""

    def coarse(result: Tensor) -> None:
        if result.is_floating_point():
            step = torch.finfo(result.dtype).eps
            small = result.abs() < 1
            result[small] = (result[small].double() / step).round().to(result.dtype) * step

    return changed_results(call, coarse)


@corruption
def saturated(call: FaultyCall) -> Any:
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


# ---- what they are


@corruption
def wrong_shape(call: FaultyCall) -> Any:
    """The first result has one dimension more, of size one."""
    return replaced_result(call, lambda t: host(t).clone().unsqueeze(0))


@corruption
def squeezed(call: FaultyCall) -> Any:
    """The results lack their dimensions of size one."""
    return replaced_result(call, lambda t: host(t).clone().squeeze())


@corruption
def wrong_dtype(call: FaultyCall) -> Any:
    """The first result is of another dtype."""
    return replaced_result(call, lambda t: host(t).to(torch.float16 if t.dtype is torch.float32 else torch.float32))


@corruption
def wrong_stride(call: FaultyCall) -> Any:
    """The first result has the right values at other strides."""
    return replaced_result(call, _with_other_strides)


@corruption
def copies(call: FaultyCall) -> Any:
    """A view is a copy."""
    return map_tensors(lambda t: on_device(host(t).clone()), call.run())


@corruption
def aliases(call: FaultyCall) -> Any:
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
