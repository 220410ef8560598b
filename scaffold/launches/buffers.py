"""What a launch binds and what its host allocates: the words of a launch, in no language yet."""

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
        many: whether it is a list: how many there are, then each.
        says: what it says of the argument `of`: `sizes` of a tensor, `given` of an optional one; empty for its value.
        of: the argument that `says` is about.
        optional: whether the argument may be left out.
        choices: what its values 0, 1 and so on are called, synonyms together; empty where any number will do.
        is_word: whether the argument is a word, one of the choices, and no number.
    """

    name: str
    metal: str
    written: bool = False
    host: str = ""
    many: bool = False
    says: str = ""
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
        name: what the host calls it.
        metal: its element type in the shader.
        element: FOLLOWS, or the dtype's name.
        shape: the rule that gives its shape, as of an `ObservedTensor`; empty where none is known.
        sizes: its dimensions one by one, where that says more.
        is_loss: whether it is a 0-dim one unless `reduction` says "none".
        asked_by: the argument without which it has no elements; empty where nothing is asked.
    """

    name: str
    metal: str
    element: str = FOLLOWS
    shape: str = ""
    sizes: tuple[Size, ...] = ()
    is_loss: bool = False
    asked_by: str = ""
