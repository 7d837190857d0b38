"""The dead-letter file: what crawls gave up, kept until somebody replays or purges it.

The rule it keeps: one thing is one row, however often it fails, and a row is replayed by one job at
a time. A letter goes dead -> requested -> replaying -> gone, or back to dead with one replay more.
What a job has claimed is either in its job store or here: each claim has a number, which the job
commits together with the requests that it made of it, so that at its next start `open_run` gives
back what never arrived.

Several crawls and a person use the file at once. Calls block (one commit with fsync each): a crawl
makes them in a thread.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .deadletter_db import DeadLetterDatabase, DeadLetterError
from .deadletter_filters import EVERYTHING
from .deadletter_rows import (
    REPLAYABLE,
    SETTLED,
    Claim,
    Requested,
    Row,
    arguments_text,
    settled,
)
from .deadletter_runs import HEARTBEAT_S, alive, holder_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping

    from .base import DeadLetter
    from .deadletter_filters import LetterFilter

__all__ = [
    "Claim",
    "DeadLetterError",
    "DeadLetterFile",
    "Requested",
    "Row",
    "arguments_text",
    "settled",
]

_KEEP_UIDS_S = 90 * 86400.0
_FIELDS = (
    "id, spider, kind, key, url, domain, reason, detail, attempts, status, exception, "
    "first_at, last_at, replays, state, arguments, payload"
)


class DeadLetterFile(DeadLetterDatabase):
    """One file of dead letters. Usable from any thread, one call at a time."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._run: int | None = None
        self._job: str | None = None
        self._spider = ""
        self._arguments = "{}"
        self._beat_at = 0.0

    def close(self) -> None:
        """End this run, if there is one, and close the file. May be called twice."""
        with self._lock, contextlib.suppress(DeadLetterError):
            self._end_run()
        super().close()

    # -- a crawl's side

    def open_run(
        self,
        *,
        job: str,
        spider: str,
        arguments: Mapping[str, Any],
        folder: Path | str | None = None,
        last_claim: int = 0,
    ) -> None:
        """Say who puts and claims from now on.

        Args:
            job: Id of the job, kept over its restarts.
            spider: Name of the spider.
            arguments: What the spider was made with; a replay makes it the same way.
            folder: The job's, if it can be resumed.
            last_claim: Number of the last claim that the job has committed; what it claimed later
                never arrived and is requested again.
        """
        now_at = time.time()
        with self._writing() as db:
            text = arguments_text(arguments)
            holder = holder_text(spider)
            cursor = db.execute(
                "INSERT INTO runs (job, spider, arguments, folder, holder, started_at, seen_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (job, spider, text, folder and str(folder), holder, now_at, now_at),
            )
            self._run, self._job, self._spider, self._arguments = (
                cursor.lastrowid,
                job,
                spider,
                text,
            )
            self._beat_at = time.monotonic()
            db.execute(
                "UPDATE letters SET state = 'requested', job = NULL, claim = NULL "
                "WHERE state = 'replaying' AND job = ? AND claim > ?",
                (job, last_claim),
            )
            db.execute("DELETE FROM runs WHERE job = ? AND id <> ?", (job, self._run))
            db.execute("DELETE FROM uids WHERE put_at < ?", (now_at - _KEEP_UIDS_S,))
        self.recover()

    def put_many(self, letters: Iterable[DeadLetter]) -> None:
        """Store *letters*; one that was put before changes nothing."""
        now_at = time.time()
        with self._writing() as db:
            for letter in letters:
                fresh = db.execute(
                    "INSERT OR IGNORE INTO uids VALUES (?, ?)", (letter.uid, now_at)
                ).rowcount
                if not fresh:
                    continue
                if letter.kind == SETTLED:
                    db.execute("DELETE FROM letters WHERE id = ?", (letter.dead_letter_id,))
                else:
                    self._put(db, letter)

    def claim(self, limit: int) -> Claim:
        """Take requested rows of this run's spider and arguments for this job alone."""
        mine = "state = 'requested' AND spider = ? AND arguments = ?"
        key = (self._spider, self._arguments)
        with self._failures(), self._lock:
            db = self._db()
            self._beat(db)
            if not db.execute(f"SELECT 1 FROM letters WHERE {mine} LIMIT 1", key).fetchone():
                return Claim(0, ())
        with self._writing() as db:
            ids = [
                row[0]
                for row in db.execute(
                    f"SELECT id FROM letters WHERE {mine} ORDER BY id LIMIT ?",
                    (*key, limit),
                )
            ]
            if not ids:
                return Claim(0, ())
            number = db.execute("INSERT INTO claims DEFAULT VALUES").lastrowid or 0
            db.execute("DELETE FROM claims WHERE number < ?", (number,))
            db.executemany(
                "UPDATE letters SET state = 'replaying', job = ?, claim = ? WHERE id = ?",
                [(self._job, number, id_) for id_ in ids],
            )
            rows = db.execute(
                f"SELECT {_FIELDS} FROM letters WHERE claim = ? ORDER BY id",
                (number,),
            )
            return Claim(number, [Row(*row) for row in rows])

    def settle(self, ids: Iterable[int]) -> None:
        """These replays have ended well: their rows go."""
        with self._writing() as db:
            db.executemany("DELETE FROM letters WHERE id = ?", [(id_,) for id_ in ids])

    def give_back(self, ids: Iterable[int]) -> None:
        """These rows, claimed by this job, are not in its job store: they are requested again."""
        with self._writing() as db:
            db.executemany(
                "UPDATE letters SET state = 'requested', job = NULL, claim = NULL "
                "WHERE id = ? AND state = 'replaying' AND job = ?",
                [(id_, self._job) for id_ in ids],
            )

    def recover(self) -> int:
        """Request again what is replaying in no job that lives or can be resumed; how many."""
        with self._writing() as db:
            jobs = [
                job
                for (job,) in db.execute(
                    "SELECT DISTINCT job FROM letters WHERE state = 'replaying'"
                )
                if not self._may_come_back(db, job)
            ]
            return sum(
                db.execute(
                    "UPDATE letters SET state = 'requested', job = NULL, claim = NULL "
                    "WHERE state = 'replaying' AND job IS ?",
                    (job,),
                ).rowcount
                for job in jobs
            )

    # -- a person's side

    def rows(
        self,
        where: LetterFilter | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Iterator[Row]:
        """The rows that *where* lets through."""
        condition, values = (where or EVERYTHING).sql(time.time())
        order = "DESC" if newest_first else "ASC"
        with self._failures():
            query = (
                f"SELECT {_FIELDS} FROM letters WHERE {condition} "
                f"ORDER BY last_at {order}, id {order} LIMIT ? OFFSET ?"
            )
            cursor = self._db().execute(query, (*values, -1 if limit is None else limit, offset))
            for row in cursor:
                yield Row(*row)

    def count(self, where: LetterFilter | None = None) -> int:
        """How many rows *where* lets through."""
        condition, values = (where or EVERYTHING).sql(time.time())
        query = f"SELECT count(*) FROM letters WHERE {condition}"
        with self._failures():
            return int(self._db().execute(query, values).fetchone()[0])

    def request_replay(self, where: LetterFilter | None = None) -> Requested:
        """Mark the dead rows that *where* lets through as requested."""
        self.recover()
        condition, values = (where or EVERYTHING).sql(time.time())
        kinds = ", ".join(f"'{kind}'" for kind in REPLAYABLE)
        with self._writing() as db:
            not_replayable = db.execute(
                f"SELECT count(*) FROM letters WHERE ({condition}) AND kind NOT IN ({kinds})",
                values,
            ).fetchone()[0]
            busy = db.execute(
                f"SELECT count(*) FROM letters WHERE ({condition}) AND state = 'replaying'",
                values,
            ).fetchone()[0]
            takes = f"({condition}) AND kind IN ({kinds}) AND state IN ('dead', 'requested')"
            groups = {
                (spider, arguments): count
                for spider, arguments, count in db.execute(
                    f"SELECT spider, arguments, count(*) FROM letters WHERE {takes} "
                    "GROUP BY spider, arguments ORDER BY min(id)",
                    values,
                )
            }
            db.execute(f"UPDATE letters SET state = 'requested' WHERE {takes}", values)
            return Requested(groups, not_replayable, busy)

    def purge(self, where: LetterFilter | None = None) -> int:
        """Delete the rows that *where* lets through, except those being replayed; how many."""
        self.recover()
        condition, values = (where or EVERYTHING).sql(time.time())
        with self._writing() as db:
            return db.execute(
                f"DELETE FROM letters WHERE ({condition}) AND state <> 'replaying'",
                values,
            ).rowcount

    def running(self, spider: str, arguments: str) -> bool:
        """Is a crawl of this spider at work, made so? It takes what is requested."""
        with self._failures(), self._lock:
            runs = self._db().execute(
                "SELECT holder, seen_at FROM runs "
                "WHERE spider = ? AND arguments = ? AND ended_at IS NULL",
                (spider, arguments),
            )
            return any(alive(holder, seen_at) for holder, seen_at in runs.fetchall())

    # -- inside

    def _put(self, db: sqlite3.Connection, letter: DeadLetter) -> None:
        row = None
        if letter.dead_letter_id is not None:
            row = db.execute(
                "SELECT id FROM letters WHERE id = ?", (letter.dead_letter_id,)
            ).fetchone()
        came_back = row is not None
        if row is None:
            row = db.execute(
                "SELECT id FROM letters WHERE spider = ? AND kind = ? AND key = ?",
                (letter.spider, letter.kind, letter.key),
            ).fetchone()
        news = (letter.reason, letter.detail, letter.status, letter.exception, letter.attempts)
        if row is None:
            db.execute(
                "INSERT INTO letters (reason, detail, status, exception, attempts, spider, kind, "
                "key, url, domain, first_at, last_at, arguments, payload) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *news,
                    *(letter.spider, letter.kind, letter.key, letter.url, letter.domain),
                    *(letter.first_at, letter.last_at, self._arguments, letter.payload),
                ),
            )
            return
        db.execute(
            "UPDATE letters SET reason = ?, detail = ?, status = ?, exception = ?, "
            "attempts = attempts + ?, first_at = min(first_at, ?), last_at = max(last_at, ?) "
            "WHERE id = ?",
            (*news, letter.first_at, letter.last_at, row[0]),
        )
        if came_back:
            db.execute(
                "UPDATE letters SET state = 'dead', job = NULL, claim = NULL, "
                "replays = replays + 1 WHERE id = ?",
                row,
            )

    def _may_come_back(self, db: sqlite3.Connection, job: str | None) -> bool:
        """Is *job* running, or can it be resumed?"""
        runs = db.execute(
            "SELECT folder, holder, seen_at, ended_at FROM runs WHERE job = ?", (job,)
        ).fetchall()
        return any(
            (folder is not None and Path(folder).exists())
            or (ended_at is None and alive(holder, seen_at))
            for folder, holder, seen_at, ended_at in runs
        )

    def _beat(self, db: sqlite3.Connection) -> None:
        """Say now and then that this run is alive: another host cannot ask the kernel."""
        if self._run is None:
            raise DeadLetterError(f"{self.path}: no run was opened")
        if time.monotonic() - self._beat_at > HEARTBEAT_S:
            db.execute("UPDATE runs SET seen_at = ? WHERE id = ?", (time.time(), self._run))
            self._beat_at = time.monotonic()

    def _end_run(self) -> None:
        if self._run is None:
            return
        run, self._run = self._run, None
        with self._writing() as db:
            db.execute("UPDATE runs SET ended_at = ? WHERE id = ?", (time.time(), run))
            db.execute(
                "DELETE FROM runs WHERE ended_at IS NOT NULL AND folder IS NULL AND job NOT IN "
                "(SELECT job FROM letters WHERE job IS NOT NULL)"
            )
        self.recover()
