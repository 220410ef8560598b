"""Which operator a shipped kernel belongs to, as far as its name shows.

`add_dense_float_float` is a kernel of the family `add`, which serves `aten::add` and `aten::_foreach_add`. A kernel
whose name begins with no operator's, such as `mb_sort_block_tptg32_float`, forms a separate family (`mb_sort`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile

from ..data import load
from ..surface.name_patterns import select_names
from ..surface.native_functions import functional_name
from .metal_dtypes import is_variant, spellings, words_without_types


class KernelFamilies:
    """The families of kernels by the names of operators: those that the given overloads belong to."""

    def __init__(self, overloads: Iterable[str]) -> None:
        self.operators = tuple(sorted({functional_name(overload) for overload in overloads}))
        by_spelling: dict[str, set[str]] = defaultdict(set)
        for operator in self.operators:
            for spelling in spellings(operator):
                by_spelling[spelling].add(operator)
        self._operators: Mapping[str, Collection[str]] = by_spelling

    def family(self, kernel: str) -> str:
        """The longest beginning of the kernel's name that is an operator's, else the part before its variants."""
        words = words_without_types(kernel)
        for length in range(len(words), 0, -1):
            beginning = "_".join(words[:length])
            if beginning in self._operators:
                return beginning
        own = takewhile(lambda word: not is_variant(word) and not any(map(str.isdigit, word)), words[1:])
        return "_".join((*words[:1], *own)) or kernel

    def operators_of(self, family: str) -> tuple[str, ...]:
        """The operators of aten, without namespace, that the family is named after; empty for other families."""
        return tuple(sorted(self._operators.get(family, ())))

    def select(self, kernels: Sequence[str], operators: Sequence[str]) -> list[str]:
        """The kernels of the operators that any pattern matches. Raises MpsmithError for a pattern without any."""
        chosen = set(select_names(self.operators, operators))
        return [kernel for kernel in kernels if not chosen.isdisjoint(self.operators_of(self.family(kernel)))]


@cache
def known_families() -> KernelFamilies:
    """The families by every operator that any release of the committed data has."""
    return KernelFamilies(load().overloads)
