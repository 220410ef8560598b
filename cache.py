"""The folder for what mpsmith can compute or fetch again at any time."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The user's cache folder for mpsmith, or the one that the variable MPSMITH_CACHE names. It may not exist yet."""
    chosen = os.environ.get("MPSMITH_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("mpsmith")
