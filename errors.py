"""The errors that mpsmith raises on purpose. Each message is one line that says what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MpsmithError(Exception):
    """An error that the user can fix. The command line prints only the message and exits with `exit_code`."""

    exit_code = 2


def printable(text: str) -> str:
    """The text with "?" for each unprintable character, for example in a name from a damaged file."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_line(error: BaseException | str, limit: int = 400) -> str:
    """The start of a text, in one line of at most `limit` characters; the type's name for an exception without text."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def near(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """` (did you mean mode or median?)` with up to three names similar to `word`, to append to a message.

    If no name is similar, it is `otherwise` in parentheses, or "".
    """
    plain = {name.removeprefix("aten::"): name for name in names}  # a common prefix does not make names similar
    candidates = [plain[name] for name in get_close_matches(word.removeprefix("aten::"), plain, n=3, cutoff=0.65)]
    hint = f"did you mean {' or '.join(candidates)}?" if candidates else otherwise
    return f" ({hint})" if hint else ""
