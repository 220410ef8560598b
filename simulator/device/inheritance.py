"""The environment variable that makes child processes load the simulated device.

`mpsmith.autoload` reads it at the end of `import torch`, so programs need no change.
"""

from __future__ import annotations

import os

# "1" or "true" for the coverage of the installed torch, or the name of a profile; "0" or "" for no simulated device.
VARIABLE = "MPSMITH_SIMULATE"
_INSTALLED = ("1", "true", "yes", "on")


def is_wanted() -> bool:
    """Whether the variable requests the simulated device."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def wanted_profile() -> str | None:
    """The profile in the variable, or None for that of the installed torch."""
    name = os.environ.get(VARIABLE)
    return None if (name or "").lower() in _INSTALLED else name


def forget() -> None:
    """Remove the variable."""
    os.environ.pop(VARIABLE, None)
