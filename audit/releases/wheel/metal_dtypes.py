"""Which dtypes a release has Metal kernels for, as far as the names of its Metal functions show.

The names `softshrink_dense_half_half` and `index_fill_strided_long` contain operator, variant and types. A kernel is
necessary but not sufficient: the host code that launches it may still refuse the dtype. Operators that run on Apple's
MPSGraph have no functions here at all, so an empty answer says nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..surface.native_functions import functional_name

# Metal's name of each type in a function's name, and the dtype whose elements have it.
DTYPES: Mapping[str, str] = {
    "float": "float32",
    "half": "float16",
    "bfloat": "bfloat16",
    "float2": "complex64",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "uchar": "uint8",
    "bool": "bool",
}

# Words between the operator and the types that name a way of running it, not another operator.
VARIANTS = frozenset(
    """
    alpha bias block broadcast carry chunk cols combine contiguous copy dense dim final finalize flat forward ilp inner
    innermost inplace input k kernel large lhs merge mpp narrow nobias outer partial radix reduce reduction rhs row rows
    scalar single small stable strided t value vec
    """.split()  # noqa: SIM905 - as a list of strings it would be one word a line
)

# Block sizes and index types, such as `tptg256`, `bm64` and `i32`, and structures of parameters.
_TUNING = re.compile(r"\d+|[a-z]{1,4}\d+|int(32|64)|\w+Params")

# A kernel that copies elements of any type by their width; a type in its name is that of an index.
_ELEMENT_WIDTH = re.compile(r"\d+bit")

# Types that no tensor on mps has; names contain them in place of a type.
OTHER_TYPES = frozenset({"half2", "ushort", "uint", "ulong", "float3", "float4", "half4"})

# A cast variant computes in another type than its operand's, so its types are not evidence for either.
CASTS = frozenset({"cast", "castout"})

# Metal functions are named without the prefixes by which Python modules tell their operators apart.
PREFIXES = ("_", "special_", "linalg_", "_linalg_", "fft_", "_foreach_")


def dtypes_by_operator(overloads: Iterable[str], functions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each operator with native overloads, the dtypes of the Metal functions with its name.

    `overloads` are names without namespace; in-place and out overloads count for their functional operator.
    Operators without evidence are left out. Dtypes come in the order of DTYPES.
    """
    stems = _types_by_stem(functions)
    by_spelling: dict[str, set[str]] = defaultdict(set)
    for operator in {functional_name(overload) for overload in overloads}:
        for spelling in spellings(operator):
            by_spelling[spelling].add(operator)
    evidence: dict[str, set[str]] = defaultdict(set)
    for stem, types in stems.items():
        for operator in _operators_of(stem, by_spelling):
            evidence[operator] |= types
    return {
        operator: tuple(dtype for metal, dtype in DTYPES.items() if metal in types)
        for operator, types in sorted(evidence.items())
        if types
    }


def spellings(operator: str) -> set[str]:
    """Possible names of an operator's kernel."""
    return {operator} | {operator.removeprefix(prefix) for prefix in PREFIXES if operator.startswith(prefix)}


def _types_by_stem(functions: Iterable[str]) -> dict[tuple[str, ...], set[str]]:
    """By function name without types, the types at the position in the name that has most of them.

    `eq_dense_bool_float` and `eq_dense_bool_half` give float and half: the first type is always that of the result.
    If two positions have equally many types, the last one counts.
    """
    places: dict[tuple[str, ...], list[set[str]]] = defaultdict(list)
    for function in functions:
        words = function.split("_")
        if not CASTS.isdisjoint(words):
            continue
        types = [word for word in words if word in DTYPES or word in OTHER_TYPES]
        stem = words_without_types(function)
        if any(_ELEMENT_WIDTH.fullmatch(word) for word in stem):
            continue
        seen = places[stem]
        seen.extend(set() for _ in range(len(types) - len(seen)))
        for place, metal_type in enumerate(types):
            seen[place].add(metal_type)
    return {stem: max(reversed(seen), key=len) & DTYPES.keys() for stem, seen in places.items() if seen}


def words_without_types(function: str) -> tuple[str, ...]:
    """The words of a function's name, without those that are types of elements."""
    return tuple(word for word in function.split("_") if word not in DTYPES and word not in OTHER_TYPES)


def _operators_of(stem: tuple[str, ...], by_spelling: Mapping[str, set[str]]) -> set[str]:
    """The operators that a function's name begins with, if only words for variants follow; the longest match counts."""
    for length in range(len(stem), 0, -1):
        operators = by_spelling.get("_".join(stem[:length]))
        if operators:
            return operators if all(map(is_variant, stem[length:])) else set()
    return set()


def is_variant(word: str) -> bool:
    """Whether a word in a function's name denotes a variant, such as `dense` or `tptg256`."""
    return word in VARIANTS or _TUNING.fullmatch(word) is not None
