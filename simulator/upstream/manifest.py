"""The manifest of a tree's build: its library, and the overloads of each file, in a folder for workers to load."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import UpstreamError

_MANIFEST = "host_code.json"


@dataclass(frozen=True)
class BuiltFile:
    """The result of building a file.

    Attributes:
        name: the file's name without suffix; a name for the rows if there is no file.
        overloads: the overloads that its library registers, without namespace.
        library: the library; empty if there is none.
        problem: why there is no library, or "".
    """

    name: str
    overloads: tuple[str, ...]
    library: str = ""
    problem: str = ""

    @property
    def built(self) -> bool:
        """Whether a library was built."""
        return bool(self.library)


@dataclass(frozen=True)
class TreeBuild:
    """The result of building a tree.

    Attributes:
        source: the release, or the folder of the tree.
        kernels: the release whose compiled kernels the host code launches; "" for those of the tree's Metal sources.
        files: each file of operations/ that has kernels, or that did not build.
        changed: overloads that are not registered because their schema changed, and the installed schema.
        selectors: selectors that nothing implements, with the files that send them.
        wheel: whether the code is that of a macOS wheel (simulator.macho), which no tree was compiled for.
    """

    source: str
    kernels: str
    files: tuple[BuiltFile, ...]
    changed: Mapping[str, str] = field(default_factory=dict)
    selectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wheel: bool = False

    @property
    def overloads(self) -> tuple[str, ...]:
        """The overloads, with their namespace, that the host code implements."""
        return tuple(f"aten::{overload}" for file in self.files if file.built for overload in file.overloads)

    @property
    def failed(self) -> tuple[BuiltFile, ...]:
        """The files that did not build."""
        return tuple(file for file in self.files if file.problem)

    def load(self, load: Callable[[Path], object]) -> None:
        """Load its libraries with `load` (simulator.objc.loading.load_extension)."""
        for library in dict.fromkeys(file.library for file in self.files if file.built):
            load(Path(library))


def write_manifest(folder: Path, built: TreeBuild) -> None:
    """Write the manifest of a build into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MANIFEST).write_text(json.dumps(asdict(built), indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> TreeBuild | None:
    """The build in a folder's manifest; None without a manifest, or if a library is missing. Raises UpstreamError."""
    path = folder / _MANIFEST
    try:
        data = json.loads(path.read_text("utf-8"))
        files = tuple(BuiltFile(**{**row, "overloads": tuple(row["overloads"])}) for row in data.pop("files"))
        selectors = {selector: tuple(names) for selector, names in data.pop("selectors").items()}
        built = TreeBuild(files=files, selectors=selectors, **data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise UpstreamError(f"{path} is damaged: remove {folder}, and run the command again") from None
    return built if all(Path(file.library).is_file() for file in files if file.built) else None
