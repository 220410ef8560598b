"""The errors that mpsmith raises on purpose: each message is one line that says what to do next."""


class MpsmithError(Exception):
    """Something the user can mend. The command line prints the message alone and exits with `exit_code`."""

    exit_code = 2
