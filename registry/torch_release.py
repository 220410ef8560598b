"""Names of torch's releases: what a version is, which release it belongs to, which of two came first."""

from __future__ import annotations

import re

_RELEASE = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?(?P<stage>.*)", re.DOTALL)


def public_version(version: str) -> str:
    """What a measurement was made with: `2.14.0.dev20260801` of `2.14.0.dev20260801+cpu`.

    Builds do not differ in their operators; nightlies and candidates do, so they stay apart from their release.
    """
    return version.partition("+")[0]


def base_version(version: str) -> str:
    """The release whose data stand for a version: `2.14.0` of `2.14.0.dev20260801`, `2.14.0rc1` and `2.14.0a0+gitabc`.

    Text that is no version comes back unchanged.
    """
    match = re.match(r"\d+\.\d+(?:\.\d+)?", version)
    return match.group() if match else version


def is_older(release: str, other: str) -> bool:
    """Whether torch `release` came before `other`; development versions and candidates come before their release.

    Raises ValueError for what is not written like a release.
    """
    return _order(release) < _order(other)


def _order(release: str) -> tuple[int, int, int, bool, int]:
    match = _RELEASE.fullmatch(public_version(release))
    if match is None:
        raise ValueError(f"'{release}' is not written like a release of torch")
    stage = re.search(r"\d+", match["stage"])
    return (
        int(match["major"]),
        int(match["minor"]),
        int(match["patch"] or 0),
        not match["stage"],
        int(stage.group()) if stage else 0,
    )
