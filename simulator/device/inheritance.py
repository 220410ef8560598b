"""How processes that a program starts come to have the simulated device: by an environment variable that they inherit.

`mpsmith.autoload` reads it at the end of `import torch`, so that nothing in the program has to know.
"""

from __future__ import annotations

import os

# "1" for the coverage of the installed torch, or the name of a profile; "0" or nothing for no simulated device.
VARIABLE = "MPSMITH_SIMULATE"
_INSTALLED = "1"


def is_wanted() -> bool:
    """Whether the variable asks for the simulated device."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def wanted_profile() -> str | None:
    """The profile that the variable names, None for that of the installed torch."""
    name = os.environ.get(VARIABLE)
    return None if name == _INSTALLED else name


def let_children_inherit(profile: str | None) -> None:
    """Let the processes that this one starts have the simulated device with this profile."""
    os.environ[VARIABLE] = profile or _INSTALLED


def forget() -> None:
    """Let this process, and those that it starts, choose for themselves."""
    os.environ.pop(VARIABLE, None)
