"""The SQLite file under the dead letters: its tables, its version, its transactions, its errors.

The rule it keeps: only its owner may read it, several processes may write it, and a file that is
something else, or from a newer version, is left as it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_VERSION = 1


class DeadLetterError(Exception):
    """Something is wrong with the file; the message is one line, and names it."""


class DeadLetterDatabase:
    """The open file. Usable from any thread, one call at a time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return str(self.path)

    def open(self, *, create: bool = True) -> Self:
        """Open it, readable for its owner only.

        Raises:
            DeadLetterError: missing (and not to be created), something else, or too new.
        """
        if self._connection is not None:
            return self
        with self._failures():
            if not self.path.exists():
                if not create:
                    raise DeadLetterError(f"{self.path}: there is no such file")
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=10.0, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                _make_tables(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self

    def close(self) -> None:
        """Close the file. May be called twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise DeadLetterError(f"{self.path}: is not open")
        return self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that no other process can come between."""
        with self._failures(), self._lock:
            db = self._db()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DeadLetterError(f"{self.path}: {error}") from error
        except OSError as error:
            raise DeadLetterError(f"{self.path}: {error.strerror or error}") from error


def _make_tables(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise DeadLetterError(
            f"{path}: written by a newer version of Sluice (schema {version}, "
            f"this one knows {SCHEMA_VERSION}); it was left as it is"
        )
    if version == SCHEMA_VERSION:
        return
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise DeadLetterError(f"{path}: is a database of something else")
    db.execute("BEGIN IMMEDIATE")
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            schema = resources.files(__package__).joinpath("deadletter_schema.sql").read_text()
            for statement in _statements(schema):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _statements(schema: str) -> Iterator[str]:
    statement = ""
    for line in schema.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
