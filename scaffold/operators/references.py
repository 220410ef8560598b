"""The definition of an operator in torch: its decomposition, traced for one call. Imports torch.

It comes from the installed torch and is written into the stub for the author to translate.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

import torch

from ...audit.cases.calls.invocation import out_arguments, overload_of
from ...audit.model.nested import leaves
from ...kernels.verification.known_calls import known_calls
from .model import OperatorModel, OverloadModel

_MOST_LINES = 40


def references_of(operator: OperatorModel) -> dict[str, tuple[str, ...]]:
    """The lines to translate for each overload of an operator that gets a kernel."""
    return {overload.name: reference_of(overload, operator) for overload in operator.kernels}


def reference_of(overload: OverloadModel, operator: OperatorModel) -> tuple[str, ...]:
    """The steps of the decomposition, one a line; without one, the names of torch's kernels, be it of another form."""
    steps = _traced(overload)
    if steps:
        shown = steps[:_MOST_LINES]
        rest = [f"and {len(steps) - len(shown)} steps more"] if len(steps) > len(shown) else []
        return ("torch's own decomposition, traced for one call:", *(f"  {step}" for step in shown), *rest)
    dispatched = (form.function.dispatch for form in (overload, *operator.overloads))
    rows = next((rows for rows in dispatched if "CPU" in rows), {})
    kernels = [f"{key}: {rows[key]}" for key in ("CPU", "CUDA") if key in rows]
    where = f"; its kernels in aten/src/ATen/native are {', '.join(kernels)}" if kernels else ""
    return (f"torch's decompositions do not say how it computes{where}.",)


def _traced(overload: OverloadModel) -> list[str]:
    from torch._decomp import decomposition_table
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        functional = _functional(overload)
        if functional not in decomposition_table:
            return []
        calls = [call for call in known_calls(functional._name) if call[0] == "float32"]
        # Take the largest call: with one element or none, most steps have no effect.
        _, args, kwargs = max(calls, key=lambda call: _elements(call[1:]))
        names = [argument.name for argument in functional._schema.arguments]
        arguments = dict(zip(names, args, strict=False)) | kwargs
        tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}

        def call(*given: torch.Tensor) -> Any:
            return functional(**arguments | dict(zip(tensors, given, strict=True)))

        graph = make_fx(call, decomposition_table={functional: decomposition_table[functional]})(
            *tensors.values()
        ).graph
    except Exception:  # tracing runs arbitrary Python code of torch; the stub then names the kernels
        return []
    inputs = iter(tensors)
    words: dict[Any, str] = {}
    lines = []
    for node in graph.nodes:
        if node.op == "placeholder":
            words[node] = next(inputs)
        elif node.op == "call_function" and node.target is getitem:
            words[node] = f"{_word(node.args[0], words)}[{_word(node.args[1], words)}]"
        elif node.op == "call_function":
            words[node] = node.name
            given = [*(_word(a, words) for a in node.args), *(f"{k}={_word(v, words)}" for k, v in node.kwargs.items())]
            lines.append(f"{node.name} = {str(node.target).removeprefix('aten.')}({', '.join(given)})")
        elif node.op == "output":
            lines.append(f"return {_word(node.args[0], words)}")
    # A first step that calls the operator itself does not explain it.
    first = lines[0].partition(" = ")[2].removeprefix("prims.").lstrip("_") if lines else ""
    return [] if first.startswith(f"{overload.function.operator.strip('_')}.") else lines


def _elements(arguments: Any) -> int:
    """How many elements the tensors of a call have."""
    return sum(leaf.numel() for leaf in leaves(arguments) if isinstance(leaf, torch.Tensor))


def _functional(overload: OverloadModel) -> Any:
    """The overload itself, or the one that returns what an out form writes."""
    own = overload_of(f"aten::{overload.name}")
    if not out_arguments(f"aten::{overload.name}"):
        return own
    packet = getattr(torch.ops.aten, overload.function.operator)
    wanted = [argument.name for argument in own._schema.arguments if not argument.is_out]
    for name in packet.overloads():
        candidate = getattr(packet, name)
        if [argument.name for argument in candidate._schema.arguments] == wanted:
            return candidate
    return own


def _word(value: Any, words: dict[Any, str]) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(_word(element, words) for element in value)}]"
    try:
        return words.get(value, str(value))
    except TypeError:  # unhashable, so not a node
        return str(value)
