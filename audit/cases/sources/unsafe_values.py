"""Operators that do not get some special values: they are undefined for them, loop, or read out of bounds.

All others get them. If the CPU refuses a value, the device must refuse it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

import torch

FLOATING = ("float32", "float16", "bfloat16", "complex64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Exclusion:
    """Operators that do not get some values.

    Attributes:
        reason: for people.
        operators: shell patterns of their bare names ("linalg_svd", "nn.RNN"), or of one overload's ("cat.out").
        dtypes: with these dtypes; none for all.
        values: these classes; none for all.
    """

    reason: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def names(self, operator: str) -> bool:
        """Whether the exclusion is about an operator."""
        return any(fnmatchcase(name, pattern) for pattern in self.operators for name in (operator, bare(operator)))

    def holds(self, dtype: str, values: str) -> bool:
        """Whether the exclusion includes a class of values of a dtype."""
        return (not self.dtypes or dtype in self.dtypes) and (not self.values or values in self.values)


EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "the recurrence takes a step for each degree: an extreme one takes minutes",
        ("*_polynomial_*",),
        ("int64", "int32"),
    ),
    Exclusion(
        "the recurrence ends at NaN before it has a result, and returns what the memory held",
        ("*_polynomial_*",),
        FLOATING,
        ("nan",),
    ),
    Exclusion(
        "a bin, or a count of draws, for values that have none is undefined",
        (
            "histc",
            "histogram*",
            "_histogramdd*",
            "multinomial",
            "normal*",
            "bernoulli*",
            "binomial*",
            "masked_normalize",
        ),
    ),
    Exclusion(
        "C++ leaves undefined what integer NaN, infinities and values beyond its range become",
        (
            *("int", "long", "short", "byte", "char", "_cast_*", "to", "type_as", "_to_copy"),
            *("copy", "copy_", "_copy_from", "view_copy"),
        ),
        FLOATING,
        ("nan", "infinities", "largest finite"),
    ),
    Exclusion(
        "on the CPU lcm of the smallest integer divides by an overflowed number, which ends the process",
        ("lcm", "lcm_"),
        values=("extreme integers",),
    ),
    Exclusion(
        "fused attention leaves out the masked products that the composed one computes: zero times these is NaN",
        ("scaled_dot_product_*", "_scaled_dot_product_*", "nn.Transformer*", "nn.MultiheadAttention"),
        values=("nan", "infinities"),
    ),
    Exclusion(
        "it makes float64 tensors, which mps refuses before the decomposition refuses NaN: not the error of the CPU",
        ("linalg_pinv.out",),
        values=("nan", "infinities"),
    ),
    Exclusion(
        "LAPACK decides on the rank by comparisons with them, each time as the memory around lies",
        ("lstsq", "linalg_lstsq", "*lu_solve"),
        FLOATING,
        ("nan", "infinities"),
    ),
    Exclusion(
        "the CPU's LAPACK ends the process, or its loop",
        ("linalg_eigvals", "_linalg_eigvals", "linalg_eig", "linalg_cond"),
        FLOATING,
        ("nan", "infinities", "largest finite"),
    ),
    Exclusion(
        "integers are sizes or counts of memory to take",
        ("bincount", "repeat_interleave", "one_hot", "empty*", "new_empty*", "resize*", "_resize*", "set_*"),
        INTEGERS,
    ),
)

# Arguments whose range torch checks on the CPU alone, by operator and name.
UNCHECKED = frozenset({"quantile/q", "nanquantile/q"})
# Arguments that hold positions, lengths or bits of state, by name; "operator/name" where only one operator's does.
POSITIONS = frozenset(
    {
        *("index", "indices", "target", "targets", "offsets", "offset2bag", "bag_size", "batch_sizes", "lengths"),
        *("row_indices", "col_indices", "crow_indices", "ccol_indices", "plain_indices", "compressed_indices"),
        *("target_lengths", "input_lengths", "maximum_indices", "max_indices", "pivots", "LU_pivots", "repeats"),
        *("sobolstate", "quasi", "tensor_indices_or_sections", "sorter", "info", "scalars", "zero_point", "sections"),
        *("_shape_as_tensor/self", "combinations/r", "unfold_backward/input_sizes"),
    }
)


def excluded(operator: str, dtype: str, values: str) -> bool:
    """Whether an operator, named as in its source, does not get a class of values of a dtype."""
    return any(exclusion.holds(dtype, values) for exclusion in _of_operator(operator))


@cache
def _of_operator(operator: str) -> tuple[Exclusion, ...]:
    return tuple(exclusion for exclusion in EXCLUSIONS if exclusion.names(operator))


def bare(operator: str) -> str:
    """An operator's own name, whatever its source calls it: "linalg_svd" for "linalg.svd" and for "linalg_svd.U"."""
    if operator.startswith("nn.functional."):
        return operator.removeprefix("nn.functional.")
    first, _, rest = operator.removeprefix("special.").partition(".")
    if first == "nn":
        return operator
    return f"{first}_{rest}" if first in NAMESPACES else first


# What OpInfos write before a dot; schemas have an overload's name after it.
NAMESPACES = ("linalg", "fft", "masked", "torch", "signal")


def writes_by_name(overload: str) -> bool:
    """Whether an overload, by its name, writes into an argument: out= forms, and those in place."""
    operator, _, name = overload.partition(".")
    return operator.endswith("_") or name.endswith("out")


@cache
def is_kept_as_given(operator: str, place: int | str, *, integers: bool) -> bool:
    """Whether an argument, given by position or name, is not to be changed: indices, sizes and the like."""
    name = bare(operator)
    left_alone = UNCHECKED | POSITIONS if integers else UNCHECKED
    return any(argument in left_alone or f"{name}/{argument}" in left_alone for argument in _names(name, place))


def _names(operator: str, place: int | str) -> set[str]:
    """The names of the argument in the operator's overloads."""
    if isinstance(place, str):
        return {place}
    packet = getattr(torch.ops.aten, operator, None)
    schemas = [] if packet is None else [getattr(packet, name)._schema for name in packet.overloads()]
    return {schema.arguments[place].name for schema in schemas if place < len(schema.arguments)}
