"""The calls in which an upstream test compares mps with the CPU: recorded calls, written as Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...operators.model import OverloadModel

_MOST_ELEMENTS = 4096
_MOST_WRITTEN = 16  # as numbers; of more, the test makes its own between the same bounds
_MOST_LISTED = 128  # where it cannot: whole numbers, masks
_MOST_CALLS = 3


def value_calls(overloads: Sequence[OverloadModel]) -> list[str]:
    """Calls in float32 as expressions of `device`; of an out form its outputs are empty ones. None where none is small.

    `numbers(shape, low, high, device)` in them is the generated test's own. Imports torch.
    """
    import torch

    from ....kernels.verification.known_calls import known_calls

    calls = []
    for overload in overloads:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # a scaffold that is made again has the same numbers
            known = [call[1:] for call in known_calls(f"aten::{overload.name}") if call[0] == "float32"]
        known.sort(key=lambda call: (_has_elements(call), _dimensions(call)), reverse=True)
        written = [text for args, kwargs in known if (text := _written(overload, args, kwargs))]
        calls += written[:_MOST_CALLS]
    return calls


def _dimensions(call: tuple[Sequence[Any], dict[str, Any]]) -> int:
    """The number of dimensions of the largest input: mistakes with layouts need two."""
    args, kwargs = call
    return max((getattr(value, "ndim", 0) for value in [*args, *kwargs.values()]), default=0)


def _has_elements(call: tuple[Sequence[Any], dict[str, Any]]) -> bool:
    """Whether all tensors have elements; calls with empty tensors come last."""
    args, _ = call
    return all(getattr(value, "numel", lambda: 1)() for value in args)


def _written(overload: OverloadModel, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    outputs = {argument.name for argument in overload.outputs}
    words = [_word(value) for value in args]
    words += [f"{name}={_word(value, is_output=name in outputs)}" for name, value in kwargs.items()]
    if any("?" in word for word in words):
        return ""
    return f"torch.ops.aten.{overload.function.operator}.{overload.overload}({', '.join(words)})"


def _word(value: Any, *, is_output: bool = False) -> str:
    """A value as Python; with a question mark where it cannot be written."""
    import torch

    if isinstance(value, torch.Tensor):
        if is_output:
            return f"torch.empty(0, dtype={value.dtype}, device=device)"
        if value.layout is not torch.strided or value.numel() > _MOST_ELEMENTS or value.is_complex():
            return "?"
        if value.dtype is torch.float32 and value.numel() > _MOST_WRITTEN and value.isfinite().all():
            low, high = _rounded([float(value.min()), float(value.max())])
            return f"numbers({tuple(value.shape)}, {low}, {high}, device)"
        if value.numel() > _MOST_LISTED or (value.is_floating_point() and not value.isfinite().all()):
            return "?"
        return f"torch.tensor({_rounded(value.tolist())}, dtype={value.dtype}, device=device)"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_word(one) for one in value)}]"
    return repr(value) if value is None or isinstance(value, bool | int | float) else "?"


def _rounded(value: Any) -> Any:
    """Numbers short enough to read."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value
