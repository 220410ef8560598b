"""The compiler, headers and libraries for checking Objective-C++ for macOS on any machine.

They are in the cache: `apple` holds declarations of Apple's frameworks, `torch-<release>` the used parts of a macOS
wheel of torch. `setup` fetches them; this module only finds them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...cache import fingerprint
from ...simulator.clang import Clang, locate
from ...simulator.objc.apple.location import STUBS, apple_folder
from ..errors import ToolchainError
from ..release_files import NATIVE_FUNCTIONS, check_folder, chosen_release, torch_folder

LIBRARIES = ("libtorch_cpu.dylib", "libtorch.dylib", "libc10.dylib", "libtorch_python.dylib")
EXTENSION_BUILDER = Path("torch/utils/cpp_extension.py")


def compiler() -> Clang | None:
    """The compiler: that of the installed ziglang package, else the one that the set-up fetched, else None."""
    return locate([check_folder() / "zig" / "ziglang"])


@dataclass(frozen=True)
class Toolchain:
    """Everything that a check needs: clang and a linker, framework headers, a release of torch."""

    release: str
    clang: Clang
    apple: Path
    torch: Path

    @cached_property
    def identity(self) -> str:
        """A key that changes with the compiler, the headers and the release, so that older builds are not used."""
        headers = (path.read_bytes() for path in sorted(STUBS.rglob("*.h")))
        return fingerprint(self.release, self.clang.identity, str(self.clang.folder), self.apple.name, *headers)

    @cached_property
    def standard(self) -> str:
        """The C++ standard that this release's own extension builder uses, such as `c++17`."""
        text = (self.torch / EXTENSION_BUILDER).read_text("utf-8")
        return max(re.findall(r"-std=(c\+\+\d+)", text), default="c++17")

    @cached_property
    def native_functions(self) -> bytes:
        """The text of the release's native_functions.yaml."""
        return (self.torch / NATIVE_FUNCTIONS).read_bytes()


def find(release: str | None = None) -> Toolchain:
    """The toolchain for a release (by default that of the installed torch).

    Raises ToolchainError that says which command fetches what is missing.
    """
    wanted = chosen_release(release)
    clang = compiler()
    missing = [
        what
        for what, there in (
            ("a compiler", clang is not None),
            ("declarations of Apple's frameworks", apple_folder().is_dir()),
            (f"the macOS build of torch {wanted}", torch_folder(wanted).is_dir()),
        )
        if not there
    ]
    if missing or clang is None:
        raise ToolchainError(
            f"the checker lacks {' and '.join(missing)}; fetch it once with: mpsmith check --setup --torch {wanted}"
        )
    return Toolchain(wanted, clang, apple_folder(), torch_folder(wanted))
