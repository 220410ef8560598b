"""Candidate calls for an overload from its neighbours: the same operator in another form takes the same arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ...model.nested import leaves
from ..calls.invocation import arguments_of, out_arguments, overload_of
from ..calls.recipes import encode

Call = dict[str, Any]


def stem(name: str) -> str:
    """The name that the forms of an operator share: aten::add for aten::add_.Tensor, aten::add.out and aten::add."""
    base = name.split(".", 1)[0]
    for suffix in ("_copy", "_"):
        if base.endswith(suffix) and not base.endswith("__"):
            base = base.removesuffix(suffix)
    return base


def neighbours(name: str, calls_of: Mapping[str, Sequence[Call]]) -> Iterator[tuple[str, Call]]:
    """Recorded calls of the operator's other forms and overloads, the closest relatives first."""
    wanted = stem(name)
    overload = name.partition(".")[2].removesuffix("_out")
    related = [other for other in calls_of if stem(other) == wanted and other != name and calls_of[other]]
    related.sort(key=lambda other: (other.partition(".")[2] != overload, len(other), other))
    for other in related:
        for call in calls_of[other]:
            yield other, call


def derived_calls(name: str, calls_of: Mapping[str, Sequence[Call]]) -> Iterator[Call]:
    """Calls of `name` with a neighbour's arguments, matched by name, then by position; out= made from a real result.

    Raises nothing that an operator raises: a neighbour whose arguments do not fit gives no candidate.
    """
    outs = out_arguments(name)
    for other, call in neighbours(name, calls_of):
        try:
            candidate = _fitted(name, other, call, outs)
        except Exception:  # the neighbour's arguments do not fit this schema, or its call fails
            continue
        if candidate is not None:
            yield candidate


def _fitted(name: str, other: str, call: Call, outs: Sequence[str]) -> Call | None:
    given = _by_name(other, call)
    schema = overload_of(name)._schema
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in schema.arguments:
        if argument.name in outs:
            continue
        if argument.name in given:
            value = _coerced(given[argument.name], str(argument.type))
        elif argument.has_default_value():
            if argument.kwarg_only:
                continue
            value = encode(argument.default_value)
        else:
            return None
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    made: Call = {"args": args, "kwargs": kwargs, "dtype": call["dtype"]}
    if outs:
        made["kwargs"] = {**kwargs, **_outs(other, call, outs)}
    return made


def _by_name(other: str, call: Call) -> dict[str, Any]:
    names = [argument.name for argument in overload_of(other)._schema.arguments]
    written = set(out_arguments(other))
    positional = dict(zip(names, call["args"], strict=False))
    return {k: v for k, v in {**positional, **call["kwargs"]}.items() if k not in written}


def _outs(other: str, call: Call, outs: Sequence[str]) -> dict[str, Any]:
    args, kwargs = arguments_of(call)
    result = overload_of(other)(*args, **kwargs)
    if len(outs) == 1 and isinstance(result, (list, tuple)) and str(type(result)).find("return_types") < 0:
        # A fused optimizer returns a list for every list that it changes; its out= holds the parameters alone.
        listed = result[0] if result and isinstance(result[0], list) else result
        return {outs[0]: [_empty(t) for t in listed]}
    tensors = [t for t in leaves(result) if isinstance(t, torch.Tensor)]
    if len(tensors) < len(outs):
        raise ValueError("too few results")
    return {name: _empty(tensor) for name, tensor in zip(outs, tensors, strict=False)}


def _empty(tensor: torch.Tensor) -> Any:
    if tensor.layout is torch.sparse_coo:
        return encode(torch.zeros(tensor.shape, dtype=tensor.dtype, layout=torch.sparse_coo))
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}


def _coerced(value: Any, kind: str) -> Any:
    """A neighbour's value as the type that this schema wants: a scalar for a tensor and the other way round."""
    is_tensor = isinstance(value, dict) and "shape" in value
    if kind in ("number", "Scalar", "float", "int") and is_tensor:
        values = value.get("values") or [1]
        first = values[0] if not isinstance(values[0], list) else values[0][0]
        return int(float(first)) if kind == "int" else first
    if (
        kind.startswith(("Tensor", "Optional[Tensor"))
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
    ):
        return {"shape": [], "dtype": "float32" if isinstance(value, float) else "int64", "values": [value]}
    if kind.startswith("List[Tensor") and is_tensor:
        return [value]
    if kind.startswith("List[Tensor") and isinstance(value, list):
        return [_coerced(item, "Tensor") for item in value]
    if kind.startswith("List[number") and isinstance(value, (int, float)):
        return [value]
    return value
