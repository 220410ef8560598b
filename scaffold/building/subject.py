"""The input of `mpsmith build`: one Objective-C++ file, or a folder with a setup.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ScaffoldError
from ..manifest import Manifest, manifest_above

# The options for a single file on a Mac, in addition to those of torch's builder.
ARC, NO_ARC = "-fobjc-arc", "-fno-objc-arc"
FRAMEWORKS = ("-framework", "Metal", "-framework", "Foundation")
SETUP = "setup.py"

_NO_ARC = "ATen/native/mps/OperationUtils.h"


@dataclass(frozen=True)
class BuildSubject:
    """Something that can be built.

    Attributes:
        path: the file, or the folder with its setup.py.
        flags: of the compiler, for a file; of a folder, its setup.py decides.
    """

    path: Path
    flags: tuple[str, ...] = ()

    @property
    def arc(self) -> bool:
        """Whether a file is compiled with automatic reference counting, by its flags or else by its includes."""
        chosen = [flag for flag in self.flags if flag in (ARC, NO_ARC)]
        return chosen[-1] == ARC if chosen else _NO_ARC not in self.path.read_text("utf-8", "replace")

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.path.is_file()

    @property
    def out(self) -> Path:
        """The folder that a file's module is written to."""
        return self.path.parent

    @property
    def name(self) -> str:
        """The name of a file's module."""
        return self.path.stem


def subject_at(path: Path, flags: Sequence[str] = ()) -> BuildSubject:
    """The file or folder to build, with the compiler's flags for a file.

    Raises ScaffoldError if it cannot be built, with what to do instead.
    """
    if not path.exists():
        raise ScaffoldError(f"there is no file or folder {path}")
    if path.is_file():
        return _file(path.resolve(), flags)
    if flags:
        raise ScaffoldError(f"--flags is for one file; the setup.py of {path} has its own")
    if not (path / SETUP).is_file():
        located = manifest_above(path)
        raise ScaffoldError(_no_setup(path, located[1] if located else None))
    return BuildSubject(path.resolve())


def _file(path: Path, flags: Sequence[str]) -> BuildSubject:
    if path.suffix != ".mm":
        raise ScaffoldError(f"{path} is not an Objective-C++ file (.mm); a folder with a setup.py can also be built")
    if not path.stem.isidentifier():
        raise ScaffoldError(f"{path.name}: Python cannot import a module of this name; rename the file")
    return BuildSubject(path, tuple(flags))


def _no_setup(path: Path, manifest: Manifest | None) -> str:
    target = manifest.target if manifest else ""
    if target == "shader":
        return f"{path} holds Metal source and Python, which need no build: mpsmith check {path} --run runs its tests"
    if target == "upstream":
        return f"{path} is a patch against PyTorch, which builds it; mpsmith check {path} --run runs its test here"
    return f"{path} has no setup.py; give one .mm file, or scaffold a package with --target extension"
