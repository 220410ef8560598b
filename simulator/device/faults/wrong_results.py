"""Corruptions of results: their values, shapes, dtypes, strides and memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, device_tensors, host, map_tensors, on_device, share_memory
from .corruption import changed_results, corrupt, corrupt_last, corruption, map_arguments, replaced_result

# ---- values


@corruption
def values(call: FaultyCall) -> Any:
    """Make every element of every result wrong."""
    return changed_results(call, corrupt)


@corruption
def second_result(call: FaultyCall) -> Any:
    """Make every element of the last result wrong; the other results are right."""
    returned = call.run()
    for result in call.results(returned)[-1:]:
        corrupt(host(result))
    return returned


@corruption
def last_element(call: FaultyCall) -> Any:
    """Make the last element of the first result wrong."""
    return changed_results(call, corrupt_last)


@corruption
def nan_result(call: FaultyCall) -> Any:
    """Set the last element of each result to NaN."""

    def corrupted(result: Tensor) -> None:
        if result.is_floating_point():
            result[tuple(size - 1 for size in result.shape)] = math.nan
        else:
            corrupt(result)

    return changed_results(call, corrupted)


@corruption
def all_nan(call: FaultyCall) -> Any:
    """Set all results to NaN, integers to zero."""
    return changed_results(call, lambda result: result.fill_(math.nan if result.dtype.is_floating_point else 0))


@corruption
def zeros(call: FaultyCall) -> Any:
    """Set all results to zero."""
    return changed_results(call, lambda result: result.zero_())


@corruption
def second_half(call: FaultyCall) -> Any:
    """Stop half-way: the rest of the result is zero, or unchanged in a written argument."""
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
    """Add an error to one element: a relative part and an absolute part."""

    def off(result: Tensor) -> None:
        if result.numel() and result.is_floating_point():
            index = tuple(size - 1 for size in result.shape)
            result[index] += result[index].abs() * relative + absolute

    return changed_results(call, off)


@corruption
def nan_lost(call: FaultyCall) -> Any:
    """Replace NaN in results by zero."""
    return changed_results(call, lambda result: result.nan_to_num_(nan=0.0, posinf=math.inf, neginf=-math.inf))


@corruption
def infinity_lost(call: FaultyCall) -> Any:
    """Replace infinities in results by the largest finite number."""
    return changed_results(call, lambda result: result.nan_to_num_(nan=math.nan))


@corruption
def infinity_to_nan(call: FaultyCall) -> Any:
    """Replace infinities in results by NaN."""

    def corrupted(result: Tensor) -> None:
        if result.is_floating_point():
            result[result.isinf()] = math.nan

    return changed_results(call, corrupted)


@corruption
def sign_of_zero_lost(call: FaultyCall) -> Any:
    """Replace negative zeros in results by positive ones."""

    def positive(result: Tensor) -> None:
        if result.is_floating_point():
            result[result == 0] = 0.0

    return changed_results(call, positive)


@corruption
def quantised_near_zero(call: FaultyCall) -> Any:
    """Give small results an absolute error instead of a relative one, as log(1+x) does for small x."""

    def coarse(result: Tensor) -> None:
        if result.is_floating_point():
            step = torch.finfo(result.dtype).eps
            small = result.abs() < 1
            result[small] = (result[small].double() / step).round().to(result.dtype) * step

    return changed_results(call, coarse)


@corruption
def saturated(call: FaultyCall) -> Any:
    """Saturate integers that should wrap."""
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


# ---- shape, dtype, strides, memory


@corruption
def wrong_shape(call: FaultyCall) -> Any:
    """Add a dimension of size one to the first result."""
    return replaced_result(call, lambda t: host(t).clone().unsqueeze(0))


@corruption
def squeezed(call: FaultyCall) -> Any:
    """Drop dimensions of size one from the results."""
    return replaced_result(call, lambda t: host(t).clone().squeeze())


@corruption
def wrong_dtype(call: FaultyCall) -> Any:
    """Change the dtype of the first result."""
    return replaced_result(call, lambda t: host(t).to(torch.float16 if t.dtype is torch.float32 else torch.float32))


@corruption
def wrong_stride(call: FaultyCall) -> Any:
    """Change the strides of the first result; its values are right."""
    return replaced_result(call, _with_other_strides)


@corruption
def copies(call: FaultyCall) -> Any:
    """Return a copy instead of a view."""
    return map_tensors(lambda t: on_device(host(t).clone()), call.run())


@corruption
def aliases(call: FaultyCall) -> Any:
    """Return a result in the memory of an argument."""
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
    """A copy whose first dimension is the dense one, with a gap between the others."""
    strides, step = [], 1
    for size in tensor.size():
        strides.append(step)
        step *= size + 1
    if tensor.dim() == 1:
        strides = [2]
    other = torch.empty_strided(tuple(tensor.size()), strides, dtype=tensor.dtype, device="cpu")
    other.copy_(host(tensor))
    return other
