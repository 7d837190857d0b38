"""Rows of the job file as plain values, and back.

The rule it keeps: columns are named once, here, and in one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .base import DeadLetter, State, StoredRequest

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    RequestRow = tuple[int, str, int, int, bytes, int, float | None, int | None, int]

REQUEST: Final = "id, domain, priority, rank, payload, state, due_at, parent, crashes"
INSERT_REQUEST: Final = f"INSERT INTO request ({REQUEST}) VALUES (?{', ?' * 8})"  # noqa: S608
DEAD: Final = (
    "uid, kind, key, spider, url, domain, reason, detail, attempts, status, exception, first_at, "
    "last_at, payload, dead_letter_id"
)
INSERT_DEAD: Final = f"INSERT OR IGNORE INTO dead (id, {DEAD}) VALUES (?{', ?' * 15})"  # noqa: S608

_MAX_INT: Final = (1 << 63) - 1
_STATES: Final = tuple(State)
_COUNTER_OF: Final = ("pending", "window", "leased", "delayed", "held")


@dataclass(slots=True)
class Tally:
    """The one row of counters, in its table's order."""

    pending: int = 0
    window: int = 0
    leased: int = 0
    delayed: int = 0
    held: int = 0
    seen: int = 0
    outbox: int = 0
    dead: int = 0
    done: int = 0
    last_id: int = 0
    last_item: int = 0
    last_dead: int = 0

    @classmethod
    def read(cls, con: sqlite3.Connection) -> Tally:
        """What the last commit wrote."""
        return cls(*con.execute(_READ_TALLY).fetchone())

    def write(self, con: sqlite3.Connection, clock_at: float) -> None:
        """Put it beside the rows, in their transaction."""
        con.execute(_WRITE_TALLY, (*[getattr(self, name) for name in _TALLY_NAMES], clock_at))

    def add(self, state: State, n: int = 1) -> None:
        """*n* more rows in *state* (fewer, when negative)."""
        name = _COUNTER_OF[state]
        setattr(self, name, getattr(self, name) + n)


_TALLY_NAMES: Final = tuple(Tally.__slots__)
_READ_TALLY: Final = f"SELECT {', '.join(_TALLY_NAMES)} FROM tally"  # noqa: S608
_WRITE_TALLY: Final = f"UPDATE tally SET {' = ?, '.join(_TALLY_NAMES)} = ?, clock_at = ?"  # noqa: S608


def request_row(r: StoredRequest) -> tuple[object, ...]:
    """Values for `INSERT_REQUEST`. Scrapy's priorities are unbounded, SQLite's integers are not."""
    priority = max(-_MAX_INT, min(_MAX_INT, r.priority))
    return (
        r.id,
        r.domain,
        priority,
        r.rank,
        r.payload,
        r.state,
        r.due_at,
        r.parent,
        r.crashes,
    )


def requests(rows: Iterable[RequestRow]) -> list[StoredRequest]:
    """Rows of the columns `REQUEST` as values."""
    return [
        StoredRequest(id_, domain, priority, rank, payload, _STATES[state], due_at, parent, crashes)
        for id_, domain, priority, rank, payload, state, due_at, parent, crashes in rows
    ]


def dead_row(id_: int, d: DeadLetter) -> tuple[object, ...]:
    """Values for `INSERT_DEAD`."""
    return (
        id_,
        d.uid,
        d.kind,
        d.key,
        d.spider,
        d.url,
        d.domain,
        d.reason,
        d.detail,
        d.attempts,
        d.status,
        d.exception,
        d.first_at,
        d.last_at,
        d.payload,
        d.dead_letter_id,
    )
