"""The list of public projects with Metal source, and where to get their files."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from mpsmith.cache import cache_folder
from mpsmith.errors import MpsmithError

_LIST = Path(__file__).parent / "projects.yaml"
_SUFFIXES = (".metal", ".h", ".hpp")


@dataclass(frozen=True)
class ProjectSource:
    """A Metal file of a project, and its text with what the project's build puts in front."""

    file: Path
    text: str


@dataclass(frozen=True)
class Project:
    """A public project with Metal source; `projects.yaml` explains the fields."""

    name: str
    files: tuple[str, ...]
    archive: str = ""
    sha256: str = ""
    git: str = ""
    commit: str = ""
    root: str = "."
    without: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The archive's file name, or the start of the commit hash."""
        return self.archive.rsplit("/", 1)[-1] if self.archive else self.commit[:12]

    def include_folders(self, tree: Path) -> list[Path]:
        """Folders for `#include`, in a tree of the project."""
        return [tree / self.root / folder for folder in self.include]

    def sources(self, tree: Path) -> Iterator[ProjectSource]:
        """The sources in a tree of the project, by name."""
        root = tree / self.root
        excluded = {file for glob in (*self.without, *self.before) for file in root.glob(glob)}
        before = [_with_line_marker(root / name) for name in self.before]
        for file in sorted({file for glob in self.files for file in root.glob(glob)} - excluded):
            yield ProjectSource(file, "".join([*before, _with_line_marker(file) if before else _read(file)]))


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _with_line_marker(file: Path) -> str:
    """The text with a line marker, so that errors name the original file and line."""
    return f'# 1 "{file.name}"\n{_read(file)}\n'


def projects() -> list[Project]:
    """The projects of the list, in its order."""
    return [_project(row) for row in yaml.safe_load(_LIST.read_text(encoding="utf-8"))]


def _project(row: Mapping[str, Any]) -> Project:
    return Project(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})


def select_projects(names: Sequence[str]) -> list[Project]:
    """The projects with these names, or all.

    Raises:
        MpsmithError: the list has no such project.
    """
    listed = projects()
    for name in names:
        if name not in (p.name for p in listed):
            raise MpsmithError(f"no project {name}; the list has {', '.join(p.name for p in listed)}")
    return [p for p in listed if not names or p.name in names]


def parse_trees(words: Sequence[str]) -> dict[str, Path]:
    """Parse `mlx=FOLDER` into folders by project.

    Raises:
        MpsmithError: a word has another form, or names no project or folder.
    """
    trees: dict[str, Path] = {}
    for word in words:
        name, _, folder = word.partition("=")
        if not folder or not Path(folder).is_dir():
            raise MpsmithError(f"--tree {word}: give PROJECT=FOLDER with an existing folder")
        trees[select_projects([name])[0].name] = Path(folder)
    return trees


def tree_of(project: Project) -> Path | None:
    """The folder with a project's files, downloaded if needed; None if the project has no archive.

    Raises:
        MpsmithError: the archive cannot be downloaded, or its checksum differs.
    """
    folder = cache_folder() / "corpus" / f"{project.name}-{project.version}"
    if folder.is_dir():
        return folder
    if not project.archive:
        return None
    content = _download(project.archive)
    if hashlib.sha256(content).hexdigest() != project.sha256:
        raise MpsmithError(f"{project.archive}: the checksum differs from the list")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="corpus-", dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "tree"
        unpacked.mkdir()
        for name, data in _members(content, project.archive):
            path = PurePosixPath(name)
            if path.suffix in _SUFFIXES and not path.is_absolute() and ".." not in path.parts:
                (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
                (unpacked / name).write_bytes(data)
        unpacked.rename(folder)
    return folder


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
        raise MpsmithError(f"cannot download {url} ({getattr(error, 'reason', error)})") from None
