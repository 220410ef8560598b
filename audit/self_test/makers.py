"""Changes a call that the CPU accepts so that a condition of a fault holds; independent of the audit's sources.

Each maker has the name of its condition. It changes the arguments in place, and returns False if it cannot. The
demonstration checks whether the condition holds afterwards and the CPU still accepts the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from random import Random

import torch
from torch import Tensor

from ..model.nested import map_leaves
from .argument_changes import Arguments, changed_tensor, changed_together, is_integer, tensors_in
from .tensor_layouts import as_expanded, as_inner_strided, as_stepped, as_transposed, at_offset, in_one_storage

Maker = Callable[..., bool]
MAKERS: dict[str, Maker] = {}
LARGEST = 1 << 22


def maker(function: Maker) -> Maker:
    """Register a maker under the name of its condition: the function's name without its underscore."""
    MAKERS[function.__name__.strip("_")] = function
    return function


def _one_tensor(change: Callable[[Tensor], Tensor | None], arguments: Arguments, rng: Random, name: str) -> bool:
    return changed_tensor(arguments, name, change)


MAKERS |= {
    condition: partial(_one_tensor, change)
    for condition, change in {
        "transposed": as_transposed,
        "stepped": as_stepped,
        "inner_strided": as_inner_strided,
        "offset": at_offset,
        "expanded": as_expanded,
        "conjugate": lambda t: torch.conj(t) if t.is_complex() else None,
        "negated": lambda t: torch._neg_view(t) if t.is_floating_point() else None,
        "no_dimension": lambda t: t.flatten()[0].clone() if t.numel() else None,
        "far_mean": lambda t: t * 0.5 + 3000 if t.dtype is torch.float32 and t.numel() > 1 else None,
    }.items()
}


# ---- dtype


@maker
def _dtype(arguments: Arguments, rng: Random, name: str, wanted: str) -> bool:
    # The dtype of the call was chosen before; this argument may still have another one.
    target = getattr(torch, wanted)
    return changed_tensor(arguments, name, lambda t: t if t.dtype is target else None)


@maker
def _mixed(arguments: Arguments, rng: Random, left: str, right: str) -> bool:
    first = next(iter(tensors_in(arguments.get(left))), None)
    if first is None:
        return False
    others = [torch.float32, torch.float16, torch.int64, torch.int32, torch.bfloat16, torch.bool, torch.uint8]
    others = [d for d in others if d is not first.dtype]
    chosen = rng.choice(others)
    return changed_tensor(arguments, right, lambda t: t.to(chosen))


# ---- layout


@maker
def _contiguous(arguments: Arguments, rng: Random, name: str) -> bool:
    arguments[name] = map_leaves(lambda t: t.contiguous().clone() if isinstance(t, Tensor) else t, arguments[name])
    return True


@maker
def _non_contiguous(arguments: Arguments, rng: Random, name: str) -> bool:
    ways = [as_transposed, as_stepped, as_inner_strided]
    rng.shuffle(ways)
    return any(changed_tensor(arguments, name, way) for way in ways)


@maker
def _shared(arguments: Arguments, rng: Random, left: str, right: str) -> bool:
    if left == right:
        tensors = tensors_in(arguments.get(left))
        if len(tensors) < 2 or len(tensors) != len(arguments[left]) or len({t.dtype for t in tensors}) > 1:
            return False
        arguments[left] = in_one_storage(tensors)
        return True
    a, b = arguments.get(left), arguments.get(right)
    if (
        not isinstance(a, Tensor)
        or not isinstance(b, Tensor)
        or a.dtype is not b.dtype
        or not a.numel()
        or not b.numel()
    ):
        return False
    arguments[left], arguments[right] = in_one_storage([a, b])
    return True


@maker
def _same(arguments: Arguments, rng: Random, left: str, right: str) -> bool:
    a, b = arguments.get(left), arguments.get(right)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape or a.dtype is not b.dtype:
        return False
    arguments[right] = a
    return True


