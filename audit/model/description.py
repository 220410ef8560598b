"""Describes the inputs of a case on one line."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def describe(tree: Any, limit: int = 240) -> str:
    """The inputs in one line: float32[2, 3] for a tensor, with its strides if it is not contiguous."""
    text = _describe(tree)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return _describe_tensor(value)
    if isinstance(value, dict):
        return ", ".join(f"{k}={_describe(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        brackets: tuple[str, str] = ("[", "]") if isinstance(value, list) else ("(", ")")
        if len(value) > 6:
            inner = ", ".join(map(_describe, value[:3])) + f", … {len(value)} in all"
        else:
            inner = ", ".join(map(_describe, value))
        return brackets[0] + inner + brackets[1]
    if isinstance(value, torch.Generator):  # its own text is an address, another one in every process
        return f"Generator({str(value.device.type)!r})"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return repr(value)


def _describe_tensor(tensor: Tensor) -> str:
    text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    notes: list[str] = []
    if tensor.layout is not torch.strided:
        notes.append(str(tensor.layout).removeprefix("torch."))
    else:
        if not tensor.is_contiguous():
            notes.append(f"stride {tensor.stride()}")
        if tensor.storage_offset():
            notes.append(f"offset {tensor.storage_offset()}")
        notes += [name for name, bit in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if bit]
    return f"{text}({', '.join(notes)})" if notes else text
