"""Whether mpsmith runs from its repository, whose files belong to whoever works there, or was installed."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def is_checkout() -> bool:
    """True in a clone of the repository, an editable install of it included; an installed package is never written."""
    return (PACKAGE / "pyproject.toml").is_file()