# ---- size


@maker
def _empty(arguments: Arguments, rng: Random, name: str) -> bool:
    first = next(iter(tensors_in(arguments.get(name))), None)
    if first is None or first.dim() == 0:
        return False
    return _empty_dimension(arguments, rng, name, rng.randrange(first.dim()))


@maker
def _empty_dimension(arguments: Arguments, rng: Random, name: str, dimension: int) -> bool:
    return changed_together(
        arguments, name, lambda t: t.narrow(dimension, 0, 0).clone() if t.dim() > dimension else None
    )


@maker
def _one_element(arguments: Arguments, rng: Random, name: str) -> bool:
    return changed_together(
        arguments, name, lambda t: t[(slice(0, 1),) * t.dim()].clone() if t.dim() and t.numel() else None
    )


@maker
def _above(arguments: Arguments, rng: Random, name: str, elements: int) -> bool:
    first = next(iter(tensors_in(arguments.get(name))), None)
    if first is None or first.dim() == 0 or first.numel() == 0:
        return False
    return grown(arguments, name, rng.choice([0, first.dim() - 1]), math.ceil((elements + 1) / first.numel()))


@maker
def _rows_above(arguments: Arguments, rng: Random, name: str, rows: int) -> bool:
    first = next(iter(tensors_in(arguments.get(name))), None)
    if first is None or first.dim() < 2 or first.numel() == 0:
        return False
    return grown(arguments, name, 0, math.ceil((rows + 1) / first.size(0)))


@maker
def _longer(arguments: Arguments, rng: Random, name: str, elements: int) -> bool:
    first = next(iter(tensors_in(arguments.get(name))), None)
    if first is None or first.dim() == 0 or first.numel() == 0:
        return False
    dimension = rng.randrange(first.dim())
    return grown(arguments, name, dimension, math.ceil((elements + 1) / first.size(dimension)))


def grown(arguments: Arguments, name: str, dimension: int, times: int) -> bool:
    """Repeat a tensor, and those of its shape, along a dimension."""

    def repeated(tensor: Tensor) -> Tensor | None:
        if tensor.dim() <= dimension or tensor.numel() * times > LARGEST:
            return None
        return torch.cat([tensor] * times, dimension)

    return changed_together(arguments, name, repeated)


@maker
def _dimensions(arguments: Arguments, rng: Random, name: str, least: int) -> bool:
    def deeper(tensor: Tensor) -> Tensor | None:
        missing = least - tensor.dim()
        if missing <= 0:
            return tensor
        return tensor.repeat(*([2] * missing), *([1] * tensor.dim())) if tensor.numel() * 2**missing < LARGEST else None

    return changed_together(arguments, name, deeper)


# ---- values


def with_value(arguments: Arguments, rng: Random, name: str, value: float, floats: bool) -> bool:
    """Set one element to a value, or half of them."""
    half = rng.random() < 0.5

    def put(tensor: Tensor) -> Tensor | None:
        fits = tensor.is_floating_point() or tensor.is_complex() if floats else is_integer(tensor)
        if not fits or tensor.numel() == 0:
            return None
        copy = tensor.clone()
        mask = torch.zeros(copy.numel(), dtype=torch.bool)
        mask[rng.randrange(copy.numel())] = True
        if half:
            mask[::2] = True
        copy[mask.view(copy.shape)] = value
        return copy

    return changed_tensor(arguments, name, put)


@maker
def _nan(arguments: Arguments, rng: Random, name: str) -> bool:
    return with_value(arguments, rng, name, math.nan, floats=True)


@maker
def _infinite(arguments: Arguments, rng: Random, name: str) -> bool:
    return with_value(arguments, rng, name, rng.choice([math.inf, -math.inf]), floats=True)


