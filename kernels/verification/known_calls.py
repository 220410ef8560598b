"""Calls that the CPU is known to accept, recorded or written by hand. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import torch

from ...audit.cases.calls.examples import examples_of
from ...audit.cases.calls.examples.operands import Example
from ...audit.cases.calls.invocation import arguments_of, out_arguments, overload_of
from ...audit.cases.calls.recorded_calls import RecordedCalls
from ...audit.model.nested import leaves, map_leaves

# The dtypes that a generated kernel is instantiated for.
DTYPES = ("float32", "float16", "bfloat16")

KnownCall = tuple[str, tuple[Any, ...], dict[str, Any]]


@cache
def _memory() -> RecordedCalls:
    return RecordedCalls.load()


def known_calls(name: str) -> list[KnownCall]:
    """Calls of an overload, `aten::mode.values`, each with its dtype."""
    known = _memory().overloads.get(name)
    if known and known.calls:
        return [
            (dtype, *arguments_of(call, dtype))
            for dtype in dict.fromkeys([*known.dtypes, *(call["dtype"] for call in known.calls)])
            for call in known.accepted(dtype)
        ]
    return [made for example in _examples(name) for made in _in_dtypes(name, example.args, example.kwargs)]


def _examples(name: str) -> Iterator[Example]:
    """The examples of an overload, or of the operator's functional form, whose results then make its outputs."""
    outs = out_arguments(name)
    functional = name.partition(".")[0] if outs else name
    for example in examples_of(functional):
        if not outs:
            yield example
            continue
        result = overload_of(functional)(*example.args, **example.kwargs)
        results = result if isinstance(result, tuple) else (result,)
        made = {out: torch.empty_like(value) for out, value in zip(outs, results, strict=True)}
        yield Example(example.args, example.kwargs | made)


def _in_dtypes(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """The call in each of DTYPES that the CPU accepts, if it is one in float32; else in its own dtype."""
    tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    own = str(tensors[0].dtype).removeprefix("torch.")
    for dtype in DTYPES if own == "float32" else (own,):

        def changed(leaf: object, dtype: str = dtype) -> object:
            if own == "float32" and isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32:
                return leaf.to(getattr(torch, dtype))
            return leaf

        made = map_leaves(changed, (args, kwargs))
        with suppress(RuntimeError, NotImplementedError):
            overload_of(name)(*made[0], **made[1])
            yield dtype, *made
