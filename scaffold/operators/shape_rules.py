"""Derives rules for the shapes of results, which hold in every observed call. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .observation import Size

# The value of `reduction` that keeps the loss of each element.
UNREDUCED = 0
# The largest number of dimensions that pooling or resampling changes.
_MOST_CHANGED = 3


@dataclass(frozen=True)
class ObservedCall:
    """One call on the CPU.

    Attributes:
        dtype: the dtype of the call.
        arguments: all of them by name, defaults included.
        inputs: the tensors that were read, by name.
        always: the arguments that are not optional.
        results: the tensors that it returned.
    """

    dtype: str
    arguments: Mapping[str, Any]
    inputs: Mapping[str, torch.Tensor]
    always: frozenset[str]
    results: Sequence[torch.Tensor]


def shape_rule(seen: Sequence[ObservedCall], place: int) -> str:
    """The first rule that gives a result's shape in every call; empty if there is none."""
    # An optional argument may have no shape in another call.
    names = list(dict.fromkeys(name for one in seen for name in one.inputs if name in one.always))
    rules: dict[str, Callable[[ObservedCall], Sequence[int] | None]] = {}
    if any("dim" in one.arguments for one in seen):
        rules["reduced"] = _reduced
    for name in names:
        rules[f"like {name}"] = lambda one, name=name: one.inputs[name].shape if name in one.inputs else None  # type: ignore[misc]
    rules |= {"broadcast": _broadcast, "one": lambda one: ()}
    for rule, shape_of in rules.items():
        shapes = [shape_of(one) for one in seen]
        if all(
            s is not None and tuple(s) == tuple(one.results[place].shape) for s, one in zip(shapes, seen, strict=True)
        ):
            return rule
    return ""


def size_rules(seen: Sequence[ObservedCall], place: int) -> tuple[Size, ...]:
    """The dimensions of a result, if no rule gives its whole shape; empty if they cannot be derived.

    Calls with equal shapes prove no rule.
    """
    shapes = [tuple(one.results[place].shape) for one in seen]
    if len(shapes) > 1 and set(shapes) == {(1,)}:
        return (Size("fixed", "", 1),)
    if len(set(shapes)) < 2:
        return ()
    flags = _flags(seen)
    for leading in _leading(seen):
        heads = [tuple(_value(leading, one)) if leading else () for one in seen]
        if any(shape[: len(head)] != head for shape, head in zip(shapes, heads, strict=True)):
            continue
        rests = [shape[len(head) :] for shape, head in zip(shapes, heads, strict=True)]
        if len({len(rest) for rest in rests}) != 1:
            continue
        sizes = [_fitting(seen, [rest[dim] for rest in rests], flags) for dim in range(len(rests[0]))]
        if all(sizes):
            return (*([leading] if leading else []), *(size for size in sizes if size))
    return ()


def _leading(seen: Sequence[ObservedCall]) -> Iterator[Size | None]:
    for changed in range(1, _MOST_CHANGED + 1):
        for name in _tensors(seen):
            ranks = [one.inputs[name].dim() for one in seen]
            # A 0-dim tensor has no last dimension to drop; its leading dimensions are empty in any case.
            if (min(ranks) >= changed or changed == 1) and max(ranks) > changed:
                yield Size("leading", name, changed)
    yield None


def requesting_flag(seen: Sequence[ObservedCall], place: int) -> str:
    """The flag that requests a result; without it the result has no elements. Empty if there is no such flag."""
    for flag in _flags(seen):
        refused = [one for one in seen if not one.arguments[flag]]
        others = [one for one in seen if one.arguments[flag]]
        if all(tuple(one.results[place].shape) == (0,) for one in refused) and any(
            one.results[place].numel() for one in others
        ):
            return flag
    return ""


def _flags(seen: Sequence[ObservedCall]) -> list[str]:
    """The arguments that were true in some calls and false in others."""
    return [name for name in seen[0].arguments if {one.arguments.get(name) is True for one in seen} == {True, False}]


def _fitting(seen: Sequence[ObservedCall], wanted: Sequence[int], flags: Sequence[str] = ()) -> Size | None:
    """The expression for a dimension in all of these calls, or one with a flag and one without it."""
    for size in _sizes(seen):
        if [_value(size, one) for one in seen] == list(wanted):
            return size
    for flag in flags:
        sizes = []
        for is_on in (True, False):
            chosen = [place for place, one in enumerate(seen) if (one.arguments[flag] is True) is is_on]
            sizes.append(_fitting([seen[place] for place in chosen], [wanted[place] for place in chosen]))
        with_flag, without = sizes
        if with_flag and without:
            return replace(with_flag, requested_by=flag, otherwise=without)
    return None


def _sizes(seen: Sequence[ObservedCall]) -> Iterator[Size]:
    """The expressions that a dimension may have, the simplest first."""
    for name in sorted(frozenset.intersection(*(one.always for one in seen)) - _tensors(seen).keys()):
        values = [one.arguments.get(name) for one in seen]
        lists = [value for value in values if isinstance(value, list | tuple) and value and isinstance(value[0], int)]
        if len(lists) == len(values):
            yield from (Size("item", name, place) for place in range(min(map(len, lists))))
        elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            yield Size("number", name)
    ranks = _tensors(seen)
    for name, rank in ranks.items():
        yield from (Size("size", name, place) for place in range(rank))
        yield from (Size("size", name, -1 - place) for place in range(rank))
    for name, rank in ranks.items():
        if rank > 1:
            yield Size("lesser", name)
    for name, rank in ranks.items():
        yield from (Size("pairs", name, place) for place in range(rank))
        yield Size("count", name)


def _tensors(seen: Sequence[ObservedCall]) -> dict[str, int]:
    """The tensors that every call has, with their smallest number of dimensions."""
    names = [name for name in seen[0].inputs if all(name in one.inputs and name in one.always for one in seen)]
    return {name: min(one.inputs[name].dim() for one in seen) for name in names}


def _value(size: Size, one: ObservedCall) -> Any:
    given = one.arguments[size.of]
    match size.what:
        case "leading":
            return tuple(given.shape[: given.dim() - size.place])
        case "size":
            return given.shape[size.place]
        case "lesser":
            return min(given.shape[-2:])
        case "pairs":
            return given.shape[size.place] * (given.shape[size.place] - 1) // 2
        case "count":
            return given.numel()
        case "item":
            return given[size.place]
    return given


def _reduced(one: ObservedCall) -> Sequence[int] | None:
    first = next(iter(one.inputs.values()), None)
    if first is None:
        return None
    dims = one.arguments["dim"]
    wrapped = {dim % max(first.dim(), 1) for dim in ([dims] if isinstance(dims, int) else dims or range(first.dim()))}
    if one.arguments.get("keepdim"):
        return [1 if dim in wrapped else size for dim, size in enumerate(first.shape)]
    return [size for dim, size in enumerate(first.shape) if dim not in wrapped]


def _broadcast(one: ObservedCall) -> Sequence[int] | None:
    if not one.inputs:
        return None
    try:
        return tuple(torch.broadcast_tensors(*one.inputs.values())[0].shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None
