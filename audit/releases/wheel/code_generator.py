"""Gets Inductor's code generator for mps, and the Metal headers, from a release's wheel.

The generator is Python and the headers are text, so those of any release can be read on any machine. If the wheel is
not in the cache, a few hundred kilobytes are fetched.
"""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath

from ....cache import cache_folder
from ....registry.torch_release import base_version, is_older
from .errors import WheelError
from .fetch import open_release, require_version

GENERATOR = "torch/_inductor/codegen/mps.py"
HEADERS = "torch/include/c10/metal/"
FIRST_RELEASE = "2.7.0"


def code_generator(release: str) -> Path:
    """A folder with `GENERATOR` and the headers of a release, with the same paths as in its wheel.

    They come from the cache, else from the wheel, of which only these files are fetched. Raises WheelError for a
    release that does not exist or whose Inductor generates no Metal, UnreachableError if the index cannot be reached.
    """
    require_version(release)
    folder = cache_folder() / "codegen" / release
    if folder.is_dir():
        return folder
    if is_older(base_version(release), FIRST_RELEASE):
        raise WheelError(f"torch {release} generates no Metal under torch.compile; {FIRST_RELEASE} is the first to")
    archive = open_release(release)
    if not archive.has(GENERATOR):
        raise WheelError(f"{archive.label} has no {GENERATOR}: its torch.compile generates no Metal")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as temporary:
            whole = Path(temporary, "whole")
            for name in [GENERATOR, *archive.names(HEADERS)]:
                path = whole.joinpath(*PurePosixPath(name).parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
            if not folder.is_dir():  # of two processes that want the same release at once, the first one's is kept
                whole.replace(folder)
    except OSError as error:
        raise WheelError(
            f"cannot keep the code generator in {folder}: {error.strerror or error}; set MPSMITH_CACHE to a folder"
            " on another disk"
        ) from None
    return folder
