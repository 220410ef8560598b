"""An operation of AIR as a module declares it: the parts of its name, and its types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..llvm_text import VectorType, vector_type

_TYPE = re.compile(r"(?:v\d+)?(?:f16|bf16|f32|i1|i8|i16|i32|i64)|p\d(?:f16|bf16|f32)")


@dataclass(frozen=True)
class Operation:
    """`declare RETURNS @NAME(TYPES)`, a function that the host must define."""

    name: str
    returns: str
    types: tuple[str, ...]

    @cached_property
    def words(self) -> list[str]:
        """The words of the name without `air.`, `fast_` and the types: `atomic global add u`.

        The `fast_` overloads may lose precision on a GPU; they need not, and here they do not.
        """
        words = self.name.removeprefix("air.").removeprefix("fast_").split(".")
        return [word for word in words if not _TYPE.fullmatch(word)]

    @property
    def is_fast(self) -> bool:
        """Whether it is the `fast_` form."""
        return self.name.startswith("air.fast_")

    @property
    def key(self) -> str:
        """The first word."""
        return self.words[0]

    @property
    def sign(self) -> str:
        """`s` or `u` for signed and unsigned integers, else empty."""
        return next((word for word in self.words[1:] if word in ("s", "u")), "")

    @property
    def result(self) -> VectorType:
        """The type of the result."""
        return vector_type(self.returns)

    def argument(self, position: int) -> VectorType:
        """The type of an argument. Raises IndexError if there is none."""
        return vector_type(self.types[position])
