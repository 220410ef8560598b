"""The declaration of a function in C++ or Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SignatureParameter:
    """One parameter of a function: its name, its type and, in Python, its default as text."""

    name: str
    type: str
    default: str | None = None
    keyword_only: bool = False


@dataclass(frozen=True)
class Signature:
    """A function's parameters and return type."""

    parameters: tuple[SignatureParameter, ...]
    returns: str

    @property
    def declared(self) -> str:
        """The parameters as C++ declares them."""
        return ", ".join(f"{parameter.type} {parameter.name}" for parameter in self.parameters)
