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
    names = list(dict.fromkeys(name for call in seen for name in call.inputs if name in call.always))
    rules: dict[str, Callable[[ObservedCall], Sequence[int] | None]] = {}
    if any("dim" in call.arguments for call in seen):
        rules["reduced"] = _reduced
    for name in names:
        rules[f"like {name}"] = lambda call, name=name: call.inputs[name].shape if name in call.inputs else None  # type: ignore[misc]
    rules |= {"broadcast": _broadcast, "one": lambda call: ()}
    for rule, shape_of in rules.items():
        shapes = [shape_of(call) for call in seen]
        if all(
            s is not None and tuple(s) == tuple(call.results[place].shape) for s, call in zip(shapes, seen, strict=True)
        ):
            return rule
    return ""


def size_rules(seen: Sequence[ObservedCall], place: int) -> tuple[Size, ...]:
    """The dimensions of a result, if no rule gives its whole shape; empty if they cannot be derived.

    Calls with equal shapes prove no rule.
    """
    shapes = [tuple(call.results[place].shape) for call in seen]
    if len(shapes) > 1 and set(shapes) == {(1,)}:
        return (Size("fixed", "", 1),)
    if len(set(shapes)) < 2:
        return ()
    flags = _flags(seen)
    for leading in _leading(seen):
        heads = [tuple(_value(leading, call)) if leading else () for call in seen]
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
            ranks = [call.inputs[name].dim() for call in seen]
            # A 0-dim tensor has no last dimension to drop; its leading dimensions are empty in any case.
            if (min(ranks) >= changed or changed == 1) and max(ranks) > changed:
                yield Size("leading", name, changed)
    yield None


def requesting_flag(seen: Sequence[ObservedCall], place: int) -> str:
    """The flag that requests a result; without it the result has no elements. Empty if there is no such flag."""
    for flag in _flags(seen):
        refused = [call for call in seen if not call.arguments[flag]]
        others = [call for call in seen if call.arguments[flag]]
        if all(tuple(call.results[place].shape) == (0,) for call in refused) and any(
            call.results[place].numel() for call in others
        ):
            return flag
    return ""


def _flags(seen: Sequence[ObservedCall]) -> list[str]:
    """The arguments that were true in some calls and false in others."""
    return [name for name in seen[0].arguments if {call.arguments.get(name) is True for call in seen} == {True, False}]


def _fitting(seen: Sequence[ObservedCall], wanted: Sequence[int], flags: Sequence[str] = ()) -> Size | None:
    """The expression for a dimension in all of these calls, or one with a flag and one without it."""
    for size in _sizes(seen):
        if [_value(size, call) for call in seen] == list(wanted):
            return size
    for flag in flags:
        sizes = []
        for is_on in (True, False):
            chosen = [place for place, call in enumerate(seen) if (call.arguments[flag] is True) is is_on]
            sizes.append(_fitting([seen[place] for place in chosen], [wanted[place] for place in chosen]))
        with_flag, without = sizes
        if with_flag and without:
            return replace(with_flag, requested_by=flag, otherwise=without)
    return None


def _sizes(seen: Sequence[ObservedCall]) -> Iterator[Size]:
    """The expressions that a dimension may have, the simplest first."""
    for name in sorted(frozenset.intersection(*(call.always for call in seen)) - _tensors(seen).keys()):
        values = [call.arguments.get(name) for call in seen]
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
    names = [name for name in seen[0].inputs if all(name in call.inputs and name in call.always for call in seen)]
    return {name: min(call.inputs[name].dim() for call in seen) for name in names}


def _value(size: Size, call: ObservedCall) -> Any:
    given = call.arguments[size.of]
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


def _reduced(call: ObservedCall) -> Sequence[int] | None:
    first = next(iter(call.inputs.values()), None)
    if first is None:
        return None
    dims = call.arguments["dim"]
    wrapped = {dim % max(first.dim(), 1) for dim in ([dims] if isinstance(dims, int) else dims or range(first.dim()))}
    if call.arguments.get("keepdim"):
        return [1 if dim in wrapped else size for dim, size in enumerate(first.shape)]
    return [size for dim, size in enumerate(first.shape) if dim not in wrapped]


def _broadcast(call: ObservedCall) -> Sequence[int] | None:
    if not call.inputs:
        return None
    try:
        return tuple(torch.broadcast_tensors(*call.inputs.values())[0].shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None
