"""Calls an operator on the CPU to observe the dtypes and shapes of its results. Imports torch.

A schema has neither. The calls are recorded ones, which the CPU accepts. A rule that holds in all of them is written
into the scaffold; without one, the scaffold asks the meta kernel or leaves the shape to the author.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch

from ...audit.cases.calls.invocation import overload_of
from ...audit.model.nested import leaves, map_leaves
from ...kernels.verification.known_calls import DTYPES, KnownCall, known_calls
from .observation import FOLLOWS, INTEGERS, Observation, ObservedTensor, Size
from .shape_rules import UNREDUCED, ObservedCall, requesting_flag, shape_rule, size_rules

_ENOUGH_CALLS = 12
_WIDER = {"float16": torch.float32, "bfloat16": torch.float32, "float32": torch.float64}
# What says whether a factorisation is made in full, and whether its factors are wanted: their shapes hang on it.
_SHAPING_FLAGS = ("full_matrices", "compute_uv", "compute_v")


def observed(name: str) -> Observation | None:
    """The observation of an overload's calls (`frexp.Tensor_out`); None if the installed torch has none."""
    try:
        overload = overload_of(f"aten::{name}")
        calls = known_calls(f"aten::{name}")
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    main = [call for call in calls if call[0] in DTYPES] or calls
    called = [
        made
        for call in main[:_ENOUGH_CALLS]
        for reduced in _with_each_reduction(overload, call)
        for made in _with_each_flag(overload, reduced)
    ]
    seen = [observed_call for call in called if (observed_call := _seen(overload, call)) is not None]
    if not seen:
        return None
    names = list(dict.fromkeys(name for call in seen for name in call.inputs))
    first = names[0] if names else ""
    count = min(len(call.results) for call in seen)
    return Observation(
        inputs={
            name: _element((call.dtype, call.inputs[name].dtype) for call in seen if name in call.inputs)
            for name in names
        },
        like_first=frozenset(
            name
            for name in names
            if all(call.inputs[name].shape == call.inputs[first].shape for call in seen if name in call.inputs)
        ),
        results=tuple(_tensor(seen, place) for place in range(count)),
        has_meta=all(_answers_on_meta(overload, call) for call in main[:2]),
        integers=tuple(dtype for dtype in INTEGERS if _keeps(overload, [call for call in calls if call[0] == dtype])),
        same_dtype=_requires_same_dtype(overload, main[:_ENOUGH_CALLS]),
    )


def _keeps(overload: Any, calls: Sequence[KnownCall]) -> bool:
    """Whether the first call with a result that is not empty returns the dtype of its first input."""
    for call in calls[:_ENOUGH_CALLS]:
        first = next((leaf for leaf in leaves(call[1:]) if isinstance(leaf, torch.Tensor)), None)
        if first is None or not first.numel() or str(first.dtype) != f"torch.{call[0]}":
            continue
        seen = _seen(overload, call)
        if seen is not None and seen.results and seen.results[0].numel():
            return seen.results[0].dtype == first.dtype
    return False


def _requires_same_dtype(overload: Any, calls: Sequence[KnownCall]) -> bool:
    """Whether the CPU refuses, in every floating-point call, an output of a wider dtype than the result."""
    outputs = {argument.name for argument in overload._schema.arguments if argument.is_out}
    if len(outputs) != 1:
        return False
    accepted = [call for call in calls if call[0] in _WIDER and outputs <= call[2].keys() and _seen(overload, call)]
    return bool(accepted) and not any(_seen(overload, _with_wider_outputs(call, outputs)) for call in accepted)


def _with_wider_outputs(call: KnownCall, outputs: Collection[str]) -> KnownCall:
    dtype, args, kwargs = call
    wider = {name: kwargs[name].to(_WIDER[dtype]) for name in outputs}
    return dtype, args, kwargs | wider


def _with_each_reduction(overload: Any, call: KnownCall) -> list[KnownCall]:
    """The call; for a loss, also the call without reduction, because samples take the mean."""
    dtype, args, kwargs = call
    places = {argument.name: place for place, argument in enumerate(overload._schema.arguments)}
    place = places.get("reduction")
    if place is None:
        return [call]
    unreduced = [*args[:place], UNREDUCED, *args[place + 1 :]] if place < len(args) else list(args)
    named = {} if place < len(args) else {"reduction": UNREDUCED}
    return [call, (dtype, tuple(unreduced), {**kwargs, **named})]


def _with_each_flag(overload: Any, call: KnownCall) -> list[KnownCall]:
    """The call with each value of the flags that determine shapes, each with matrices that are not square, too."""
    declared = overload._schema.arguments
    places = {argument.name: place for place, argument in enumerate(declared)}
    flags = [flag for flag in _SHAPING_FLAGS if flag in places]
    if not flags:
        return [call]
    dtype, args, kwargs = call
    defaults = [argument.default_value for argument in declared]
    most = max(places[flag] for flag in flags) + 1
    given = [*args, *defaults[len(args) : most]]
    made: list[KnownCall] = []
    for values in itertools.product((False, True), repeat=len(flags)):
        for rows, columns in ((0, 0), (1, 0), (0, 1)):
            matrix = args[0][..., rows:, columns:]
            changed = [matrix, *given[1:]]
            for flag, value in zip(flags, values, strict=True):
                changed[places[flag]] = value
            made.append((dtype, tuple(changed), dict(kwargs)))
    return made


def _seen(overload: Any, call: KnownCall) -> ObservedCall | None:
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
    always = frozenset(argument.name for argument in declared if argument.type.kind() != "OptionalType")
    return ObservedCall(dtype, arguments, inputs, always, results)


def _tensor(seen: Sequence[ObservedCall], place: int) -> ObservedTensor:
    element = _element((call.dtype, call.results[place].dtype) for call in seen)
    unreduced = [call for call in seen if call.arguments.get("reduction") == UNREDUCED]
    whole = [call for call in seen if call.arguments.get("reduction") != UNREDUCED]
    is_loss = bool(unreduced and whole) and all(call.results[place].dim() == 0 for call in whole)
    shaped = unreduced if is_loss else seen
    requested_by = requesting_flag(shaped, place)
    if requested_by:
        asked = [call for call in shaped if call.arguments[requested_by]]
        rule = shape_rule(asked, place)
        like = (Size("leading", rule.removeprefix("like ")),) if rule.startswith("like ") else size_rules(asked, place)
        return ObservedTensor(element, "", like, requested_by=requested_by) if like else ObservedTensor(element, "")
    rule = shape_rule(shaped, place)
    return ObservedTensor(element, rule, () if rule else size_rules(shaped, place), is_loss and rule != "one")


def _element(pairs: Iterable[tuple[str, torch.dtype]]) -> str:
    """FOLLOWS, or the dtype of a tensor if that is the same in all calls and not always the dtype of the call."""
    own = {(dtype, str(seen).removeprefix("torch.")) for dtype, seen in pairs}
    dtypes = {seen for _, seen in own}
    if len(dtypes) == 1 and not all(dtype == seen for dtype, seen in own):
        return dtypes.pop()
    return FOLLOWS


def _answers_on_meta(overload: Any, call: KnownCall) -> bool:
    _, args, kwargs = call
    args, kwargs = map_leaves(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    try:
        overload(*args, **kwargs)
    except Exception:  # whatever a meta kernel raises, it is not one to ask
        return False
    return True
