"""The order of torch's releases: a measurement of an older release replaces none of a newer one."""

from __future__ import annotations

import re

_RELEASE = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?(?P<stage>.*)", re.DOTALL)


def plain_release(version: str) -> str:
    """A version of torch without its build, "2.13.0" of "2.13.0+cpu": builds do not differ in their operators."""
    return version.split("+")[0]


def is_older(release: str, other: str) -> bool:
    """Whether torch `release` came before `other`; development versions and candidates come before their release.

    Raises ValueError for what is not written like a release.
    """
    return _order(release) < _order(other)


def _order(release: str) -> tuple[int, int, int, bool, int]:
    match = _RELEASE.fullmatch(release)
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
