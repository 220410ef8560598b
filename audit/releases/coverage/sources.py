"""Finds the coverage of the torch that the user means: installed, a release, or a wheel that is somewhere."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ....errors import MpsmithError
from .. import data as release_data
from ..surface import native_functions
from ..wheel.archive import LIBRARY, Archive, UnpackedWheel, open_path
from ..wheel.build import WheelReading, read_wheel
from ..wheel.expected_failures import MACOS
from ..wheel.fetch import fetch_wheel, open_remote, open_url
from . import ReleaseCoverage, from_data, from_wheel


def installed_coverage(macos: float = MACOS) -> ReleaseCoverage:
    """The coverage of the installed torch, from its own files and without importing it.

    Its binary is read where it is one for macOS; elsewhere what the binary adds comes from the release data.
    """
    # native_functions.yaml lies in torchgen/packaged/ATen/native of the folder that torch is installed in.
    site_packages = native_functions.installed_path().parents[4]
    archive = UnpackedWheel(site_packages, f"installed torch {native_functions.installed_release()}")
    return from_wheel(read_wheel(archive, with_binary=archive.has(LIBRARY), macos=macos))


def release_coverage(release: str, *, fetch: bool = False, yaml_only: bool = False) -> ReleaseCoverage:
    """The coverage of a release: from the committed data, or from its wheel for one that they do not have.

    `fetch` reads the wheel in any case; `yaml_only` reads only its yaml, by HTTP Range.
    Raises MpsmithError when the release cannot be had.
    """
    if not fetch:
        data = release_data.load()
        with contextlib.suppress(MpsmithError):
            return from_data(data, data.index(release))
    return from_wheel(read_release(release, yaml_only=yaml_only))


def read_release(release: str, *, yaml_only: bool = False, macos: float = MACOS) -> WheelReading:
    """Read the wheel of a release, fetched into the cache first unless only its yaml is wanted."""
    archive: Archive = open_remote(release) if yaml_only else open_path(fetch_wheel(release))
    return _read(archive, yaml_only, macos)


def _read(archive: Archive, yaml_only: bool, macos: float) -> WheelReading:
    return read_wheel(archive, with_binary=not yaml_only, with_tests=not yaml_only, macos=macos)


def named_coverage(
    *,
    torch: str | None = None,
    wheel: Path | None = None,
    url: str | None = None,
    fetch: bool = False,
    yaml_only: bool = False,
    macos: float = MACOS,
) -> ReleaseCoverage:
    """The coverage that the options of the command line name; the installed torch's without any.

    Raises MpsmithError when they name more than one torch, or none that can be read.
    """
    if sum(choice is not None for choice in (torch, wheel, url)) > 1:
        raise MpsmithError("name one torch: --torch or --wheel")
    if wheel is not None:
        return from_wheel(_read(open_path(wheel), yaml_only, macos))
    if url is not None:
        return from_wheel(_read(open_url(url), yaml_only, macos))
    if torch is None:
        return installed_coverage(macos)
    # The committed expectations are those for one version of macOS; another one needs the sources.
    return release_coverage(torch, fetch=fetch or macos != MACOS, yaml_only=yaml_only)
