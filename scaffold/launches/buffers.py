"""The buffers that a launch binds and the results that its host allocates."""

from __future__ import annotations

from dataclasses import dataclass

from ..operators.observation import FOLLOWS, Size


@dataclass(frozen=True)
class BoundBuffer:
    """One `[[buffer(n)]]`.

    Attributes:
        name: the argument's or result's name, or one made from it.
        metal: the type of the shader's parameter, without qualifiers.
        written: whether the kernel writes it.
        host: the C++ type that a number is converted to, empty for tensors.
        many: whether it is a list: its length, then its elements.
        aspect: the property of the argument `of` that is bound: `sizes` or `given`; empty for its value.
        of: the argument that `aspect` belongs to.
        optional: whether the argument may be left out.
        choices: the names of its values 0, 1 and so on, with synonyms; empty if any number is valid.
        is_word: whether the argument is a string, one of the choices.
    """

    name: str
    metal: str
    written: bool = False
    host: str = ""
    many: bool = False
    aspect: str = ""
    of: str = ""
    optional: bool = False
    choices: tuple[tuple[str, ...], ...] = ()
    is_word: bool = False

    @property
    def number_of(self) -> dict[str, int]:
        """The number that the shader gets for each word."""
        return {word: number for number, words in enumerate(self.choices) for word in words}

    @property
    def declaration(self) -> str:
        """The shader's parameter, without its attribute."""
        if self.many:
            return f"constant {self.metal}* {self.name}"
        if self.host:
            return f"constant {self.metal}& {self.name}"
        return f"device {'' if self.written else 'const '}{self.metal}* {self.name}"


ROW_LENGTH = BoundBuffer("row_length", "long", host="int64_t")


@dataclass(frozen=True)
class Result:
    """A tensor that the functional form allocates.

    Attributes:
        name: its name in the host code.
        metal: its element type in the shader.
        element: FOLLOWS, or the dtype's name.
        shape: the rule for its shape, as in an `ObservedTensor`; empty if none is known.
        sizes: its dimensions, if no rule gives its whole shape.
        is_loss: whether it is a 0-dim one unless `reduction` says "none".
        requested_by: the flag that requests it, without which it has no elements; empty if there is none.
    """

    name: str
    metal: str
    element: str = FOLLOWS
    shape: str = ""
    sizes: tuple[Size, ...] = ()
    is_loss: bool = False
    requested_by: str = ""
