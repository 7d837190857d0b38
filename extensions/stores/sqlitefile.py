"""The SQLite file under a job: opened, told from other files, migrated, its errors named.

The rule it keeps: nothing is written before it is sure that the file is one of ours and not newer
than this code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from importlib import resources
from typing import TYPE_CHECKING

from .base import StoreBroken, StoreBusy, StoreError, StoreFull, StoreTooNew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

APPLICATION_ID = 0x534C4A42  # "SLJB"
SCHEMA_VERSION = 1
SCHEMA_FILE = "job_schema.sql"

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_PAGE_BYTES = 4096
_CACHE_KIB = 4096
_WAL_KEPT_BYTES = 1 << 20
_NO_ROOM_BYTES = 1 << 20
_VACUUM_STEP_PAGES = 128
_VACUUM_SPARE_PAGES = 256

# From version N to N + 1; each runs inside the migration's one transaction.
MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {}


def create(path: Path) -> None:
    """Make an empty file that only its owner may read: requests carry cookies and passwords.

    Raises:
        StoreBroken: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass
    except OSError as e:
        raise StoreBroken(f"{path}: cannot be made: {e.strerror}") from e


def connect(path: Path, *, durable: bool, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection for reading and writing, usable from any thread, in autocommit mode.

    With *durable*, a killed process loses nothing that was committed, and a power cut at most the
    last commits (WAL, synchronous NORMAL). Without it the operating system decides when anything
    reaches the disk.
    """
    con = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        timeout=busy_timeout_s,
        cached_statements=64,
    )
    try:
        con.execute(f"PRAGMA page_size={_PAGE_BYTES}")
        con.execute("PRAGMA auto_vacuum=INCREMENTAL")  # takes effect only before the first table
        con.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        con.execute("PRAGMA temp_store=MEMORY")
        con.execute("PRAGMA trusted_schema=OFF")
        con.execute("PRAGMA journal_mode=WAL")
        con.execute(f"PRAGMA synchronous={'NORMAL' if durable else 'OFF'}")
        con.execute("PRAGMA wal_autocheckpoint=0")
        con.execute(f"PRAGMA journal_size_limit={_WAL_KEPT_BYTES}")
    except BaseException:
        con.close()
        raise
    return con


def connect_to_read(
    path: Path, *, at_rest: bool = False, busy_timeout_s: float = 5.0
) -> sqlite3.Connection:
    """A connection that cannot write, safe beside a running crawl.

    With *at_rest* (nobody has it open, there is no log) not even SQLite's side files are made.
    """
    mode = "immutable=1" if at_rest else "mode=ro"
    con = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        timeout=busy_timeout_s,
    )
    con.execute("PRAGMA query_only=ON")
    return con


def inspect(path: Path) -> bool:
    """Is there a job at *path* already? Reads the header alone, before SQLite may touch the file.

    Raises:
        StoreTooNew: A newer version of this code made it.
        StoreBroken: It is something else, or a stump.
    """
    try:
        with path.open("rb") as f:
            head = f.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    except OSError as e:
        raise StoreBroken(f"{path}: cannot be read: {e.strerror}") from e
    if not head:
        return False
    if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
        raise StoreBroken(f"{path}: is not a job store (not an SQLite database). Move it away.")
    version, app = struct.unpack(">I", head[60:64])[0], struct.unpack(">I", head[68:72])[0]
    if app == 0 and version == 0:
        return False  # died while it was being created: its schema is one transaction
    check_version(path, app, version)
    return True


def check_version(path: Path, application_id: int, version: int) -> None:
    """Refuse another program's database and a newer version's.

    Raises:
        StoreBroken, StoreTooNew
    """
    if application_id != APPLICATION_ID:
        raise StoreBroken(f"{path}: is another program's database. Move it away.")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{path}: was written by a newer version (schema {version}, "
            f"this code knows {SCHEMA_VERSION}). Nothing was changed. "
            "Use that version, or another JOBDIR."
        )


def prepare(con: sqlite3.Connection, path: Path) -> bool:
    """Create the tables or bring old ones up to date, in one transaction. Were there any?"""
    con.execute("BEGIN IMMEDIATE")
    try:
        version = int(con.execute("PRAGMA user_version").fetchone()[0])
        existed = con.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
        if existed:
            application_id = int(con.execute("PRAGMA application_id").fetchone()[0])
            check_version(path, application_id, version)
            for step in range(version, SCHEMA_VERSION):
                MIGRATIONS[step](con)
        else:
            for statement in _statements(_schema()):
                con.execute(statement)
            con.execute(f"PRAGMA application_id={APPLICATION_ID}")
        if version != SCHEMA_VERSION:
            con.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        con.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            con.execute("ROLLBACK")
        raise
    if not existed:
        con.execute(
            "PRAGMA wal_checkpoint(TRUNCATE)"
        )  # so that the header says what it is from now on
    return existed


def check_length(con: sqlite3.Connection, path: Path) -> None:
    """Fold the log back and see that the file is as long as it says, while nobody else writes.

    Raises:
        StoreBroken: The file was cut short.
    """
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = int(con.execute("PRAGMA page_count").fetchone()[0])
    size = int(con.execute("PRAGMA page_size").fetchone()[0])
    if path.stat().st_size < pages * size:
        raise StoreBroken(f"{path}: was cut short ({path.stat().st_size} of {pages * size} bytes).")


def give_back_free_pages(con: sqlite3.Connection) -> None:
    """Shrink the file once a quarter of it is free.

    It goes in steps that each hold the write lock for a few milliseconds.
    """
    pages = int(con.execute("PRAGMA page_count").fetchone()[0])
    free = int(con.execute("PRAGMA freelist_count").fetchone()[0])
    if free < _VACUUM_SPARE_PAGES or free * 4 < pages:
        return
    while free > _VACUUM_SPARE_PAGES:
        con.execute(f"PRAGMA incremental_vacuum({_VACUUM_STEP_PAGES})").fetchall()
        left = int(con.execute("PRAGMA freelist_count").fetchone()[0])
        if left >= free:
            return
        free = left


@contextlib.contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn the driver's errors into the store's own, which say what to do."""
    try:
        yield
    except sqlite3.Error as e:
        raise named(e, path) from e
    except OverflowError as e:
        raise StoreError(f"{path}: a number does not fit into 64 bits: {e}") from e


def named(error: sqlite3.Error, path: Path) -> StoreError:
    """The store's own error for *error*."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) and code >= 0 else None
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and _no_room(path)):
        return StoreFull(
            f"{path}: no room left on the device ({error}). The crawl goes on when there is."
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{path}: another program holds the database ({error}). Close it.")
    if primary in _BROKEN:
        return StoreBroken(
            f"{path}: cannot be used any more ({error}). See its folder's permissions and device."
        )
    return StoreError(f"{path}: {error}")


_BROKEN = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def _no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _NO_ROOM_BYTES
    except OSError:
        return False


def _schema() -> str:
    return (
        resources.files(__name__.rpartition(".")[0])
        .joinpath(SCHEMA_FILE)
        .read_text(encoding="utf-8")
    )


def _statements(script: str) -> Iterator[str]:
    """Split a script without `executescript`, which would commit the open transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def roll_back(con: sqlite3.Connection) -> None:
    """Undo what a failed call began; its error is the one that counts."""
    if con.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            con.execute("ROLLBACK")
