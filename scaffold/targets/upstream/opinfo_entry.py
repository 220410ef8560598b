"""Writes an OpInfo from recorded calls for an operator without one, into common_methods_invocations.py."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from ....audit.model.selection import DTYPES as DTYPE_ORDER
from ...operators.model import OperatorModel, OverloadModel

_MOST_CALLS = 3
_MOST_LISTED = 16  # numbers; of more, the sample makes its own between the same bounds
_WIDTH = 88
_LIST = re.compile(r"^op_db: (?:list|List)\[OpInfo\] = \[\n.*?^(?=\]$)", re.MULTILINE | re.DOTALL)


def with_opinfo(text: str, operator: OperatorModel) -> str:
    """The text of common_methods_invocations.py with an OpInfo of the operator; unchanged if no call can be written.

    Its samples are recorded calls of the functional form, with other numbers between the same bounds. Imports torch.
    """
    match = _LIST.search(text)
    functional = [overload for overload in operator.overloads if overload.form == "functional"]
    if match is None or not functional:
        return text
    samples, dtypes = _samples(functional[0])
    if not samples:
        return text
    function = f"sample_inputs_{operator.name.strip('_')}"
    made = _call(f"def {function}", ["op_info", "device", "dtype", "requires_grad", "**kwargs"], 0, ":")
    if any("make_arg(" in word for sample in samples for word in sample):
        made += (
            "    make_arg = partial(\n"
            "        make_tensor, device=device, dtype=dtype, requires_grad=requires_grad\n    )\n"
        )
    made += "".join(_call("yield SampleInput", sample, 4) for sample in samples)
    words = [
        f'        "{operator.name}",',
        f"        op=torch.ops.aten.{operator.name}.{functional[0].overload},",
        "        dtypes=_dispatch_dtypes(",
        *textwrap.wrap(
            ", ".join(f"torch.{dtype}" for dtype in dtypes),
            70,
            initial_indent=" " * 12 + "(",
            subsequent_indent=" " * 13,
        ),
        "        ),",
        "        supports_out=False,",
        *([] if functional[0].surface.has_autograd_formula else ["        supports_autograd=False,"]),
        f"        sample_inputs_func={function},",
    ]
    entry = "\n".join(["    OpInfo(", *words, "    ),", ""]).replace("\n        ),", ",),\n        ),", 1)
    return f"{text[: match.start()]}{made}\n\n{match[0]}{entry}{text[match.end() :]}"


def _samples(overload: OverloadModel) -> tuple[list[list[str]], list[str]]:
    """The arguments of each sample as Python, and the dtypes in which the CPU computes the largest such call."""
    import torch

    from ....kernels.verification.known_calls import known_calls

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # a scaffold that is made again has the same numbers
        calls = [call for call in known_calls(f"aten::{overload.name}") if isinstance(call[1][0], torch.Tensor)]
    calls.sort(key=lambda call: _size(call[1]), reverse=True)
    written = [
        [*map(_word, args), *(f"{name}={_word(value)}" for name, value in kwargs.items())]
        for dtype, args, kwargs in calls
        if dtype == "float32"
    ]
    samples = [words for words in written if not any("?" in word for word in words)][:_MOST_CALLS]
    if not samples:
        return [], []
    if not any(word.startswith("make_arg(") for word in samples[0]):
        return samples, [str(calls[0][1][0].dtype).removeprefix("torch.")]  # no argument follows the dtype
    (args, kwargs), *_ = [call[1:] for call in calls if call[0] == "float32"]
    taken = {call[0] for call in calls}
    return samples, [dtype for dtype in DTYPE_ORDER if dtype in taken and _runs(overload, dtype, args, kwargs)]


def _runs(overload: OverloadModel, dtype: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the CPU computes a float32 call in the dtype `dtype`."""
    import torch

    from ....audit.cases.calls.invocation import overload_of
    from ....audit.model.nested import map_leaves

    def cast(leaf: Any) -> Any:
        is_float = isinstance(leaf, torch.Tensor) and leaf.dtype is torch.float32
        return leaf.to(getattr(torch, dtype)) if is_float else leaf

    given, named = map_leaves(cast, (tuple(args), kwargs))
    try:
        overload_of(f"aten::{overload.name}")(*given, **named)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def _size(args: Sequence[Any]) -> tuple[bool, int, int]:
    """A key that sorts calls by usefulness: no empty tensors, two dimensions (for layouts), many elements."""
    tensors = [value for value in args if hasattr(value, "numel")]
    dimensions = max(value.ndim for value in tensors)
    return all(value.numel() for value in tensors), min(dimensions, 2), tensors[0].numel()


def _word(value: Any) -> str:
    """A value as Python; with a question mark if it cannot be written as such."""
    import torch

    if isinstance(value, torch.Tensor):
        if (
            value.layout is not torch.strided
            or value.is_complex()
            or (value.is_floating_point() and not _bounds(value))
        ):
            return "?"
        if value.dtype is torch.float32:
            return f"make_arg({tuple(value.shape)}{_bounds(value)})"
        if value.numel() <= _MOST_LISTED and not value.is_floating_point():
            return f"torch.tensor({value.tolist()}, dtype={value.dtype}, device=device)"
        return f"make_tensor({tuple(value.shape)}, dtype={value.dtype}, device=device{_bounds(value)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_word(element) for element in value)}]"
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "?"


def _bounds(value: Any) -> str:
    """`, low=…, high=…`; empty for bools, and for numbers of which some are not finite."""
    import torch

    if value.dtype is torch.bool or not value.numel():
        return ", low=None" if value.is_floating_point() else ""
    low, high = value.min().item(), value.max().item()
    if isinstance(low, int):
        return f", low={low}, high={high + 1}"
    if not value.isfinite().all():
        return ""
    return f", low={round(low, 3)}, high={round(max(high, low + 0.001), 3)}"


def _call(name: str, words: Sequence[str], indent: int, end: str = "") -> str:
    """A call as a formatter writes it: in one line, or an argument a line."""
    blank = " " * indent
    line = f"{blank}{name}({', '.join(words)}){end}\n"
    if len(line) <= _WIDTH + 1:
        return line
    return f"{blank}{name}(\n" + "".join(f"{blank}    {word},\n" for word in words) + f"{blank}){end}\n"
