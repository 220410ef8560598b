"""Resolves the releases whose kernels an audit launches, before any worker starts. Imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ...errors import MpsmithError
from ...registry.torch_release import public_version
from ..releases.surface.native_functions import installed_release
from ..releases.wheel.shipped import cached_library, full_release, shipped_library

NONE, AUTO = "none", "auto"


def releases_to_launch(asked: str, say: Callable[[str], None]) -> tuple[str | None, ...]:
    """The releases whose shipped kernels are launched, each with its library in the cache; (None,) for none.

    Args:
        asked: releases joined by commas, "none", or "auto": the installed torch's release if its kernels are available.
        say: receives messages on downloads, and on why "auto" uses none.

    Raises:
        MpsmithError: a release is unknown or ships no kernels, its kernels cannot be fetched, or there is no compiler.
    """
    if asked == NONE:
        return (None,)
    if asked == AUTO:
        return (_installed(say),)
    names = [name.strip() for name in asked.split(",")]
    if not all(names):
        raise MpsmithError(f"--shipped {asked!r}: name releases such as 2.13.0, joined by commas, or auto, or none")
    releases = tuple(dict.fromkeys(full_release(name) for name in names))
    for release in releases:
        _fetched(release, say)
    return releases


def coverage_of(release: str | None) -> str | None:
    """The coverage profile of a release's kernels; None for the installed torch's own."""
    return None if release is None or release == public_version(installed_release()) else release


def _installed(say: Callable[[str], None]) -> str | None:
    """The release of the installed torch if its kernels are available; None on a Mac, which launches its own."""
    if sys.platform == "darwin":
        return None
    release = public_version(installed_release())
    try:
        _fetched(release, say)
    except MpsmithError as error:
        say(f"without shipped kernels, so all evidence is dispatch only: {error}")
        return None
    return release


def _fetched(release: str, say: Callable[[str], None]) -> None:
    from ...simulator.clang import installed

    installed()  # checked first: without a compiler no kernel runs
    if cached_library(release) is None:
        say(f"taking the Metal kernels of torch {release} out of its macOS wheel, once (up to 250 MB)")
        shipped_library(release)
