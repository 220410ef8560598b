"""Writes a case as a Python program that needs nothing but torch and a Mac, ready for an upstream issue."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...errors import MpsmithError
from ..calls.invocation import SchemaCall
from ..cases import Case
from ..group import GroupKey
from ..verdicts import Outcome

MOST_ELEMENTS = 2000
NO_SCRIPT = "(`mpsmith replay` without --script shows it)"
PLAIN = (bool, int, float, complex, str, torch.dtype, torch.layout, torch.memory_format)

TEMPLATE = '''\
"""{title}

Found by mpsmith{where}: {finding}
"""

import torch

print("torch", torch.__version__)


def inputs(device):
{inputs}
    return args, kwargs


def run(device):
    args, kwargs = inputs(device)
{run}


for device in ("cpu", "mps"):
    try:
        print(device, run(device))
    except Exception as error:
        print(device, type(error).__name__, error)
'''


FORWARD = "    return {call}(*args, **kwargs)"
BACKWARD = """\
    output = {call}(*args, **kwargs)
    outputs = output if isinstance(output, (tuple, list)) else [output]
    loss = sum(t.square().sum() for t in outputs if t.requires_grad)
    return torch.autograd.grad(loss, [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad])"""

# Sources whose cases are one plain call; the others wrap it (a form of the call, a module).
PLAIN_SOURCES = ("opinfo", "layouts", "special values", "errors", "schema")


def script_of(case: Case, key: GroupKey, outcome: Outcome, *, simulated: bool) -> str:
    """The program. Raises MpsmithError for a case that cannot be written down as a plain call."""
    if key.source not in PLAIN_SOURCES and not case.written:
        raise MpsmithError(f"{key.label} ({case.title}): no plain line of Python repeats this call {NO_SCRIPT}")
    call = case.written or _call_text(case, key)
    run = (BACKWARD if outcome.stage == "backward" else FORWARD).format(call=call)
    body = [f"    args = {_text(list(case.args))}", f"    kwargs = {_text(case.kwargs)}"]
    where = " on a SIMULATED mps device, so check it on a Mac first" if simulated else ""
    finding = f"{outcome.verdict.value}, {outcome.stage}: {outcome.message}".replace('"""', "'''").replace("\\", "/")
    title = f"{call}{f' ({case.title})' if case.title else ''} on mps"
    return TEMPLATE.format(title=title, where=where, finding=finding, inputs="\n".join(body), run=run)


def _call_text(case: Case, key: GroupKey) -> str:
    if isinstance(case.call, SchemaCall):
        if not case.call.needs_torch_alone:
            raise MpsmithError(f"{key.label}: torch alone does not repeat this call on the CPU {NO_SCRIPT}")
        operator, _, overload = key.operator.partition(".")
        return f"torch.ops.aten.{operator}.{overload or 'default'}"
    for text in (f"torch.{key.operator}", f"torch.Tensor.{key.operator}", f"torch.ops.aten.{key.operator}"):
        if _resolves(text):
            return text
    raise MpsmithError(f"{key.label}: no plain line of Python repeats this call {NO_SCRIPT}")


def _resolves(text: str) -> bool:
    value: Any = torch
    for part in text.split(".")[1:]:
        value = getattr(value, part, None)
        if value is None:
            return False
    return callable(value)


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        return _tensor_text(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_text, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, torch.device):
        return "device"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, PLAIN):
        return repr(value)
    raise MpsmithError(f"an argument of type {type(value).__name__} cannot be written down {NO_SCRIPT}")


def _tensor_text(tensor: Tensor) -> str:
    if tensor.layout is not torch.strided or tensor.numel() > MOST_ELEMENTS:
        raise MpsmithError(f"a {tensor.layout} tensor of {tensor.numel()} elements cannot be written down {NO_SCRIPT}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    values = _values_text(plain.flatten().tolist())
    text = f"torch.tensor({values}, dtype={plain.dtype}, device=device)"
    if plain.is_contiguous():
        text = f"{text}.reshape({tuple(plain.shape)})" if plain.dim() != 1 else text
    else:
        shape, stride = tuple(plain.shape), plain.stride()
        text = (
            f"torch.empty_strided({shape}, {stride}, dtype={plain.dtype}, device=device).copy_({text}.reshape({shape}))"
        )
    return f"{text}.requires_grad_()" if tensor.requires_grad else text


def _values_text(values: list[Any]) -> str:
    return "[" + ", ".join(repr(v) if not _odd(v) else f'float("{v}")' for v in values) + "]"


def _odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
