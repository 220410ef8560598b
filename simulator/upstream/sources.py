"""The host code of a release: from the cache, PyTorch's repository, or Debian's source package of that release."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from ...cache import cache_folder
from ..errors import UpstreamError

_REPOSITORY = "https://github.com/pytorch/pytorch"
# What a build reads: 2 MB of a tree.
_FOLDERS = ("aten/src/ATen/mps", "aten/src/ATen/native/mps")
_FILES = ("aten/src/ATen/native/native_functions.yaml", "aten/src/ATen/native/tags.yaml", "aten/src/ATen/native/*.cpp")
# Releases that Debian has: for a machine that reaches Debian, and not GitHub.
_IN_DEBIAN = ("1.13.1", "2.6.0")
_DEBIAN = "http://deb.debian.org/debian/pool/main/p/pytorch/pytorch_{}+dfsg.orig.tar.xz"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_TIMEOUT_S = 600


def is_release(name: str) -> bool:
    """Whether it is written as a release, such as `2.6.0`."""
    return _RELEASE.fullmatch(name) is not None


def source_of_release(release: str) -> Path:
    """The folder with the host code of a release such as `2.6.0`, fetched once.

    Raises UpstreamError if it is not a release, or neither source can be reached.
    """
    if not is_release(release):
        raise UpstreamError(
            f"{release!r} is not a release of PyTorch: give one such as 2.6.0, or a folder with its source"
        )
    folder = cache_folder() / "upstream" / "sources" / release
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as temporary:
        made = Path(temporary) / release
        problem = _checked_out(release, made)
        if problem and release in _IN_DEBIAN:
            other = _unpacked(_DEBIAN.format(release), made)
            problem = f"{problem}; {other}" if other else ""
        if problem:
            raise UpstreamError(
                f"cannot fetch the source of PyTorch {release}: {problem}; check the network, or give a folder with it"
            )
        made.rename(folder)
    return folder


def wanted_files(root: Path) -> list[Path]:
    """The files of a tree that a build reads, in a fixed order."""
    below = (path for folder in _FOLDERS for path in (root / folder).rglob("*"))
    return sorted(path for path in (*below, *(p for pattern in _FILES for p in root.glob(pattern))) if path.is_file())


def _checked_out(release: str, target: Path) -> str:
    """Clone the folders of the release's tag; returns why that failed, or ""."""
    clone = ("clone", "--quiet", "--depth", "1", "--branch", f"v{release}", "--filter=blob:none", "--no-checkout")
    wanted = (f"/{place}" for place in (*_FOLDERS, *_FILES))
    steps = (
        ("git", *clone, _REPOSITORY, str(target)),
        ("git", "-C", str(target), "sparse-checkout", "set", "--no-cone", *wanted),
        ("git", "-C", str(target), "checkout", "--quiet"),
    )
    for words in steps:
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"git: {error}"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["git failed without a message"])[-1]
    return ""


def _unpacked(address: str, target: Path) -> str:
    """Unpack the folders from a source package; returns why that failed, or ""."""
    with tempfile.NamedTemporaryFile(suffix=".tar.xz") as package:
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response:
                while block := response.read(1 << 20):
                    package.write(block)
            package.flush()
            with tarfile.open(package.name) as archive:
                for member in archive:
                    place = Path(*Path(member.name).parts[1:])
                    if member.isfile() and _is_wanted(place):
                        file = archive.extractfile(member)
                        (target / place).parent.mkdir(parents=True, exist_ok=True)
                        (target / place).write_bytes(file.read() if file else b"")
        except (OSError, urllib.error.URLError, tarfile.TarError) as error:
            return f"{address}: {error}"
    return "" if target.is_dir() else f"{address} has no host code for mps"


def _is_wanted(place: Path) -> bool:
    below = any(place.is_relative_to(folder) for folder in _FOLDERS)
    return below or any(place.match(pattern) and str(place.parent) == str(Path(pattern).parent) for pattern in _FILES)