@maker
def _negative_zero(arguments: Arguments, rng: Random, name: str) -> bool:
    return with_value(arguments, rng, name, -0.0, floats=True)


@maker
def _near_zero(arguments: Arguments, rng: Random, name: str, bound: float) -> bool:
    return with_value(arguments, rng, name, rng.choice([-1, 1]) * bound * 0.37, floats=True)


@maker
def _large(arguments: Arguments, rng: Random, name: str, bound: float) -> bool:
    return with_value(arguments, rng, name, bound * 1.3, floats=True)


@maker
def _beyond(arguments: Arguments, rng: Random, name: str, bound: int) -> bool:
    def wide(tensor: Tensor) -> Tensor | None:
        fits = tensor.dtype in (torch.int32, torch.int64) and torch.iinfo(tensor.dtype).max > 2 * bound + 3
        return tensor + (bound + 1 + 2 * rng.randrange(bound // 4)) if fits and tensor.numel() else None

    return changed_tensor(arguments, name, wide)


@maker
def _extreme(arguments: Arguments, rng: Random, name: str) -> bool:
    tensors = [t for t in tensors_in(arguments.get(name)) if is_integer(t)]
    if not tensors:
        return False
    limits = torch.iinfo(tensors[0].dtype)
    return with_value(arguments, rng, name, rng.choice([limits.max, limits.min or limits.max]), floats=False)


# ---- arguments that are not tensors


@maker
def _is(arguments: Arguments, rng: Random, name: str, value: object) -> bool:
    arguments[name] = value
    return True


@maker
def _given(arguments: Arguments, rng: Random, name: str) -> bool:
    return name == "generator" or arguments.get(name) is not None  # each call gets a new generator


@maker
def _omitted(arguments: Arguments, rng: Random, name: str) -> bool:
    arguments[name] = None
    return True


@maker
def _negative(arguments: Arguments, rng: Random, name: str) -> bool:
    value = arguments.get(name)
    if isinstance(value, (list, tuple)) and value:
        arguments[name] = [-1 if position == 0 and v != 0 else v for position, v in enumerate(value)]
        arguments[name] = [-1, *value[1:]] if arguments[name] == list(value) else arguments[name]
        return True
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        arguments[name] = type(value)(-1 - abs(value) // 1 % 2) if isinstance(value, int) else -abs(value) - 0.5
        return True
    return False


@maker
def _fractional(arguments: Arguments, rng: Random, name: str) -> bool:
    if not isinstance(arguments.get(name), (int, float)) or isinstance(arguments.get(name), bool):
        return False
    arguments[name] = rng.choice([0.75, 1.5, 2.25])
    return True


@maker
def _lacks(arguments: Arguments, rng: Random, name: str, position: int) -> bool:
    flags = arguments.get(name)
    if not isinstance(flags, (list, tuple)) or len(flags) <= position:
        return False
    arguments[name] = [index != position for index in range(len(flags))]
    return True


@maker
def _out_of_range(arguments: Arguments, rng: Random, name: str, bounding: str) -> bool:
    largest = max((max(t.shape, default=0) for t in tensors_in(arguments.get(bounding))), default=0)

    def beyond_all(tensor: Tensor) -> Tensor | None:
        if tensor.dtype not in (torch.int64, torch.int32) or not tensor.numel():
            return None
        copy = tensor.clone()
        copy.view(-1)[rng.randrange(copy.numel())] = largest + 2
        return copy

    return changed_tensor(arguments, name, beyond_all)


@maker
def _follows_gradients(arguments: Arguments, rng: Random, name: str) -> bool:
    return changed_tensor(
        arguments, name, lambda t: t.detach().requires_grad_() if t.is_floating_point() or t.is_complex() else None
    )


@maker
def _without_gradients(arguments: Arguments, rng: Random) -> bool:
    for name in arguments:
        arguments[name] = map_leaves(lambda t: t.detach() if isinstance(t, Tensor) else t, arguments[name])
    return True
