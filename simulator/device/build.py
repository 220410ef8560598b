"""Builds the simulated device's C++ library on first use, and caches it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...cache import cache_folder
from ..errors import SimulatorError

SOURCE_FOLDER = Path(__file__).with_name("csrc")
# Also the file name of the library; it must not be the name of a Python module.
LIBRARY_NAME = "mpsmith_simulated_device"
# Optimization takes little time compared with the front end. Per-operator headers keep <ATen/Functions.h> out.
COMPILER_FLAGS = ["-O1", "-g0", "-DAT_PER_OPERATOR_HEADERS"]


def load_library() -> None:
    """Load the simulated device's library into this process; build it first if it is not cached.

    Raises:
        SimulatorError: no C++ compiler, a failed compilation (with the path of its log), or an unusable cache folder.
    """
    import torch

    folder = libraries_folder()
    library = folder / _build_key() / f"{LIBRARY_NAME}.so"
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        if not library.exists():
            with _only_process_in(library.parent):
                if not library.exists():
                    _build_and_load(library)
                    return
    except OSError as error:
        raise SimulatorError(
            f"cannot keep the simulated device in {folder}: {error.strerror}; "
            "set MPSMITH_CACHE to a folder that can be written"
        ) from error
    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise SimulatorError(f"cannot load {library}: {error}; delete it to build it anew") from error


def libraries_folder() -> Path:
    """The folder of built libraries."""
    return cache_folder() / "simulated-device"


def source_files() -> list[Path]:
    """Every C++ file of the simulated device, headers included, sorted."""
    return sorted([*SOURCE_FOLDER.glob("*.cpp"), *SOURCE_FOLDER.glob("*.h")])


def _build_key() -> str:
    """A key of the library's dependencies: torch, the sources, the flags and the compiler."""
    import torch

    digest = hashlib.sha256()
    for source in source_files():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    digest.update(" ".join(COMPILER_FLAGS).encode() + _compiler_version())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}"


def cxx_command() -> list[str]:
    """The system's C++ compiler, chosen as by torch.utils.cpp_extension, whose import is slow.

    Raises:
        SimulatorError: there is none.
    """
    command = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    if shutil.which(command[0]) is None:
        raise SimulatorError(
            f"the simulated mps device needs a C++ compiler, and there is no `{command[0]}` here; "
            "install one (Debian, Ubuntu: apt install g++) or name it in the CXX environment variable"
        )
    return command


def _compiler_version() -> bytes:
    command = cxx_command()
    version = subprocess.run([*command, "--version"], capture_output=True, check=False)
    return " ".join(command).encode() + version.stdout


@contextmanager
def _only_process_in(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder; the system releases it when the process ends."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_and_load(library: Path) -> None:
    """Build in a temporary folder and move the library atomically; needs the lock."""
    from torch.utils import cpp_extension

    for abandoned in library.parent.glob("build-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    print("mpsmith: building the simulated mps device, once for this torch: 10 to 30 s", file=sys.stderr, flush=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="build-", dir=library.parent) as folder, _ninja_on_path():
        try:
            built = cpp_extension.load(
                LIBRARY_NAME,
                [str(unit) for unit in _write_units(Path(folder))],
                extra_cflags=COMPILER_FLAGS,
                build_directory=folder,
                is_python_module=False,
            )
        except RuntimeError as error:
            log = library.with_name("build.log")
            log.write_text(f"{error}\n", encoding="utf-8")
            raise SimulatorError(
                f"the simulated mps device does not compile here; the compiler's messages are in {log}"
            ) from error
        Path(built).replace(library)
    print(f"mpsmith: built in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def _write_units(folder: Path) -> list[Path]:
    """Two files, for two cores, that include all sources: most of the time goes into torch's headers."""
    sources = [source for source in source_files() if source.suffix == ".cpp"]
    units = [folder / "even.cpp", folder / "odd.cpp"]
    for unit, included in zip(units, (sources[::2], sources[1::2]), strict=True):
        unit.write_text("".join(f'#include "{source}"\n' for source in included), encoding="utf-8")
    return units


@contextmanager
def _ninja_on_path() -> Iterator[None]:
    """torch looks for ninja on PATH, which lacks it if the virtual environment is not activated."""
    import ninja

    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join(filter(None, [ninja.BIN_DIR, before]))
    try:
        yield
    finally:
        os.environ["PATH"] = before
