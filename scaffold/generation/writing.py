"""Writes generated files without losing hand-written changes: it plans first, then writes all files or none."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from ..errors import ScaffoldError
from ..manifest import Manifest, digest_of
from ..targets.regions import Merged, bare, merged, regions_of, with_regions
from .destination import Destination
from .three_way import merged_three_ways


class Action(str, Enum):
    """The action for a file."""

    NEW = "new"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    MERGED = "updated, hand-written regions kept"
    MERGED_LINES = "updated, hand-written lines and regions kept"
    CONFLICT = "edited by hand: kept"


@dataclass(frozen=True)
class FileChange:
    """The current and the planned contents of one file. `before` is None for a new file."""

    path: Path
    action: Action
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        before = (self.before or "").splitlines(keepends=True)
        after = self.after.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}"))


@dataclass(frozen=True)
class Plan:
    """Everything that a scaffold would write below `folder`."""

    folder: Path
    changes: tuple[FileChange, ...]
    manifest: Manifest
    manifest_path: Path

    @property
    def conflicts(self) -> tuple[FileChange, ...]:
        """The files that were edited outside the marked regions."""
        return tuple(change for change in self.changes if change.action is Action.CONFLICT)


def plan(destination: Destination, files: Mapping[str, str], manifest: Manifest) -> Plan:
    """Compare generated files with what is in the destination.

    `files`: texts by path relative to the folder. An unedited file is updated. In an edited file the marked regions are
    kept, and edits outside them are merged; a file with conflicting edits is not changed.
    Raises ScaffoldError if a path is not a file, or if marks are damaged.
    """
    there = destination.manifest
    old_digests, texts = (there.files, there.texts) if there else ({}, {})
    changes = tuple(
        _change(destination.folder / name, text, old_digests.get(name), texts.get(name)) for name, text in files.items()
    )
    digests = {name: digest_of(bare(text, name)) for name, text in files.items()}
    recorded = replace(manifest, files=digests, texts=dict(files))
    return Plan(destination.folder, changes, recorded, destination.manifest_path)


def _change(path: Path, generated: str, digest: str | None, ancestor: str | None) -> FileChange:
    """The change of one file. `digest`, `ancestor`: of the last generated text."""
    if not path.exists():
        return FileChange(path, Action.NEW, None, generated)
    if not path.is_file():
        raise ScaffoldError(f"{path} is not a file but a file must go there; move it away")
    try:
        before = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"cannot read {path}: {error}") from None
    if before == generated:
        return FileChange(path, Action.UNCHANGED, before, generated)
    merge = merged(generated, before, str(path), ancestor)
    if before == merge.text:
        return FileChange(path, Action.UNCHANGED, before, merge.text)
    if digest == digest_of(merge.outside) and not merge.lost:
        return FileChange(path, Action.MERGED if merge.has_regions else Action.UPDATED, before, merge.text)
    if ancestor is not None and not merge.lost:
        both = _with_lines_of_both(ancestor, before, generated, merge, str(path))
        if both is not None:
            return FileChange(path, Action.UNCHANGED if both == before else Action.MERGED_LINES, before, both)
    return FileChange(path, Action.CONFLICT, before, merge.text)


def _with_lines_of_both(ancestor: str, before: str, generated: str, merge: Merged, source: str) -> str | None:
    """The generated text with the edits inside and outside its regions; None if they conflict."""
    outside = merged_three_ways(bare(ancestor, source), merge.outside, bare(generated, source))
    if outside is None:
        return None
    try:
        return with_regions(outside, regions_of(merge.text, source), source)[0]
    except ScaffoldError:  # the lines of both, but not the marks of both
        return None


def require_no_conflicts(planned: Plan) -> None:
    """Raise ScaffoldError when files were edited outside the regions."""
    if planned.conflicts:
        listed = ", ".join(str(change.path) for change in planned.conflicts)
        raise ScaffoldError(f"edited by hand, and not written over: {listed} (--force writes over; the regions stay)")


def write(planned: Plan, *, force: bool = False) -> None:
    """Write every file of a plan, or none of them. `force` writes over files that were edited outside the regions.

    Raises ScaffoldError when there are conflicts, or a file cannot be written (the others are restored).
    """
    if not force:
        require_no_conflicts(planned)
    changed = [change for change in planned.changes if change.before != change.after]
    texts = [(change.path, change.before, change.after) for change in changed]
    manifest = planned.manifest.to_json()
    there = planned.manifest_path.read_text("utf-8") if planned.manifest_path.is_file() else None
    if there != manifest:
        texts.append((planned.manifest_path, there, manifest))
    _write_all(texts)


def _write_all(texts: Sequence[tuple[Path, str | None, str]]) -> None:
    done: list[tuple[Path, str | None]] = []
    try:
        for path, before, after in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, after)
            done.append((path, before))
    except OSError as error:
        for path, before in reversed(done):
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(before, encoding="utf-8")
        where = error.filename or "the folder"
        raise ScaffoldError(f"cannot write {where}: {error.strerror or error}; nothing was left half-written") from None


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes private files; generated files have the usual mode.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
