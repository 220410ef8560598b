"""Fetches wheels through pip, because pip uses the user's indexes, proxies, certificates and credentials."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....cache import cache_folder
from .archive import Archive, WheelFile, open_path, require_apple_silicon
from .errors import RangesNotServedError, UnreachableError, WheelError
from .http_range import RangeFile

# Newest first: a release is published for the Python versions of its time, so one of these fits every release.
PYTHON_VERSIONS = ("3.13", "3.12", "3.11", "3.10", "3.9", "3.8")
PLATFORMS = ("macosx_14_0_arm64", "macosx_13_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64")

UNREACHABLE = "the package index cannot be reached; check the network"


def fetch_wheel(release: str) -> Path:
    """The wheel of a release such as `2.15.0`, from the cache or through pip, which shows its progress.

    Only whole, readable wheels are cached. Raises WheelError if the release does not exist (known ones are listed), if
    there is no network or if the disk is full.
    """
    require_version(release)
    cached = cached_wheel(release)
    if cached is not None:
        return cached
    folder = wheel_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as temporary:
            _download(release, Path(temporary))
            (wheel,) = Path(temporary).glob("torch-*.whl")
            require_apple_silicon(WheelFile(wheel, wheel.name))
            return wheel.replace(folder / wheel.name)
    except OSError as error:
        raise WheelError(f"cannot keep the wheel in {folder}: {error.strerror or error}") from None


def wheel_folder() -> Path:
    """The folder of cached wheels. It may not exist yet."""
    return cache_folder() / "wheels"


def cached_wheel(release: str) -> Path | None:
    """The wheel of a release in the folder, fetched before or put there by a user; None if there is none."""
    return next(iter(sorted(wheel_folder().glob(f"torch-{release}-*.whl"))), None)


def open_release(release: str) -> Archive:
    """The wheel of a release, from the cache, else from the index, of which only the parts that are read are fetched.

    If the server serves no ranges, it is fetched whole. Raises UnreachableError that says where else to put a wheel.
    """
    try:
        cached = cached_wheel(release)
        if cached is not None:
            return open_path(cached)
        try:
            return open_remote(release)
        except RangesNotServedError:
            return open_path(fetch_wheel(release))
    except UnreachableError as error:
        raise UnreachableError(f"{error}, or put a wheel of it for macOS on arm64 into {wheel_folder()}") from None


def open_remote(release: str) -> Archive:
    """The wheel of a release on the index, read with HTTP Range requests; pip only finds its URL."""
    require_version(release)
    return open_url(_wheel_url(release))


def open_url(url: str) -> Archive:
    """A wheel at a URL, read with HTTP Range requests. Raises WheelError if it is not one for macOS on arm64."""
    archive = WheelFile(RangeFile(url), url)
    require_apple_silicon(archive)
    return archive


def require_version(release: str) -> None:
    """Raise WheelError for text that cannot be a release of torch."""
    if not re.fullmatch(r"\d+(\.\d+)*([a-z0-9.+]*)", release):
        raise WheelError(f"{release} is not a version of torch; write one such as 2.15.0")


def _download(release: str, folder: Path) -> None:
    arguments = ["download", "--dest", str(folder)]
    if not sys.stderr.isatty():
        arguments.append("--quiet")
    _first_that_fits(release, arguments)


def _wheel_url(release: str) -> str:
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as folder:
        report = Path(folder) / "report.json"
        arguments = ["install", "--dry-run", "--ignore-installed", "--quiet"]
        _first_that_fits(release, [*arguments, "--target", folder, "--report", str(report)])
        (entry,) = json.loads(report.read_text())["install"]
    return str(entry["download_info"]["url"])


def _first_that_fits(release: str, arguments: Sequence[str]) -> None:
    """Run pip for one Python version after another until the release has a wheel for it."""
    offered: set[str] = set()
    for command in _commands(release, arguments):
        output = _run_pip(command)
        if output is None:
            return
        problem = pip_problem(output)
        if problem:
            kind = UnreachableError if problem == UNREACHABLE else WheelError
            raise kind(f"cannot fetch torch {release}: {problem}")
        offered |= _versions_offered(output)
    versions = ", ".join(sorted(offered, key=_version_key)) or "none"
    raise WheelError(f"the index has no torch {release} for macOS on arm64; it has: {versions}")


def _commands(release: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    platforms = [part for platform in PLATFORMS for part in ("--platform", platform)]
    for python in PYTHON_VERSIONS:
        yield [
            *(sys.executable, "-m", "pip", *arguments),
            *("--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", python),
            *platforms,
            f"torch=={release}",
        ]


def _run_pip(command: Sequence[str]) -> str | None:
    """Return None if pip succeeds, else its stderr. Its stdout, which is progress, goes to our stderr."""
    # A constraint of the user's, such as torch<=2.14.1, is about what gets installed. A wheel is only read here.
    environment = {**os.environ, "PIP_CONSTRAINT": os.devnull}
    process = subprocess.run(
        command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False, env=environment
    )
    return None if process.returncode == 0 else process.stderr


def pip_problem(output: str) -> str | None:
    """A message for the user from pip's error output; None if the release has no wheel for this Python version."""
    for pattern, problem in (
        (r"No module named pip", "pip is not installed in this Python; download the wheel and use --wheel"),
        (r"No space left on device", "the disk is full; set MPSMITH_CACHE to a folder on another one"),
        (
            r"NewConnectionError|Failed to establish|Temporary failure|getaddrinfo|ConnectTimeout|ProxyError|SSLError",
            None,
        ),
    ):
        if re.search(pattern, output):
            return problem or UNREACHABLE
    if "No matching distribution" in output:
        return None
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "pip failed without a message"


def _versions_offered(output: str) -> set[str]:
    listed = re.search(r"\(from versions: ([^)]*)\)", output)
    return {name for name in re.split(r",\s*", listed.group(1)) if name and name != "none"} if listed else set()


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
