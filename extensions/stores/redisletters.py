"""Dead letters in Redis: those of all workers of a crawl in one place, for all of them to replay.

The rule it keeps: that of the dead-letter file: one thing is one row, a row is replayed by one job at a time, and what a dead
job had claimed is requested again. Every move is one script. There is a bound: the oldest letters go first.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, Self

from .deadletter_db import DeadLetterError
from .deadletter_filters import EVERYTHING
from .deadletter_rows import REPLAYABLE, Claim, Requested, Row, arguments_text
from .deadletter_runs import HEARTBEAT_S, holder_text, lives, may_come_back, read_runs
from .redisletterwire import LetterScripts, arguments_of, failures_of, read_letter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from redis import Redis

    from .base import DeadLetter
    from .deadletter_filters import LetterFilter

SCHEMA: Final = "1"
REGISTRY: Final = "sluice:deadletters"
"""Set of the keys under which dead letters are: `scrapy deadletters` finds those of all spiders by it."""
MOST: Final = 100_000
_KEEP_UIDS_S: Final = 86400.0
"""A letter is sent again only by the process that has it, until it is answered."""
_AT_ONCE: Final = 500


class RedisDeadLetters:
    """One spider's dead letters.

    Args:
        client: Of redis-py, the blocking one; closed by `close`.
        key: Under which they are; other keys begin with it.
        place: Where that is, for messages.
        most: The oldest over so many go.
    """

    def __init__(self, *, client: Redis, key: str, place: str, most: int = MOST) -> None:
        self.key = key
        self._place = place
        self._client: Any = client  # its types leave open whether bytes or text come back
        self._most = most
        self._scripts = LetterScripts(client, key=key, place=place)
        self._run: str | None = None
        self._record: dict[str, Any] = {}
        self._beat_due = 0.0
        self._claimed = False

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return self._place

    def open(self, *, create: bool = True) -> Self:
        """Look at what is there.

        Raises:
            DeadLetterError: nothing (and it is not to be created), something else, or too new.
        """
        with failures_of(self._place):
            pipeline = self._client.pipeline(transaction=False)
            kind, schema = pipeline.type(self.key).hget(self.key, "schema").execute(False)
        if kind == b"none":
            if not create:
                raise DeadLetterError(f"{self.place}: there are no dead letters")
        elif not isinstance(schema, bytes):
            raise DeadLetterError(f"{self.place}: is something else, and is left as it is")
        elif schema.decode() != SCHEMA:
            raise DeadLetterError(
                f"{self.place}: written by another version of Sluice (schema {schema.decode()},"
                f" this one knows {SCHEMA}); it was left as it is"
            )
        return self

    def close(self) -> None:
        """End this run, if there is one, and close the connection. May be called twice."""
        with contextlib.suppress(DeadLetterError):
            self._end_run()
        self._client.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

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
        """Say who puts and claims from now on; see `DeadLetterFile.open_run`."""
        now_at = time.time()
        self._run = uuid.uuid4().hex
        self._record = {
            "job": job,
            "spider": spider,
            "arguments": arguments_text(arguments),
            "folder": folder and str(folder),
            "holder": holder_text(spider),
            "started_at": now_at,
            "ended_at": None,
        }
        with failures_of(self._place):
            pipeline = self._client.pipeline(transaction=False)
            self._scripts.load(pipeline)
            self._say(pipeline)
            pipeline.hgetall(f"{self.key}:runs").smembers(f"{self.key}:jobs")
            *_, runs, jobs = pipeline.execute()
            known = read_runs(runs)
            before = [run for run, record in known.items() if record.get("job") == job]
            self._forget_runs(run for run in before if run != self._run)
            if job.encode() in jobs:
                self._scripts.move("recover", [last_claim], job=job)
            self._recover(jobs, known)

    def put_many(self, letters: Iterable[DeadLetter]) -> None:
        """Store *letters*; one that was put before changes nothing."""
        flat: list[Any] = []
        count = 0
        for letter in letters:
            flat += arguments_of(letter)
            count += 1
        arguments = self._record.get("arguments", "{}")
        self._scripts.put(
            REGISTRY, SCHEMA, time.time(), _KEEP_UIDS_S, self._most, arguments, count, *flat
        )

    def claim(self, limit: int) -> Claim:
        """Take requested rows of this run's spider and arguments for this job alone."""
        if self._run is None:
            raise DeadLetterError(f"{self._place}: no run was opened")
        record = self._record
        with failures_of(self._place):
            if time.monotonic() > self._beat_due:
                self._say()
            number, ids = self._scripts.claim(
                record["spider"], record["arguments"], record["job"], limit
            )
            self._claimed = self._claimed or bool(ids)
            return Claim(number, tuple(self._read(sorted(ids))))

    def settle(self, ids: Iterable[int]) -> None:
        """These replays have ended well: their rows go."""
        self._scripts.move("settle", ids)

    def give_back(self, ids: Iterable[int]) -> None:
        """These rows, claimed by this job, are not in its job store: they are requested again."""
        self._scripts.move("give_back", ids, job=self._record.get("job", ""))

    def recover(self) -> int:
        """Request again what is replaying in no job that lives or can be resumed; how many."""
        with failures_of(self._place):
            pipeline = self._client.pipeline(transaction=False)
            pipeline.hgetall(f"{self.key}:runs").smembers(f"{self.key}:jobs")
            runs, jobs = pipeline.execute()
            return self._recover(jobs, read_runs(runs))

    def _recover(self, jobs: Iterable[bytes], runs: Mapping[str, Mapping[str, Any]]) -> int:
        gone = [
            job.decode()
            for job in jobs
            if not any(may_come_back(run, job.decode()) for run in runs.values())
        ]
        return sum(int(self._scripts.move("recover", [0], job=job)) for job in gone)

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
        where, now_at = where or EVERYTHING, time.time()
        with failures_of(self._place):
            order = self._client.zrevrange if newest_first else self._client.zrange
            ids = [int(id_) for id_ in order(f"{self.key}:last", 0, -1)]
            wanted = set(where.ids)
            found = 0
            for row in self._read(id_ for id_ in ids if not wanted or id_ in wanted):
                if not where.lets_through(row, now_at):
                    continue
                found += 1
                if found > offset:
                    yield row
                if limit is not None and found >= offset + limit:
                    return

    def count(self, where: LetterFilter | None = None) -> int:
        """How many rows *where* lets through."""
        if where is None or where == EVERYTHING:
            with failures_of(self._place):
                return int(self._client.zcard(f"{self.key}:last"))
        return sum(1 for _ in self.rows(where))

    def request_replay(self, where: LetterFilter | None = None) -> Requested:
        """Mark the dead rows that *where* lets through as requested."""
        self.recover()
        groups: dict[tuple[str, str], int] = {}
        able: dict[int, tuple[str, str]] = {}
        not_replayable = busy = 0
        for row in self.rows(where, newest_first=False):
            if row.kind in REPLAYABLE:
                able[row.id] = row.spider, row.arguments
            else:
                not_replayable += 1
        for id_, became in zip(sorted(able), self._move("request", sorted(able)), strict=True):
            busy += became == "b"
            if became == "r":
                groups[able[id_]] = groups.get(able[id_], 0) + 1
        return Requested(groups, not_replayable, busy)

    def purge(self, where: LetterFilter | None = None) -> int:
        """Delete the rows that *where* lets through, except those being replayed; how many."""
        self.recover()
        return self._move("purge", [row.id for row in self.rows(where)]).count("d")

    def running(self, spider: str, arguments: str) -> bool:
        """Is a crawl of this spider at work, made so? It takes what is requested."""
        with failures_of(self._place):
            return any(
                (run.get("spider"), run.get("arguments")) == (spider, arguments) and lives(run)
                for run in read_runs(self._client.hgetall(f"{self.key}:runs")).values()
            )

    # -- inside

    def _read(self, ids: Iterable[int]) -> Iterator[Row]:
        left = list(ids)
        for start in range(0, len(left), _AT_ONCE):
            pipeline = self._client.pipeline(transaction=False)
            for id_ in left[start : start + _AT_ONCE]:
                pipeline.hgetall(f"{self.key}:letter:{id_}")
            for fields in pipeline.execute():
                if fields:  # else it went in the meantime
                    yield read_letter(fields)

    def _move(self, what: str, ids: list[int]) -> str:
        parts = (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
        return "".join(self._scripts.move(what, part) for part in parts)

    def _say(self, client: Any = None) -> None:
        """This run is alive: another host cannot ask the kernel."""
        record = {**self._record, "seen_at": time.time()}
        (self._client if client is None else client).hset(
            f"{self.key}:runs", self._run, json.dumps(record)
        )
        self._beat_due = time.monotonic() + HEARTBEAT_S

    def _forget_runs(self, runs: Iterable[str]) -> None:
        if names := list(runs):
            self._client.hdel(f"{self.key}:runs", *names)

    def _end_run(self) -> None:
        if self._run is None:
            return
        run, self._run = self._run, None
        with failures_of(self._place):
            if self._record["folder"]:  # its job can be resumed, and has what it claimed
                record = {**self._record, "seen_at": time.time(), "ended_at": time.time()}
                self._client.hset(f"{self.key}:runs", run, json.dumps(record))
                return
            self._forget_runs([run])
            if self._claimed:
                self._scripts.move("recover", [0], job=self._record["job"])


def keys_of_all(client: Redis, *, place: str) -> list[str]:
    """The keys under which there are dead letters of some spider.

    Raises:
        DeadLetterError: Redis does not answer.
    """
    redis: Any = client
    with failures_of(place):
        keys: list[str] = sorted(key.decode() for key in redis.smembers(REGISTRY))
    return keys
