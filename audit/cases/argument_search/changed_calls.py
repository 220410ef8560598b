"""Changes one thing of an accepted call: a size, a number, a flag, or whether an optional argument is given."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from ..calls.recipes import LARGEST, signature

Call = dict[str, Any]

# How many variations of one call are worth a try.
TRIES = 40
OTHER_NUMBERS = (0, 1, 2, 3, -1)


def variations(call: Call, seed: int) -> Iterator[Call]:
    """Calls that differ from `call` in one respect, in a random but repeatable order."""
    changes = [*_sizes(call), *_plain_values(call)]
    random.Random(seed).shuffle(changes)
    seen = {_difference(call)}
    for change in changes[:TRIES]:
        if _difference(change) not in seen:
            seen.add(_difference(change))
            yield change


def _difference(call: Call) -> str:
    return signature([call["args"], call["kwargs"]])


def _sizes(call: Call) -> Iterator[Call]:
    """Replace one extent wherever it occurs: in shapes alone, and in shapes and numbers, which may have to agree."""
    extents = sorted({extent for recipe in _tensors(call) for extent in recipe["shape"]})
    for extent in extents:
        for other in {extent + 1, extent + 2, extent * 2} - {extent}:
            for numbers_too in (True, False):
                yield _resized(call, extent, other, numbers_too=numbers_too)


def _tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "shape" in value:
            yield value
        elif "dtype" in value or "args" in value:
            for branch in (value.get("args", []), value.get("kwargs", {})):
                yield from _tensors(branch)
        elif not {"elements", "compressed"} & value.keys():  # sparse tensors stay as they are
            for branch in value.values():
                yield from _tensors(branch)
    elif isinstance(value, list):
        for branch in value:
            yield from _tensors(branch)


def _resized(value: Any, extent: int, other: int, *, numbers_too: bool) -> Any:
    if isinstance(value, dict):
        if "shape" in value:
            return _resized_tensor(value, extent, other)
        if {"elements", "compressed"} & value.keys():
            return value
        return {k: _resized(v, extent, other, numbers_too=numbers_too) for k, v in value.items()}
    if isinstance(value, list):
        return [_resized(item, extent, other, numbers_too=numbers_too) for item in value]
    is_extent = numbers_too and isinstance(value, int) and not isinstance(value, bool) and value == extent
    return other if is_extent else value


def _resized_tensor(recipe: Mapping[str, Any], extent: int, other: int) -> dict[str, Any]:
    """The recipe of a tensor of another shape. Values are repeated or cut, so that indices stay in their range."""
    shape = [other if n == extent else n for n in recipe["shape"]]
    made: dict[str, Any] = {"shape": shape, "dtype": recipe["dtype"]}
    count = 1
    for n in shape:
        count *= n
    if count > LARGEST:
        return dict(recipe)
    if recipe.get("values"):
        values = recipe["values"]
        made["values"] = [values[i % len(values)] for i in range(count)]
    elif "range" in recipe:
        made |= {name: recipe[name] for name in ("range", "seed") if name in recipe}
    return made


def _plain_values(call: Call) -> Iterator[Call]:
    """Change one number, flag or optional argument."""
    for part in ("args", "kwargs"):
        branch = call[part]
        places = range(len(branch)) if isinstance(branch, list) else branch.keys()
        for place in places:
            for other in _others(branch[place]):
                changed = list(branch) if isinstance(branch, list) else dict(branch)
                changed[place] = other
                yield {**call, part: changed}


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (n for n in OTHER_NUMBERS if n != value)
    elif isinstance(value, float):
        yield from (value + 0.5, value * 2 + 0.25)
    elif isinstance(value, list) and value and all(isinstance(item, int) for item in value):
        for n in OTHER_NUMBERS:
            if any(item != n for item in value):
                yield [n] * len(value)
    elif isinstance(value, dict) and "shape" in value:
        yield None
