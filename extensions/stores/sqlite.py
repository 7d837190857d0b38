"""A job in one SQLite file: seen, waiting, in flight, and not yet delivered.

The rule it keeps: a commit is all or nothing, and so are the counters, which live in a row beside
the rows that they count. Reads walk an index and stop. The driver's transaction is open only inside
a call: a transaction left open would keep the write-ahead log from ever starting over.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import sqlitefile
from .base import (
    Batch,
    Counts,
    DeadLetter,
    Recovered,
    StagedItem,
    State,
    StoreBroken,
    StoredRequest,
    StoreError,
)
from .joblock import JobLock
from .sqlitechanges import Changes
from .sqliterecovery import OPEN_FACT, check_spider, recover
from .sqliterows import DEAD, REQUEST, Tally, requests
from .sqliteseen import SeenTable

if TYPE_CHECKING:
    from collections.abc import Iterable

STORE_FILE: Final = "job.sqlite"
LOCK_FILE: Final = "job.lock"

_CHECKPOINT_BYTES: Final = 4 << 20

_TAKE_FIRST = f"""
    UPDATE request SET state = 1 WHERE id IN (
        SELECT id FROM request WHERE state = 0 AND domain = ? ORDER BY priority DESC, rank LIMIT ?
    ) RETURNING {REQUEST}"""  # noqa: S608
_TAKE_DUE = f"""
    UPDATE request SET state = 1, due_at = NULL WHERE id IN (
        SELECT id FROM request WHERE state = 3 AND due_at <= ? ORDER BY due_at LIMIT ?
    ) RETURNING {REQUEST}"""  # noqa: S608


class SqliteJobStore:
    """`JobStore` over one SQLite file in write-ahead mode.

    Calls may come from any thread; they exclude each other. `checkpoint` has a connection of its
    own, so that commits go on beside it.
    """

    def __init__(
        self,
        *,
        path: Path | str | None = None,
        durable: bool = True,
        max_crashes: int = 3,
        spider: str = "",
        busy_timeout_s: float = 1.0,
        max_pages: int | None = None,
    ) -> None:
        """Keep the settings; `open` does the work.

        Args:
            path: The file, usually ``job.sqlite`` in the job's folder. None: a temporary folder,
                gone at `close`.
            durable: False for a store that nobody will ever resume: faster, worthless after a power
                cut.
            max_crashes: A request that was in flight when this many processes died, the last time
                alone, is reported as crashed.
            spider: Named in the lock, for whoever finds the job locked.
            busy_timeout_s: How long a call waits for another program (the sqlite3 shell) to let go
                of the file.
            max_pages: Bound of the file in pages of 4 KiB; over it a commit raises `StoreFull`.
        """
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._given_path = None if path is None else Path(path)
        self._durable = durable
        self._max_crashes = max_crashes
        self._spider = spider
        self._busy_timeout_s = busy_timeout_s
        self._max_pages = max_pages
        self._path = self._given_path or Path(STORE_FILE)
        self._lock: JobLock | None = None
        self._mutex = threading.RLock()
        self._checkpointing = threading.Lock()
        self._con: sqlite3.Connection | None = None
        self._tally = Tally()
        self._seen = SeenTable()
        self._live: dict[
            int, State
        ] = {}  # states of the rows that this process holds: window and leased
        self._identity = (0, 0)
        self._wal_path = self._path
        self._commits_since_checkpoint = 0
        self._clock_offset_s = 0.0

    @property
    def path(self) -> Path:
        """The store's file; for a temporary store, known once it is open."""
        return self._path

    # --- opening and closing ----------------------------------------------------------------------

    def open(self) -> Recovered:
        """Open or create; take over what a dead process left.

        Raises:
            JobLocked, StoreTooNew, StoreBroken, StoreFull, StoreBusy
        """
        self._settle_path()
        self._lock = JobLock(path=self._path.with_name(LOCK_FILE), spider=self._spider)
        self._lock.acquire()
        try:
            with sqlitefile.named_errors(self._path):
                return self._open()
        except BaseException:
            self.close()
            raise

    def _settle_path(self) -> None:
        if self._given_path is None:
            self._temporary = tempfile.TemporaryDirectory(
                prefix="sluice-", ignore_cleanup_errors=True
            )
            self._path = Path(self._temporary.name, STORE_FILE)
        else:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise StoreBroken(
                    f"{self._path.parent}: the job's folder cannot be made: {e.strerror}"
                ) from e
        self._wal_path = self._path.with_name(self._path.name + "-wal")

    def _open(self) -> Recovered:
        expected = sqlitefile.inspect(self._path)
        if not expected:
            sqlitefile.create(self._path)
        con = self._con = sqlitefile.connect(
            self._path, durable=self._durable, busy_timeout_s=self._busy_timeout_s
        )
        existed = sqlitefile.prepare(con, self._path)
        if expected:
            sqlitefile.check_length(con, self._path)
        if self._max_pages is not None:
            con.execute(f"PRAGMA max_page_count={int(self._max_pages)}")
        status = self._path.stat()
        self._identity = (status.st_dev, status.st_ino)
        self._clock_offset_s = time.time() - time.monotonic()
        return self._recover(con, existed)

    def close(self) -> None:
        """Commit nothing, close everything, release the lock. Called in a thread: folds the log."""
        with self._mutex, self._checkpointing:
            con, self._con = self._con, None
            try:
                if con is not None:
                    if self._temporary is None:
                        with contextlib.suppress(sqlite3.Error):
                            con.execute("DELETE FROM fact WHERE name = ?", (OPEN_FACT,))
                            sqlitefile.give_back_free_pages(con)
                    with sqlitefile.named_errors(self._path):
                        con.close()
            finally:
                if self._lock is not None:
                    self._lock.release()
                if self._temporary is not None:
                    self._temporary.cleanup()
                    self._temporary = None

    # --- recovery ---------------------------------------------------------------------------------

    def _recover(self, con: sqlite3.Connection, existed: bool) -> Recovered:
        check_spider(con, spider=self._spider, folder=self._path.parent)
        self._tally, found = recover(
            con, spider=self._spider, max_crashes=self._max_crashes, clock_at=self._clock()
        )
        self._seen.load(con)
        self._live = {r.id: State.LEASED for r in found.crashed}
        return replace(found, resumed=existed)

    def _clock(self) -> float:
        """Wall-clock seconds, deaf to changes of the system's clock while this process lives."""
        return time.monotonic() + self._clock_offset_s

    # --- the way in -------------------------------------------------------------------------------

    def seen(self, fingerprint: bytes) -> bool:
        """Was it committed as seen?"""
        with self._mutex:
            if fingerprint in self._seen:
                return True
            try:
                return self._seen.in_table(self._connection(), fingerprint)
            except sqlite3.Error as e:
                raise sqlitefile.named(e, self._path) from e

    def commit(self, batch: Batch) -> None:
        """Apply *batch* in one transaction; on an error nothing of it: it may be tried again."""
        with self._mutex, sqlitefile.named_errors(self._path):
            con = self._connection()
            self._check_file()
            changes = Changes(con, self._tally, self._live)
            new: list[bytes] = []
            con.execute("BEGIN IMMEDIATE")
            try:
                if batch.seen:
                    new = self._seen.append(con, batch.seen)
                    changes.tally.seen += len(new)
                changes.apply(batch)
                changes.tally.write(con, self._clock())
                con.execute("COMMIT")
            except BaseException:
                sqlitefile.roll_back(con)
                raise
            self._tally = changes.tally
            changes.settle()
            self._seen.appended(new)
            self._commits_since_checkpoint += 1

    # --- the way out ------------------------------------------------------------------------------

    def refill(self, domain: str, limit: int) -> list[StoredRequest]:
        """Move the *limit* first PENDING rows of *domain* to WINDOW and return them in order."""
        rows = self._take(_TAKE_FIRST, (domain, limit), State.PENDING)
        rows.sort(key=lambda r: (-r.priority, r.rank))
        return rows

    def refill_due(self, now_at: float, limit: int) -> tuple[list[StoredRequest], float | None]:
        """Move up to *limit* rows due by *now_at* to WINDOW; and say when the next one is due."""
        with self._mutex:
            rows = (
                self._take(_TAKE_DUE, (now_at, limit), State.DELAYED) if self._tally.delayed else []
            )
            next_due_at = None
            if self._tally.delayed:
                with sqlitefile.named_errors(self._path):
                    (next_due_at,) = (
                        self._connection()
                        .execute("SELECT min(due_at) FROM request WHERE state = 3")
                        .fetchone()
                    )
        rows.sort(key=lambda r: (-r.priority, r.rank))
        return rows, next_due_at

    def _take(self, sql: str, key: tuple[str | float, int], source: State) -> list[StoredRequest]:
        """Move rows from *source* to the window.

        The counters' row is left for the next commit: a crash would make them PENDING anyway.
        """
        with self._mutex, sqlitefile.named_errors(self._path):
            con = self._connection()
            rows = requests(con.execute(sql, key))
            if rows:
                self._tally.add(source, -len(rows))
                self._tally.add(State.WINDOW, len(rows))
                self._live.update((r.id, State.WINDOW) for r in rows)
            return rows

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""
        with self._mutex, sqlitefile.named_errors(self._path):
            rows = self._connection().execute(
                "SELECT id, payload, request_id FROM outbox WHERE id > ? ORDER BY id LIMIT ?",
                (after, limit),
            )
            return [(id_, StagedItem(payload, request_id)) for id_, payload, request_id in rows]

    def forget_items(self, up_to: int) -> None:
        """Drop items that every sink has (id <= *up_to*)."""
        self._forget("DELETE FROM outbox WHERE id <= ?", [(up_to,)], "outbox")

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed dead letters that are not yet in the dead-letter store, in order."""
        with self._mutex, sqlitefile.named_errors(self._path):
            rows = self._connection().execute(
                f"SELECT id, {DEAD} FROM dead ORDER BY id LIMIT ?",  # noqa: S608 (constants)
                (limit,),
            )
            return [(row[0], DeadLetter(*row[1:])) for row in rows]

    def forget_dead(self, ids: Iterable[int]) -> None:
        """Drop dead letters that the dead-letter store has."""
        self._forget("DELETE FROM dead WHERE id = ?", [(id_,) for id_ in ids], "dead")

    def _forget(self, sql: str, keys: list[tuple[int]], counter: str) -> None:
        with self._mutex, sqlitefile.named_errors(self._path):
            con = self._connection()
            tally = replace(self._tally)
            con.execute("BEGIN IMMEDIATE")
            try:
                gone = con.executemany(sql, keys).rowcount
                setattr(tally, counter, getattr(tally, counter) - max(0, gone))
                tally.write(con, self._clock())
                con.execute("COMMIT")
            except BaseException:
                sqlitefile.roll_back(con)
                raise
            self._tally = tally

    def fact(self, name: str) -> str | None:
        """A small named value of the job."""
        with self._mutex, sqlitefile.named_errors(self._path):
            row = (
                self._connection()
                .execute("SELECT value FROM fact WHERE name = ?", (name,))
                .fetchone()
            )
        return None if row is None else str(row[0])

    def counts(self) -> Counts:
        """Rows by state, from the counters."""
        t = self._tally
        return Counts(
            pending=t.pending,
            window=t.window,
            leased=t.leased,
            delayed=t.delayed,
            held=t.held,
            seen=t.seen,
            outbox=t.outbox,
            dead=t.dead,
        )

    @property
    def last_item(self) -> int:
        """Id of the last result that was committed."""
        return self._tally.last_item

    # --- upkeep -----------------------------------------------------------------------------------

    def checkpoint_due(self) -> bool:
        """Has the write-ahead log grown enough to be worth folding back? Costs one `stat`."""
        if self._seen.merge_due:
            return True
        if not self._commits_since_checkpoint:
            return False
        try:
            return self._wal_path.stat().st_size > _CHECKPOINT_BYTES
        except OSError:
            return False

    def checkpoint(self) -> None:
        """Fold the log back and give freed pages to the file system. Called in a thread.

        Commits go on beside it, but the log starts over only if none came in between: let flushes
        wait for it.
        """
        with self._checkpointing:
            if self._con is None:
                return
            self._commits_since_checkpoint = 0
            with sqlitefile.named_errors(self._path):
                con = sqlitefile.connect(
                    self._path, durable=self._durable, busy_timeout_s=self._busy_timeout_s
                )
                try:
                    if self._seen.merge_due:
                        self._merge_seen(con)
                    sqlitefile.give_back_free_pages(con)
                    con.execute("PRAGMA wal_checkpoint(PASSIVE)")
                finally:
                    con.close()

    def _merge_seen(self, con: sqlite3.Connection) -> None:
        with self._mutex:
            self._seen.merge_begins()
        merged = False
        try:
            known = self._seen.merge(con)
            merged = True
        finally:
            with self._mutex:
                self._seen.merge_ended(merged=merged)
        with self._mutex:
            self._tally.seen -= known

    def _connection(self) -> sqlite3.Connection:
        if self._con is None:
            raise StoreError(f"{self._path}: the store is not open")
        return self._con

    def _check_file(self) -> None:
        """SQLite would go on for ever in a file that was removed or replaced."""
        try:
            status = self._path.stat()
        except OSError as e:
            raise StoreBroken(
                f"{self._path}: vanished ({e.strerror}); what was not yet written is lost"
            ) from e
        if (status.st_dev, status.st_ino) != self._identity:
            raise StoreBroken(f"{self._path}: was replaced by another file under a running crawl")
