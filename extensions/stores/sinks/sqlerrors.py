"""What a database's error means for a batch: the row, the moment, or the configuration.

The rule it keeps: only what a retry can mend is retried, and only what one row causes is blamed on
a row.
"""

from __future__ import annotations

import enum
from typing import Any

import sqlalchemy as sa


class Trouble(enum.Enum):
    """What has to change before it works."""

    ROW = "row"  # this row, or one of this batch
    DOWN = "down"  # nothing: it works again later
    GONE = "gone"  # the database, its rights or its tables


_POSTGRES_CLASSES = {
    # The first two characters of SQLSTATE. Source: PostgreSQL manual, appendix A.
    "08": Trouble.DOWN,  # connection
    "25": Trouble.DOWN,  # transaction state: a standby that is read-only until it is promoted
    "40": Trouble.DOWN,  # rolled back: deadlock, serialization
    "53": Trouble.DOWN,  # resources: disk full, too many connections
    "55": Trouble.DOWN,  # not in the needed state: lock not available
    "57": Trouble.DOWN,  # operator: shutdown, cancelled, starting up
    "58": Trouble.DOWN,  # system: I/O error
    "21": Trouble.ROW,
    "22": Trouble.ROW,  # data: a NUL character in JSONB, a number out of range
    "23": Trouble.ROW,  # a constraint of the user's
    "44": Trouble.ROW,
    "54": Trouble.ROW,  # too large
    "P0": Trouble.ROW,  # raised by a trigger of the user's
    "28": Trouble.GONE,  # password, pg_hba
    "3D": Trouble.GONE,  # no such database
    "3F": Trouble.GONE,  # no such schema
    "42": Trouble.GONE,  # no such table, no rights
}
_SQLITE_NAMES = {
    "SQLITE_CONSTRAINT": Trouble.ROW,
    "SQLITE_TOOBIG": Trouble.ROW,
    "SQLITE_MISMATCH": Trouble.ROW,
    "SQLITE_READONLY": Trouble.GONE,
    "SQLITE_CANTOPEN": Trouble.GONE,
    "SQLITE_CORRUPT": Trouble.GONE,
    "SQLITE_NOTADB": Trouble.GONE,
    "SQLITE_PERM": Trouble.GONE,
    "SQLITE_AUTH": Trouble.GONE,
    "SQLITE_ERROR": Trouble.GONE,  # no such table, no such column
}
_KINDS: list[tuple[type[Exception], Trouble]] = [
    # For a driver without codes that are known here, and for errors raised before the server was
    # asked.
    (sa.exc.DataError, Trouble.ROW),
    (sa.exc.IntegrityError, Trouble.ROW),
    (sa.exc.ProgrammingError, Trouble.GONE),
    (sa.exc.NotSupportedError, Trouble.GONE),
    (sa.exc.NoSuchTableError, Trouble.GONE),
    (sa.exc.DBAPIError, Trouble.DOWN),
    (sa.exc.StatementError, Trouble.ROW),
    (UnicodeError, Trouble.ROW),
]


def judge(error: Exception) -> Trouble:
    """Whose fault *error* is."""
    if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
        return Trouble.DOWN
    cause: Any = getattr(error, "orig", None)
    if isinstance(cause, UnicodeError):
        return Trouble.ROW
    state = getattr(cause, "sqlstate", None)
    if state and state[:2] in _POSTGRES_CLASSES:
        return _POSTGRES_CLASSES[state[:2]]
    name = getattr(cause, "sqlite_errorname", None)
    if name:
        return _SQLITE_NAMES.get("_".join(name.split("_")[:2]), Trouble.DOWN)
    for kind, trouble in _KINDS:
        if isinstance(error, kind):
            return trouble
    return Trouble.DOWN


def explain(error: Exception, url: sa.URL) -> str:
    """The driver's own words in one line, without the statement, its values, or the password."""
    cause = getattr(error, "orig", None) or error
    words = " ".join(str(cause).split()) or type(cause).__name__
    password = url.password
    if password:
        words = words.replace(str(password), "***")
    return words[:300]
