"""What a user may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """` (did you mean mode or median?)` with up to three names near to `word`, to go behind a message.

    Where none is near it is `otherwise` in parentheses, or nothing.
    """
    candidates = get_close_matches(word, set(names), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(candidates)}?" if candidates else otherwise
    return f" ({hint})" if hint else ""
