"""A job as others see it: read beside a running crawl, or after a killed one, without changing it.

The rule it keeps: it never writes, takes no lock that a crawl waits for, and reads in short steps.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from . import sqlitefile
from .base import State, StoreBroken, StoreError
from .joblock import Holder, holder_of
from .sqlite import LOCK_FILE, STORE_FILE
from .sqliterows import REQUEST, Tally, requests

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from .base import StoredRequest

_STEP_ROWS: Final = 1000
_BUSIEST: Final = (
    "SELECT domain, count(*) FROM request WHERE state = 0 GROUP BY domain ORDER BY 2 DESC LIMIT ?"
)
_PAGE: Final = f"SELECT {REQUEST} FROM request WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
_BY_START: Final = f"SELECT {REQUEST} FROM request WHERE substr(payload, 1, ?) = ?"  # noqa: S608


@dataclass(frozen=True, slots=True)
class JobSummary:
    """Where a job stands.

    Attributes:
        holder: Who works on it now; None: nobody.
        tally: Its counters as of the last commit.
        next_due_at: Wall-clock seconds at which the first delayed request is due.
        clock_at: Wall-clock seconds of the last commit.
        busiest: The domains with most pending requests.
        facts: Small named values, JSON text.
        file_bytes, log_bytes, free_bytes: The database, its write-ahead log, and what is free in it.
    """

    holder: Holder | None
    tally: Tally
    next_due_at: float | None
    clock_at: float
    busiest: list[tuple[str, int]]
    facts: dict[str, str]
    file_bytes: int
    log_bytes: int
    free_bytes: int


class JobReader:
    """Reads the job in *folder*. Use it in a ``with`` block.

    Raises (all calls): `StoreError` and its kinds.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / STORE_FILE
        self._lock_path = folder / LOCK_FILE
        self._log_path = folder / f"{STORE_FILE}-wal"
        self._con: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        if not self._path.is_file():
            raise StoreBroken(f"{self._path.parent}: holds no job (there is no {STORE_FILE})")
        if not sqlitefile.inspect(self._path):
            raise StoreBroken(f"{self._path}: holds no job yet")
        with sqlitefile.named_errors(self._path):
            self._con = sqlitefile.connect_to_read(self._path, at_rest=not _size(self._log_path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        con, self._con = self._con, None
        if con is not None:
            con.close()

    def summary(self, busiest: int = 10) -> JobSummary:
        """Where the job stands."""
        with sqlitefile.named_errors(self._path):
            con = self._connection()
            con.execute("BEGIN")  # one moment for all of it
            try:
                due = con.execute("SELECT min(due_at) FROM request WHERE state = 3").fetchone()[0]
                (free,) = con.execute("PRAGMA freelist_count").fetchone()
                (page,) = con.execute("PRAGMA page_size").fetchone()
                return JobSummary(
                    holder=holder_of(self._lock_path),
                    tally=Tally.read(con),
                    next_due_at=due,
                    clock_at=con.execute("SELECT clock_at FROM tally").fetchone()[0],
                    busiest=con.execute(_BUSIEST, (busiest,)).fetchall(),
                    facts=dict(con.execute("SELECT name, value FROM fact ORDER BY name")),
                    file_bytes=_size(self._path),
                    log_bytes=_size(self._log_path),
                    free_bytes=free * page,
                )
            finally:
                con.execute("ROLLBACK")

    def requests(self) -> Iterator[StoredRequest]:
        """All requests that are not acknowledged, by id, in steps: a running crawl is not held up."""
        last = 0
        while True:
            with sqlitefile.named_errors(self._path):
                rows = requests(self._connection().execute(_PAGE, (last, _STEP_ROWS)))
            if not rows:
                return
            yield from rows
            last = rows[-1].id

    def find(self, payload_start: bytes) -> list[StoredRequest]:
        """Requests whose payload begins so. Looks through all of them."""
        with sqlitefile.named_errors(self._path):
            found = self._connection().execute(_BY_START, (len(payload_start), payload_start))
            return requests(found)

    def was_seen(self, fingerprint: bytes) -> bool:
        """Was a request with this fingerprint asked for in this job?"""
        with sqlitefile.named_errors(self._path):
            con = self._connection()
            for table in ("seen", "seen_recent"):
                query = f"SELECT 1 FROM {table} WHERE fingerprint = ? LIMIT 1"  # noqa: S608
                with closing(con.execute(query, (fingerprint,))) as found:
                    if found.fetchone() is not None:
                        return True
            return False

    def waiting_results(self, text: str) -> int:
        """Results with *text* in them that not every sink has yet."""
        return self._count("SELECT count(*) FROM outbox WHERE instr(payload, ?)", text)

    def waiting_letters(self, url: str) -> int:
        """Dead letters of *url* that are not yet in their file."""
        return self._count("SELECT count(*) FROM dead WHERE url = ?", url)

    def _count(self, query: str, value: Any) -> int:
        with sqlitefile.named_errors(self._path):
            return int(self._connection().execute(query, (value,)).fetchone()[0])

    def _connection(self) -> sqlite3.Connection:
        if self._con is None:
            raise StoreError(f"{self._path}: is not open")
        return self._con


STATE_NAMES: Final = {
    State.PENDING: "pending",
    State.WINDOW: "pending",
    State.LEASED: "in flight",
    State.DELAYED: "delayed",
    State.HELD: "held",
}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
