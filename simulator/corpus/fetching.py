"""Puts the Metal of a package into the cache: archives with a known checksum, of which the needed files are kept."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ...cache import cache_folder
from ...errors import MpsmithError
from .projects import Project

_KEPT = (".metal", ".h", ".hpp")


def corpus_folder() -> Path:
    """Where trees of projects are kept."""
    return cache_folder() / "corpus"


def tree_of(project: Project, fetch: bool) -> Path | None:
    """The folder with a project's files; None where it is not there and no package index has it.

    Args:
        project: one that has an archive, or whose checkout a person put into the folder under its name and commit.
        fetch: whether an archive may be downloaded.

    Raises:
        MpsmithError: the archive cannot be fetched, or is not the one that the list knows.
    """
    folder = corpus_folder() / f"{project.name}-{project.version}"
    if folder.is_dir():
        return folder
    if not project.archive or not fetch:
        return None
    content = _download(project.archive)
    if hashlib.sha256(content).hexdigest() != project.sha256:
        raise MpsmithError(f"{project.archive} is not the archive that mpsmith knows: its checksum differs")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="corpus-", dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "tree"
        for name, data in _members(content, project.archive):
            if PurePosixPath(name).suffix in _KEPT and not _leaves(name):
                place = unpacked / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
        unpacked.mkdir(exist_ok=True)
        unpacked.rename(folder)
    return folder


def _leaves(name: str) -> bool:
    """Whether a member's name points outside of the folder that it is unpacked into."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def _members(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    if name.endswith((".zip", ".whl")):
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            for member in wheel.namelist():
                yield member, wheel.read(member)
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isfile() else None
            if file is not None:
                yield entry.name, file.read()


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return bytes(response.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise MpsmithError(f"cannot fetch {url} ({getattr(error, 'reason', error)}); check the network") from None
