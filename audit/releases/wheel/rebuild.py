"""Computes the committed release data again, from wheels: `python -m mpsmith.audit.releases.wheel.rebuild`.

It needs about 100 MB for each release that is not in the cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ....cache import is_checkout
from ....errors import MpsmithError
from .. import data as release_data
from .archive import open_path
from .build import combine, read_wheel
from .fetch import fetch_wheel


def rebuild(added: Sequence[str], wheels: Path | None) -> list[str]:
    """Read the wheels of all recorded releases and of `added`, and write the data; returns the releases.

    `wheels`: a folder with the wheels; without it they are fetched.
    Raises MpsmithError outside of a clone, and for a wheel that is not available.
    """
    if not is_checkout():
        raise MpsmithError("the release data are files of mpsmith's repository; rebuild them in a clone of it")
    recorded = [facts.release for facts in release_data.load_facts()]
    releases = list(dict.fromkeys([*recorded, *added]))
    readings = []
    for release in releases:
        print(f"reading the wheel of torch {release}", file=sys.stderr)
        readings.append(read_wheel(open_path(_wheel_of(release, wheels))))
    release_data.save(combine(readings))
    return releases


def _wheel_of(release: str, folder: Path | None) -> Path:
    if folder is None:
        return fetch_wheel(release)
    wheels = sorted(folder.glob(f"torch-{release}-*.whl"))
    if not wheels:
        raise MpsmithError(f"{folder} has no wheel of torch {release}")
    return wheels[0]


def main() -> None:
    """Rebuild the data as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m mpsmith.audit.releases.wheel.rebuild", description=__doc__)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="releases to add to the data")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="take wheels from this folder, not from the index")
    options = parser.parse_args()
    try:
        releases = rebuild(options.releases, options.wheels)
    except MpsmithError as error:
        sys.exit(f"error: {error}")
    print(f"wrote the data of {len(releases)} releases to {release_data.FOLDER}")


if __name__ == "__main__":
    main()
