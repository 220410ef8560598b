"""The list of public projects: what each is made of, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ...errors import MpsmithError

_LIST = Path(__file__).parent / "projects.yaml"


@dataclass(frozen=True)
class CorpusFile:
    """One program of a project: the file, and its text with what the project's build puts in front."""

    file: Path
    text: str


@dataclass(frozen=True)
class Project:
    """A public project with Metal source.

    Attributes:
        name: how it is called here.
        archive: the address of a source distribution or wheel; empty for a repository.
        sha256: its checksum.
        git: the address of a repository; empty for an archive.
        commit: which version of it.
        root: the folder that the paths below start from.
        files: globs of what is compiled.
        without: globs of what is no program of its own.
        include: folders for `#include`.
        define: macros, as `NAME` or `NAME=VALUE`.
        before: files whose text stands in front of each program.
        mistakes: what is wrong in a file itself, by its path below the root: it is right to refuse it.
    """

    name: str
    archive: str
    sha256: str
    git: str
    commit: str
    root: str
    files: tuple[str, ...]
    without: tuple[str, ...]
    include: tuple[str, ...]
    define: tuple[str, ...]
    before: tuple[str, ...]
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Which version is meant: the archive's file name, or the first letters of the commit."""
        return self.archive.rsplit("/", 1)[-1] if self.archive else self.commit[:12]

    def include_folders(self, tree: Path) -> list[Path]:
        """Folders for `#include`, in a tree of the project."""
        return [tree / self.root / folder for folder in self.include]

    def sources(self, tree: Path) -> Iterator[CorpusFile]:
        """The programs in a tree of the project, by name."""
        root = tree / self.root
        left_out = {file for glob in (*self.without, *self.before) for file in root.glob(glob)}
        before = [_marked(root / name) for name in self.before]
        for file in sorted({file for glob in self.files for file in root.glob(glob)} - left_out):
            yield CorpusFile(file, "".join([*before, _marked(file) if before else _read(file)]))


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _marked(file: Path) -> str:
    """Its text with a line marker, so that errors keep their places in a text of several files."""
    return f'# 1 "{file.name}"\n{_read(file)}\n'


def projects() -> list[Project]:
    """The projects of the list, in its order."""
    return [_project(row) for row in yaml.safe_load(_LIST.read_text(encoding="utf-8"))]


def chosen(names: Sequence[str]) -> list[Project]:
    """The projects of these names, or all.

    Raises:
        MpsmithError: the list has no such project.
    """
    known = projects()
    for name in names:
        if name not in (p.name for p in known):
            raise MpsmithError(f"no project {name}; the list has {', '.join(p.name for p in known)}")
    return [p for p in known if not names or p.name in names]


def parse_trees(words: Sequence[str]) -> dict[str, Path]:
    """`mlx=FOLDER` words as folders by project.

    Raises:
        MpsmithError: a word has no such form, or names no project or folder.
    """
    trees: dict[str, Path] = {}
    for word in words:
        name, _, folder = word.partition("=")
        if not Path(folder).is_dir() or not folder:
            raise MpsmithError(f"--tree {word}: give PROJECT=FOLDER with a folder that is there")
        trees[chosen([name])[0].name] = Path(folder)
    return trees


def _project(row: dict[str, object]) -> Project:
    def text(key: str) -> str:
        return str(row.get(key, ""))

    def texts(key: str) -> tuple[str, ...]:
        found = row.get(key, ())
        return tuple(map(str, found)) if isinstance(found, list) else ()

    return Project(
        name=text("name"),
        archive=text("archive"),
        sha256=text("sha256"),
        git=text("git"),
        commit=text("commit"),
        root=text("root"),
        files=texts("files"),
        without=texts("except"),
        include=texts("include"),
        define=texts("define"),
        before=texts("before"),
        mistakes=dict(mistakes) if isinstance(mistakes := row.get("mistakes"), dict) else {},
    )
