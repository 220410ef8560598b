"""A number with its noun, as all text for people writes it."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 kernel`, `1,234 kernels`; `plural` if it is not the singular with an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
