"""How commands say things: results on standard output, what happens meanwhile on standard error."""

from __future__ import annotations

import json
import sys


def say(text: str) -> None:
    """A line about what is going on, kept apart from the results."""
    print(text, file=sys.stderr, flush=True)


def print_json(data: object) -> None:
    """A result for programs."""
    print(json.dumps(data, indent=1))


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 kernel`, `2 kernels`; `plural` where an s does not do."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
