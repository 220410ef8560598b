"""Opens results stores, and turns SQLite's errors into one line with advice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ...errors import MpsmithError
from .schema import APPLICATION_ID, SCHEMA, VERSION


class StoreError(MpsmithError):
    """The store cannot be read or written: damaged, of another program, in use, or an error of the disk."""


@contextmanager
def clear_errors(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into one line that names the file or files, and says what to do next."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            advice = "free some space and continue with --resume"
        elif "readonly" in text or "unable to open" in text:
            advice = "choose a place that can be read and written with --store"
        elif "locked" in text:
            advice = "another process holds it: wait for it to end"
        else:
            advice = "the file is damaged or not a store of mpsmith: name another file"
        raise StoreError(f"{path}: {text} ({advice})") from error


def check_version(path: Path) -> None:
    """Refuse files without our header or with a different version before SQLite opens them. Raises StoreError."""
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: not a file (name another file)")
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except FileNotFoundError:
        raise StoreError(f"{path}: no such store (make one with `mpsmith audit --store {path}`)") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror} (name another file)") from error
    # https://www.sqlite.org/fileformat.html: the user version is at byte 60, the application id at 68.
    if not header.startswith(b"SQLite format 3\x00") or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StoreError(f"{path}: damaged or not a store of mpsmith (name another file)")
    version = int.from_bytes(header[60:64], "big")
    if version != VERSION:
        raise StoreError(f"{path}: store format {version}, this mpsmith reads {VERSION} (audit into a new file)")


def create(path: Path) -> sqlite3.Connection:
    """Make a new store file with all tables."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent}: {error.strerror} (choose another place with --store)") from error
    connection = _connect(path)
    # Set before the write-ahead log is on, so that the header of the file itself has them: see check_version.
    connection.executescript(
        f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={VERSION}; BEGIN; {SCHEMA} COMMIT;"
    )
    _write_ahead(connection)
    return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a store that other processes may write at the same time."""
    connection = _connect(path)
    _write_ahead(connection)
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a store read-only, also on a read-only medium. Raises StoreError."""
    connection = sqlite3.connect(address_to_read(path), uri=True, timeout=30)
    connection.execute("SELECT count(*) FROM runs").fetchone()
    return connection


def refuse_damage(path: Path) -> None:
    """Check the whole file, without changing a byte, and raise sqlite3.DatabaseError if it is damaged."""
    with closing(open_to_read(path)) as connection:
        (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(str(state).splitlines()[0])


def address_to_read(path: Path) -> str:
    """The URI for reading without changing a byte of the file; while another process writes, it reads complete rows.

    SQLite reads a write-ahead store through a shared memory file beside it. If that file cannot be made, the medium is
    read-only, so no other process writes and the store may be read as immutable. Raises StoreError.
    """
    address = path.absolute().as_uri()
    try:
        with closing(sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=30)) as connection:
            connection.execute("SELECT count(*) FROM runs").fetchone()
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(f"{path}: its newest rows are in {log.name}: copy both to a writable folder") from error
        return f"{address}?immutable=1"
    return f"{address}?mode=ro"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let several processes write. This changes the file, so check_version must be called first."""
    connection.execute("PRAGMA journal_mode=WAL")
    # A crash of the process loses nothing at this level; only a power cut may lose the last transactions.
    connection.execute("PRAGMA synchronous=NORMAL")
