"""Writes registry files so that nothing is lost: one writer at a time, all files or none, each replaced in one step."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ..cache import is_checkout
from .folder import LOCAL, PACKAGED, VARIABLE, registry_files, registry_folder
from .problems import RegistryError, shown


def writable_folder(chosen: Path | None = None) -> Path:
    """The folder in use (`folder.registry_folder`), for writing. Never that of an installed package.

    Its files are copied into the current folder first. Raises RegistryError if that fails.
    """
    folder = registry_folder(chosen)
    if folder != PACKAGED or is_checkout():
        return folder
    temporary = LOCAL.with_name(f".{LOCAL.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
        for path in registry_files(PACKAGED):
            shutil.copyfile(path, temporary / path.name)
        temporary.rename(LOCAL)
    except OSError as error:
        if not LOCAL.is_dir():  # not made by another process meanwhile
            raise _refused(LOCAL, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return LOCAL


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock the registry's folder against other writers; make the folder if it does not exist.

    Waits while another process writes, which takes seconds at most. Raises RegistryError when the folder cannot be made
    or opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        with suppress(OSError):  # a file system without locks: writers then only see each other's whole files
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for left_over in folder.glob(".*.yaml.*.tmp"):  # of a writer that was killed
                left_over.unlink()
        yield
    finally:
        os.close(descriptor)


def write(folder: Path, before: Mapping[Path, str | None], after: Mapping[Path, str]) -> None:
    """Replace files of the registry. `before` has the text that was read of each file; None for a new file.

    All new texts are on the disk before the first file is replaced. So a full disk or a crash leaves every file whole,
    and all of them unchanged unless the crash is between two replacements.

    Raises RegistryError when the disk refuses or when a file was changed meanwhile.
    """
    written: dict[Path, Path] = {}
    try:
        try:
            for path, text in after.items():
                temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                written[path] = temporary
                _write_through(temporary, text, like=path)
            for path in after:
                if _current(path) != before[path]:
                    raise RegistryError(f"{shown(path)} was changed while mpsmith worked on it: try again")
            for path, temporary in written.items():
                temporary.replace(path)
        except OSError as error:
            raise _refused(folder, error) from error
    finally:
        for temporary in written.values():
            with suppress(OSError):  # where nothing can be written, nothing can be removed either
                temporary.unlink(missing_ok=True)


def _write_through(temporary: Path, text: str, *, like: Path) -> None:
    with temporary.open("wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    if like.exists():
        temporary.chmod(like.stat().st_mode & 0o777)


def _current(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8", errors="replace") if path.exists() else None


def _refused(folder: Path, error: OSError) -> RegistryError:
    why = error.strerror or str(error)
    return RegistryError(
        f"cannot write the registry in {shown(folder)}: {why}; nothing was changed. "
        f"Choose another folder with the variable {VARIABLE}"
    )
