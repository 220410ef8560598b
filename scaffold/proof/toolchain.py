"""The compiler, headers and libraries with which Objective-C++ for macOS is checked anywhere.

They live in the cache: `apple` holds declarations of Apple's frameworks, `torch-<release>` what was kept of a macOS
wheel of torch. `setup` fetches them; this module only finds them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...audit.releases.data import plain_release
from ...audit.surface import native_functions
from ...cache import cache_folder
from ..errors import ToolchainError

STUBS = Path(__file__).parent / "apple" / "include"
LIBRARIES = ("libtorch_cpu.dylib", "libtorch.dylib", "libc10.dylib", "libtorch_python.dylib")
NATIVE_FUNCTIONS = Path("torchgen/packaged/ATen/native/native_functions.yaml")
COMMON_MPS = Path("torch/testing/_internal/common_mps.py")
EXTENSION_BUILDER = Path("torch/utils/cpp_extension.py")


def check_folder() -> Path:
    """Where the checker keeps what it fetched and built."""
    return cache_folder() / "check"


def zig_folder() -> Path | None:
    """The folder of the ziglang package: the installed one, else the one in the cache, else None."""
    spec = importlib.util.find_spec("ziglang")
    installed = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    for folder in (*installed, check_folder() / "zig" / "ziglang"):
        if (folder / "zig").is_file():
            return folder
    return None


def apple_folder() -> Path:
    """Where the generated framework headers stand, named by what they were generated from."""
    return check_folder() / f"apple-{_generators()}"


def torch_folder(release: str) -> Path:
    """Where the kept members of a release's macOS wheel stand."""
    return check_folder() / f"torch-{release}"


def _generators() -> str:
    """A hash of the programs that write the headers, so that a changed one writes them anew."""
    digest = hashlib.sha256()
    for name in ("metal_header.py", "mps_headers.py", "sources.py"):
        digest.update((STUBS.parent / name).read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Toolchain:
    """Everything that a check needs: zig with clang and a linker, framework headers, a release of torch."""

    release: str
    zig: Path
    apple: Path
    torch: Path

    @cached_property
    def identity(self) -> str:
        """Changes with the compiler, the headers and the release, so that nothing built with others is used."""
        digest = hashlib.sha256(f"{self.release}\n{self.zig}\n{self.apple.name}\n".encode())
        digest.update((self.zig / "zig").stat().st_size.to_bytes(8, "little"))
        for path in sorted(STUBS.rglob("*.h")):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:20]

    @cached_property
    def standard(self) -> str:
        """The C++ standard that this release's own extension builder asks for, such as `c++17`."""
        text = (self.torch / EXTENSION_BUILDER).read_text("utf-8")
        found = re.findall(r"-std=(c\+\+\d+)", text)
        return max(found, default="c++17")

    @cached_property
    def native_functions(self) -> bytes:
        """The text of the release's native_functions.yaml."""
        return (self.torch / NATIVE_FUNCTIONS).read_bytes()


def chosen_release(release: str | None) -> str:
    """The release to check against: the one asked for, else that of the installed torch."""
    return release or plain_release(native_functions.installed_release())


def find(release: str | None = None) -> Toolchain:
    """The toolchain for a release (by default that of the installed torch).

    Raises ToolchainError that says which command fetches what is missing.
    """
    wanted = chosen_release(release)
    zig = zig_folder()
    missing = [
        what
        for what, there in (
            ("a compiler", zig is not None),
            ("declarations of Apple's frameworks", apple_folder().is_dir()),
            (f"the macOS build of torch {wanted}", torch_folder(wanted).is_dir()),
        )
        if not there
    ]
    if missing or zig is None:
        raise ToolchainError(
            f"the checker lacks {' and '.join(missing)}; fetch it once with: mpsmith check --setup --torch {wanted}"
        )
    return Toolchain(wanted, zig, apple_folder(), torch_folder(wanted))
