"""The errors that mpsmith raises on purpose: each message is one line that says what to do next."""


class MpsmithError(Exception):
    """Something the user can mend. The command line prints the message alone and exits with `exit_code`."""

    exit_code = 2


def printable(text: str) -> str:
    """The text for one line of a terminal: what cannot be printed, in a name out of a damaged file, is a "?"."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_line(error: BaseException, limit: int = 400) -> str:
    """The start of an exception's text on one line of at most `limit` characters; its type's name where it has none."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
