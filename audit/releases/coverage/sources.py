"""Finds the coverage of a torch: the installed one, a release, or a wheel."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ....errors import MpsmithError
from .. import data as release_data
from ..surface import native_functions
from ..wheel.archive import LIBRARY, UnpackedWheel, open_path
from ..wheel.build import WheelReading, read_wheel
from ..wheel.fetch import fetch_wheel, open_url
from . import ReleaseCoverage, from_data, from_wheel


def installed_coverage() -> ReleaseCoverage:
    """The coverage of the installed torch, from its own files and without importing it.

    Its binary is read if it is one for macOS; otherwise what the binary adds comes from the release data.
    """
    # native_functions.yaml is in torchgen/packaged/ATen/native of the folder that torch is installed in.
    site_packages = native_functions.installed_path().parents[4]
    archive = UnpackedWheel(site_packages, f"installed torch {native_functions.installed_release()}")
    return from_wheel(read_wheel(archive, with_binary=archive.has(LIBRARY)))


def release_coverage(release: str) -> ReleaseCoverage:
    """The coverage of a release: from the committed data, or from its wheel if the data lack it.

    Raises MpsmithError if the release is not available.
    """
    data = release_data.load()
    with contextlib.suppress(MpsmithError):
        return from_data(data, data.index(release))
    return from_wheel(read_release(release))


def read_release(release: str) -> WheelReading:
    """Read the wheel of a release, fetched into the cache first."""
    return read_wheel(open_path(fetch_wheel(release)))


def named_coverage(*, torch: str | None = None, wheel: Path | None = None, url: str | None = None) -> ReleaseCoverage:
    """The coverage that the command line's options name; without any, that of the installed torch.

    Raises MpsmithError if they name more than one torch, or none that can be read.
    """
    if sum(choice is not None for choice in (torch, wheel, url)) > 1:
        raise MpsmithError("name one torch: --torch or --wheel")
    if wheel is not None:
        return from_wheel(read_wheel(open_path(wheel)))
    if url is not None:
        return from_wheel(read_wheel(open_url(url)))
    return installed_coverage() if torch is None else release_coverage(torch)
