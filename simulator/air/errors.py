"""What can be wrong with a compiled Metal kernel or with the library that holds it."""

from __future__ import annotations

from ..errors import SimulatorError


class AirError(SimulatorError):
    """A compiled Metal kernel cannot be read, compiled or run on the host; the message names it where it can."""


class MalformedLibraryError(AirError):
    """A Metal library contradicts itself or ends too early.

    Messages quote names out of files that may be damaged: what cannot be printed on one line becomes a question mark.
    """

    def __init__(self, message: str) -> None:
        super().__init__("".join(character if character.isprintable() else "?" for character in message))
