"""Which other values an argument of an overload may have: flags, words, dims, sizes, numbers, optional tensors.

They are known from the argument's type and name in the schema. What the CPU does with them decides later whether they
are good or bad input, so that nothing here has to know an operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...model.nested import leaves

Arguments = Mapping[str, Any]

# The words that operators know, by the argument's name; the last one is known to none.
UNKNOWN_WORD = "no such word"
WORDS: dict[str, tuple[str, ...]] = {
    "reduce": ("sum", "prod", "mean", "amax", "amin", "max", "min"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "UPLO": ("L", "U"),
    "approximate": ("none", "tanh"),
    "padding": ("valid", "same"),
    "ord": ("fro", "nuc"),
    "norm": ("backward", "ortho", "forward"),
    "rounding_mode": ("trunc", "floor"),
    "driver": ("gels", "gelsy", "gelsd", "gelss"),
    "side": ("left", "right"),
    "mode": ("reduced", "complete", "r", "constant", "reflect", "replicate", "circular"),
    "p": ("fro", "nuc"),
    "indexing": ("ij", "xy"),
    "padding_side": ("left", "right"),
}
# Integers that stand for words.
ENUMERATIONS: dict[str, tuple[int, ...]] = {
    "reduction": (0, 1, 2),
    "interpolation_mode": (0, 1, 2),
    "padding_mode": (0, 1, 2),
    "mode": (0, 1, 2),
    "pad_mode": (0, 1, 2, 3),
    "compute_mode": (0, 1, 2),
    "normalization": (0, 1, 2),
}
# Optional tensors whose shape follows from that of the first tensor.
ONE_A_CHANNEL = frozenset({"weight", "bias", "running_mean", "running_var", "pos_weight"})
ONE_AN_ELEMENT = frozenset({"weight", "min", "max"})
# Optional tensors of one element, and the values that they get.
ONE_ELEMENT: dict[str, tuple[float, ...]] = {"grad_scale": (2.0,), "found_inf": (0.0, 1.0)}
DIMS = frozenset({"dim", "dim0", "dim1", "dim2", "dims", "axis", "axis0", "axis1", "dimension", "ch_axis", "sumdim"})
DTYPE_NAMES = frozenset({"dtype", "out_dtype"})
DTYPES = (torch.float32, torch.float16, torch.int64)
MEMORY_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last)

NUMBERS: tuple[float, ...] = (0, 1, -1, 0.5, 2, -2.5, 300, 1e6, math.inf, -math.inf, math.nan)
INTEGERS: tuple[float, ...] = (0, 1, -1, 2, 100, 0.5)
ORDERS: tuple[float, ...] = (0, 0.5, 1, 2, 3, -1, math.inf, -math.inf)
ORDER_NAMES = frozenset({"p", "ord", "norm_type"})
COUNTS: tuple[int, ...] = (0, 1, 2, 3, -1, 7)
# A factor by which an image is resized, and the ends and steps of a range: others only make something very large.
FACTORS: tuple[float, ...] = (0.5, 2, 3.5)
FACTOR_NAMES = frozenset({"scales", "scales_h", "scales_w", "scales_d"})
ENDS: tuple[float, ...] = (0, 1, -1, 0.5, 2.5, 9)
END_NAMES = frozenset({"start", "end", "step"})
# What is named like this is the extent of other arguments: another number would only be refused, or read what is not
# there.
EXTENTS = frozenset(
    {
        *("num_weights", "num_layers", "input_size", "input_sizes", "self_sizes", "N", "C", "HxW", "group"),
        *("storage_offset", "max_lengths", "input_lengths", "target_lengths", "normalized_shape", "layout"),
        *("device", "cuda_dtype", "cpu_dtype", "input_dtype", "level"),
    }
)


def other_values(argument: Any, arguments: Arguments) -> Iterator[Any]:
    """Values of the argument other than the one that it has.

    Args:
        argument: the argument as the overload's schema has it.
        arguments: all arguments of a call by their names.
    """
    current = arguments.get(argument.name)
    seen = {_identity(current)}
    for value in _candidates(argument, current, arguments):
        if _identity(value) not in seen:
            seen.add(_identity(value))
            yield value


def _identity(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {value.item()}" if not value.dim() else "a tensor"
    return repr(value)


def _candidates(argument: Any, current: Any, arguments: Arguments) -> Iterator[Any]:
    kind, name = str(argument.type), argument.name
    if name in EXTENTS:
        return
    if kind.startswith("Optional["):
        kind = kind.removeprefix("Optional[").removesuffix("]")
        yield None
    if kind == "bool":
        yield from (False, True)
    elif kind == "str":
        yield from (*WORDS.get(name, ()), UNKNOWN_WORD)
    elif kind == "int":
        yield from _integers(name, current, arguments)
    elif kind in ("number", "float"):
        yield from _numbers(name, current, arguments)
    elif kind == "List[int]":
        yield from _lists(name, current, arguments)
    elif kind == "List[bool]" and current:
        yield from (
            [not flag if i == place else flag for i, flag in enumerate(current)] for place in range(len(current))
        )
    elif kind in ("List[float]", "List[number]") and current:
        yield [0.5 * (i + 1) for i in range(len(current))]
        yield [-1.5 * (i + 1) for i in range(len(current))]
    elif kind == "Tensor" and current is None:
        yield from _tensors(name, arguments)


def _integers(name: str, current: Any, arguments: Arguments) -> Iterator[Any]:
    if name in ENUMERATIONS:
        yield from ENUMERATIONS[name]
    elif name in DTYPE_NAMES:
        yield from DTYPES
    elif name == "memory_format":
        yield from MEMORY_FORMATS
    elif name in DIMS:
        dims = _dims(arguments)
        yield from (*range(dims), -1, -dims, dims)
    elif name in ("k", "n") or (isinstance(current, int) and current > max(COUNTS)):
        first = _first(arguments)
        sizes = [] if first is None else sorted({n for size in first.shape for n in (size, size + 1)})
        yield from (*COUNTS, *sizes)
    else:
        yield from COUNTS


def _numbers(name: str, current: Any, arguments: Arguments) -> Iterator[Any]:
    if name in ORDER_NAMES:
        yield from ORDERS
    elif name in FACTOR_NAMES:
        yield from FACTORS
    elif name in END_NAMES:
        yield from ENDS
    elif name == "correction":
        first = _first(arguments)
        yield from (0, 1, 2, 0.5, 3 if first is None else first.numel())
    elif isinstance(current, int) and not _has_floats(arguments):
        yield from INTEGERS
    else:
        yield from NUMBERS


def _lists(name: str, current: Any, arguments: Arguments) -> Iterator[Any]:
    if name in DIMS:
        dims = _dims(arguments)
        yield from ([dim] for dim in range(dims))
        yield from ([-1], [0, -1], list(range(dims)), [], [0, 0], [dims])
        return
    if not isinstance(current, list) or not current:
        return
    yield [n + 1 for n in current]
    yield [current[0] + 1, *current[1:]]
    yield [*current[:-1], current[-1] + 1]
    yield [1] * len(current)
    yield [0] * len(current)
    yield [-1] * len(current)
    yield list(reversed(current))


def _tensors(name: str, arguments: Arguments) -> Iterator[Tensor]:
    """Values for an optional tensor that the call leaves out: a number for each channel, or for each element."""
    first = _first(arguments)
    if first is None or first.layout is not torch.strided or not first.numel():
        return
    if "mask" in name:
        yield torch.arange(first.numel()).reshape(first.shape) % 3 > 0
    elif name in ONE_ELEMENT:
        yield from (torch.tensor(value) for value in ONE_ELEMENT[name])
    elif name in ONE_A_CHANNEL:
        yield ramp(first.shape[1:2], first.dtype)
    elif name in ONE_AN_ELEMENT:
        yield ramp(first.shape, first.dtype)


def ramp(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Different numbers between 0.5 and 1.5; of an integer dtype ones and twos."""
    count = math.prod(shape)
    values = torch.arange(count) % 2 + 1 if not dtype.is_floating_point else torch.linspace(0.5, 1.5, max(count, 1))
    return values[:count].reshape(tuple(shape)).to(dtype)


def _first(arguments: Arguments) -> Tensor | None:
    return next((leaf for leaf in leaves(dict(arguments)) if isinstance(leaf, Tensor)), None)


def _dims(arguments: Arguments) -> int:
    first = _first(arguments)
    return 0 if first is None else first.dim()


def _has_floats(arguments: Arguments) -> bool:
    tensors = [leaf for leaf in leaves(dict(arguments)) if isinstance(leaf, Tensor)]
    return not tensors or any(t.is_floating_point() or t.is_complex() for t in tensors)
