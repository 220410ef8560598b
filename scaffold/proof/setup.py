"""Fetches the checker's compiler, headers and libraries from package registries, and keeps only the used parts.

Each is built in a temporary folder and moved into the cache when it is complete, so that an interrupted set-up leaves
nothing that looks finished.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...audit.releases.wheel.errors import WheelError
from ...audit.releases.wheel.fetch import fetch_wheel, pip_problem
from ...cache import cache_folder
from ...simulator.objc.apple import sources
from ...simulator.objc.apple.location import STUBS, apple_folder, metal_cpp_folder
from ...simulator.objc.apple.metal_header import metal_header
from ...simulator.objc.apple.mps_headers import GRAPH, SHADERS, mps_headers, selectors_in
from ..errors import ToolchainError
from ..release_files import COMMON_MPS, OPINFOS, check_folder, chosen_release, torch_folder
from .toolchain import EXTENSION_BUILDER, LIBRARIES, Toolchain, compiler, find

Report = Callable[[str], None]

_KEPT_FOLDERS = ("torch/include/", "torchgen/")
_KEPT_FILES = (*(f"torch/lib/{name}" for name in LIBRARIES), str(COMMON_MPS), str(OPINFOS), str(EXTENSION_BUILDER))


@dataclass(frozen=True)
class Component:
    """One part of the set-up: its name, its source and its licence."""

    name: str
    source: str
    licence: str


COMPONENTS = (
    Component(
        "compiler and linker", f"PyPI {sources.ZIGLANG} (clang and zig's Mach-O linker)", "MIT, Apache-2.0 (LLVM)"
    ),
    Component("torch for macOS", "PyPI torch, its headers and dylibs", "BSD-3-Clause"),
    Component("Metal.h", f"generated from metal-cpp in PyPI {sources.MLX_METAL}", "Apache-2.0 (Apple), MIT (mlx)"),
    Component(
        "MPS and MPSGraph headers", f"generated from npm @nativescript/macos-node-api {sources.NODE_API_VERSION}", "MIT"
    ),
    Component("Foundation.h, os/log.h", "written by hand in mpsmith", "BSD-3-Clause"),
)


def set_up(release: str | None, report: Report) -> Toolchain:
    """Fetch the missing parts for checking against a release (by default that of the installed torch).

    `report` gets a line for each step. Raises ToolchainError when a registry cannot be reached or the disk refuses;
    complete parts stay usable.
    """
    wanted = chosen_release(release)
    set_up_compiler(report)
    with _in_check_folder():
        _provide(torch_folder(wanted), f"torch {wanted} for macOS", lambda tell: _fetch_torch(wanted, tell), report)
    return find(wanted)


def set_up_compiler(report: Report) -> None:
    """Fetch the compiler and the declarations of Apple's frameworks where they are missing: what host code needs.

    `report` and errors are as those of `set_up`.
    """
    with _in_check_folder():
        clang = compiler()
        _provide(clang.folder if clang else None, f"compiler: {sources.ZIGLANG}", _fetch_zig, report)
        _provide(metal_cpp_folder(), "metal-cpp", _fetch_metal_cpp, report)
        _provide(apple_folder(), "Apple frameworks", _make_headers, report)


def compiler_is_set_up() -> bool:
    """Whether nothing that `set_up_compiler` fetches is missing."""
    return compiler() is not None and metal_cpp_folder().is_dir() and apple_folder().is_dir()


@contextmanager
def _in_check_folder() -> Iterator[None]:
    """Make the folder, and name it if the disk refuses."""
    try:
        check_folder().mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ToolchainError(f"cannot set up the checker in {check_folder()}: {error.strerror or error}") from None


def _provide(folder: Path | None, name: str, fetch: Callable[[Report], None], report: Report) -> None:
    if folder and folder.is_dir():
        report(f"{name}: present ({folder})")
    else:
        fetch(report)


def _fetch_zig(report: Report) -> None:
    report(f"compiler: fetching {sources.ZIGLANG} from PyPI (MIT; LLVM is Apache-2.0), about 90 MB")
    with _new_folder(check_folder() / "zig") as folder:
        _pip("install", "--no-deps", "--target", str(folder), sources.ZIGLANG)


def _fetch_torch(release: str, report: Report) -> None:
    report(f"torch {release} for macOS: fetching the wheel from PyPI (BSD-3-Clause), 70 to 140 MB")
    had = set((cache_folder() / "wheels").glob(f"torch-{release}-*.whl"))
    try:
        wheel = fetch_wheel(release)
    except WheelError as error:
        raise ToolchainError(str(error)) from None
    report(f"torch {release} for macOS: keeping its headers, {len(LIBRARIES)} dylibs and torchgen")
    with _new_folder(torch_folder(release)) as folder, zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(_KEPT_FOLDERS) or name in _KEPT_FILES]
        for name in names:
            archive.extract(name, folder)
    if wheel not in had:
        wheel.unlink()


def _make_headers(report: Report) -> None:
    with _new_folder(apple_folder()) as folder:
        _make_metal(folder, report)
        version = sources.NODE_API_VERSION
        report(f"MPSGraph: generating headers from npm @nativescript/macos-node-api {version} (MIT), 6 MB to fetch")
        _make_mps(folder, report)


def _fetch_metal_cpp(report: Report) -> None:
    report(f"metal-cpp: fetching {sources.MLX_METAL} from PyPI, which has it (Apache-2.0), 45 MB")
    with _new_folder(metal_cpp_folder()) as folder, tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        options = ("--no-deps", "--only-binary=:all:", "--platform", sources.MLX_METAL_PLATFORM, "--dest", temporary)
        _pip("download", *options, sources.MLX_METAL)
        (wheel,) = Path(temporary).glob("mlx_metal-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if sources.METAL_CPP in name and name.endswith((".hpp", "LICENSE.txt")):
                    archive.extract(name, temporary)
        (root,) = Path(temporary).rglob("metal_cpp")
        shutil.copytree(root, folder, dirs_exist_ok=True)


def _make_metal(folder: Path, report: Report) -> None:
    header = metal_header(metal_cpp_folder() / "Metal")
    _write(folder / "Metal" / "Metal.h", header.text)
    shutil.copy(metal_cpp_folder() / "LICENSE.txt", folder / "Metal" / "LICENSE.txt")
    report(f"Metal.h: {header.methods} methods, {len(header.left_out)} left out")


def _make_mps(folder: Path, report: Report) -> None:
    content = _download(sources.NODE_API_URL)
    if hashlib.sha512(content).hexdigest() != sources.NODE_API_SHA512:
        raise ToolchainError(f"{sources.NODE_API_URL} is not the package that mpsmith knows: its checksum differs")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {member.name: member for member in archive.getmembers()}
        types = {
            name: _member(archive, members[sources.NODE_API_TYPES.format(framework=name)]).decode()
            for name in (SHADERS, GRAPH)
        }
        binary = next(name for name in members if name.endswith(sources.NODE_API_BINARY) and "dSYM" not in name)
        selectors = selectors_in(_member(archive, members[binary]))
        licence = _member(archive, members["package/LICENSE"]).decode()
    foundation = (STUBS / "Foundation" / "Foundation.h").read_text()
    headers = mps_headers(types, selectors, (folder / "Metal" / "Metal.h").read_text(), foundation)
    for name, header in headers.items():
        _write(folder / name / f"{name}.h", header.text)
        _write(folder / name / "LICENSE.txt", licence)
        report(f"{name}.h: {header.methods} methods, {len(header.left_out)} left out")


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    if stream is None:
        raise ToolchainError(f"{sources.NODE_API_URL}: {member.name} is not a file")
    return stream.read()


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return bytes(response.read())
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise ToolchainError(f"cannot fetch {url} ({reason}); check the network and run the set-up again") from None


def _pip(*arguments: str) -> None:
    quiet = [] if sys.stderr.isatty() else ["--progress-bar=off", "--quiet"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, *quiet]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        problem = pip_problem(done.stderr) or "the package index has no such package; check the network and pip's index"
        raise ToolchainError(f"cannot fetch {arguments[-1]}: {problem.removeprefix('ERROR: ')}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` if the block succeeds, and is removed if it raises."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        folder = Path(temporary) / target.name
        folder.mkdir()
        yield folder
        folder.replace(target)
