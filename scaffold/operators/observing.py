"""Calls an operator on the CPU and notes what it gives: dtypes, and the rules of its results' shapes. Imports torch.

A schema says neither. The calls are those that the CPU is known to accept; what holds in all of them is written into
the scaffold, and where nothing does, the scaffold asks the meta kernel or leaves it to the author.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...audit.calls.invocation import overload_of
from ...audit.tree import map_leaves
from .known_calls import DTYPES, KnownCall, known_calls
from .observation import FOLLOWS, Observation, ObservedTensor

_ENOUGH_CALLS = 12


def observed(name: str) -> Observation | None:
    """What the calls of an overload, `frexp.Tensor_out`, show; None where the installed torch knows none."""
    try:
        overload = overload_of(f"aten::{name}")
        calls = known_calls(f"aten::{name}")
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    main = [call for call in calls if call[0] in DTYPES] or calls
    seen = [one for call in main[:_ENOUGH_CALLS] if (one := _seen(overload, call)) is not None]
    if not seen:
        return None
    names = list(dict.fromkeys(name for one in seen for name in one.inputs))
    first = names[0] if names else ""
    count = min(len(one.results) for one in seen)
    return Observation(
        inputs={
            name: _element((one.dtype, one.inputs[name].dtype) for one in seen if name in one.inputs) for name in names
        },
        like_first=frozenset(
            name
            for name in names
            if all(one.inputs[name].shape == one.inputs[first].shape for one in seen if name in one.inputs)
        ),
        results=tuple(
            ObservedTensor(_element((one.dtype, one.results[place].dtype) for one in seen), _shape_rule(seen, place))
            for place in range(count)
        ),
        has_meta=all(_answers_on_meta(overload, call) for call in main[:2]),
    )


@dataclass(frozen=True)
class _Seen:
    """One call as it was made: its arguments by name, its input tensors, and what it gave."""

    dtype: str
    arguments: Mapping[str, Any]
    inputs: Mapping[str, torch.Tensor]
    results: Sequence[torch.Tensor]


def _seen(overload: Any, call: KnownCall) -> _Seen | None:
    dtype, args, kwargs = call
    args, kwargs = map_leaves(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    declared = overload._schema.arguments
    arguments = {argument.name: argument.default_value for argument in declared if argument.has_default_value()}
    arguments |= {argument.name: value for argument, value in zip(declared, args, strict=False)} | kwargs
    outputs = {argument.name for argument in declared if argument.is_out}
    inputs = {
        name: value.clone()
        for argument in declared
        if (name := argument.name) not in outputs and isinstance(value := arguments.get(name), torch.Tensor)
    }
    for name in outputs & kwargs.keys():
        kwargs[name] = kwargs[name].new_empty(0)
    try:
        result = overload(*args, **kwargs)
    except (RuntimeError, NotImplementedError, ValueError, IndexError):
        return None
    results = result if isinstance(result, tuple | list) else (result,)
    if not all(isinstance(value, torch.Tensor) for value in results):
        return None
    return _Seen(dtype, arguments, inputs, results)


def _element(pairs: Iterable[tuple[str, torch.dtype]]) -> str:
    """FOLLOWS where a tensor's dtype is the call's; the one dtype that it always had, else."""
    own = {(dtype, str(seen).removeprefix("torch.")) for dtype, seen in pairs}
    found = {seen for _, seen in own}
    if len(found) == 1 and not all(dtype == seen for dtype, seen in own):
        return found.pop()
    return FOLLOWS


def _shape_rule(seen: Sequence[_Seen], place: int) -> str:
    """The first rule that gives the result's shape in every call."""
    names = list(dict.fromkeys(name for one in seen for name in one.inputs))
    rules: dict[str, Callable[[_Seen], Sequence[int] | None]] = {}
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


def _reduced(one: _Seen) -> Sequence[int] | None:
    first = next(iter(one.inputs.values()), None)
    if first is None:
        return None
    dims = one.arguments["dim"]
    wrapped = {dim % max(first.dim(), 1) for dim in ([dims] if isinstance(dims, int) else dims or range(first.dim()))}
    if one.arguments.get("keepdim"):
        return [1 if dim in wrapped else size for dim, size in enumerate(first.shape)]
    return [size for dim, size in enumerate(first.shape) if dim not in wrapped]


def _broadcast(one: _Seen) -> Sequence[int] | None:
    if not one.inputs:
        return None
    try:
        return tuple(torch.broadcast_tensors(*one.inputs.values())[0].shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _answers_on_meta(overload: Any, call: KnownCall) -> bool:
    _, args, kwargs = call
    args, kwargs = map_leaves(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    try:
        overload(*args, **kwargs)
    except Exception:  # whatever a meta kernel raises, it is not one to ask
        return False
    return True
