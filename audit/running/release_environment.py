"""An environment with another release of torch and this mpsmith: what that release does, where an overlay guesses.

pip makes it, with the indexes that its user has configured, and the cache keeps it: torch is hundreds of megabytes.
What else an audit needs has the versions that are installed here, so that both make the same cases.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from filelock import FileLock

from ...cache import PACKAGE, cache_folder
from ...errors import MpsmithError
from ..releases.wheel.fetch import pip_problem, require_version

OPTION = "--release"
# Written last: an environment without it was never finished.
_COMPLETE = "mpsmith-complete"
# What an audit uses where it is there: the compiler of Metal, and more samples of some OpInfos.
_BESIDE = ("ziglang", "scipy")
# The variables by which a user names indexes; pip's files may name some too, where the advice is one line too many.
_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
# Beside PyPI, as it has little else than torch; of two builds of a release pip takes the one marked "+cpu".
_CPU_BUILDS = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu"


class CannotMakeEnvironmentError(MpsmithError):
    """pip cannot install a release, or the disk refuses."""


def python_with(release: str, say: Callable[[str], None]) -> Path:
    """The Python of an environment with this release of torch, which is made unless the cache has it.

    Raises CannotMakeEnvironmentError that says what pip or the disk refused; nothing half made stays.
    """
    require_version(release)
    folder = cache_folder() / "environments" / "torch-{}-python{}.{}".format(release, *sys.version_info[:2])
    python = folder / "bin" / "python"
    wanted = "\n".join(_requirements(release))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):  # two audits that want the same release make it once
            complete = folder / _COMPLETE
            if not complete.is_file() or complete.read_text(encoding="utf-8") != wanted:
                say(f"making an environment with torch {release} in {folder}")
                if sys.platform == "linux" and not any(name in os.environ for name in _INDEXES):
                    say(f"PyPI's torch for Linux brings gigabytes of CUDA; {_CPU_BUILDS} has builds without")
                _make(folder, python, wanted.split("\n"), release)
                complete.write_text(wanted, encoding="utf-8")
            _put_this_mpsmith_into(folder)
    except OSError as error:
        raise CannotMakeEnvironmentError(
            f"cannot keep an environment in {folder}: {error.strerror or error}; set MPSMITH_CACHE to a folder on"
            " another disk"
        ) from None
    return python


def audit_again(python: Path, arguments: Sequence[str]) -> int:
    """Run the command line that was given, such as `audit --compile --release 2.15.0`, there; its exit code."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    command = [str(python), "-m", "mpsmith", *without_release(arguments)]
    return subprocess.run(command, env=environment, check=False).returncode


def without_release(arguments: Sequence[str]) -> list[str]:
    """The arguments but for `--release 2.15.0`, or `--release=2.15.0`."""
    kept = [each for each in arguments if not each.startswith(f"{OPTION}=")]
    while OPTION in kept:
        at = kept.index(OPTION)
        del kept[at : at + 2]
    return kept


def _make(folder: Path, python: Path, requirements: Sequence[str], release: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
        _install(python, requirements, release)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _install(python: Path, requirements: Sequence[str], release: str) -> None:
    command = [str(python), "-m", "pip", "install", "--only-binary=torch", "--progress-bar=off", *requirements]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        problem = pip_problem(done.stderr) or f"the index has no torch {release} for this Python and system"
        raise CannotMakeEnvironmentError(f"cannot make an environment with torch {release}: {problem}")


def _requirements(release: str) -> list[str]:
    """The release of torch, and what mpsmith needs beside it, in the versions of this environment."""
    names = sorted({*_dependencies(), *filter(_is_installed, _BESIDE)} - {"torch"})
    return [f"torch=={release}", *(f"{name}=={version(name)}" for name in names)]


def _dependencies() -> Iterator[str]:
    """The names of the packages that mpsmith needs, without those of its extras."""
    try:
        stated = requires("mpsmith") or []
    except PackageNotFoundError:
        raise CannotMakeEnvironmentError(
            "what mpsmith needs is written in its installation, and there is none: pip install -e ."
        ) from None
    for requirement in stated:
        name = re.match(r"[\w.-]+", requirement)
        if name and "extra ==" not in requirement:
            yield name.group()


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _put_this_mpsmith_into(folder: Path) -> None:
    """Let the environment import the mpsmith that runs now, not a copy of it that grows old."""
    (packages,) = folder.glob("lib/python*/site-packages")
    place = packages / "mpsmith"
    if place.is_symlink() and place.resolve() == PACKAGE.resolve():
        return
    place.unlink(missing_ok=True)
    place.symlink_to(PACKAGE, target_is_directory=True)
