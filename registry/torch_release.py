"""Versions of torch: which release a version belongs to, and which of two versions is older."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def public_version(version: str) -> str:
    """The version without its build: `2.14.0.dev20260801` of `2.14.0.dev20260801+cpu`.

    Builds of a version have the same operators. Nightlies and release candidates may differ from their release.
    """
    return version.partition("+")[0]


def base_version(version: str) -> str:
    """The release that a version belongs to: `2.14.0` of `2.14.0.dev20260801`, `2.14.0rc1` and `2.14.0a0+gitabc`.

    Text that is not a version comes back unchanged.
    """
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def is_older(release: str, other: str) -> bool:
    """Whether torch `release` came before `other`; development versions and candidates come before their release.

    Raises ValueError for text that is not a version.
    """
    return _order(release) < _order(other)


def _order(release: str) -> Version:
    try:
        version = Version(public_version(release))
    except InvalidVersion:
        version = Version("0")
    if len(version.release) < 2:
        raise ValueError(f"'{release}' is not written like a release of torch")
    return version
