"""What the scripts of a shared job answer, read into plain values; and what an answer may say instead.

The rule it keeps: vanished keys are known as such, and never taken for an empty job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from .base import StoreBroken, StoreError, StoreTooNew
from .redisrows import read_row
from .redisvalues import Inherited, Memory, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .base import StoredRequest

SCHEMA: Final = "1"


class Fenced(StoreError):
    """This worker was taken for dead: its rows are others' now. It goes on as a new one."""


class JobLost(StoreBroken):
    """The job's keys vanished from Redis, all or some."""


def entered(reply: Any) -> tuple[int, str, Totals]:
    """Number of the worker, name of the job, and how it stands.

    Raises:
        StoreBroken, StoreTooNew, JobLost: what is under the keys is no job that can be joined.
    """
    word, *rest = [text(part) for part in reply]
    if word == "shape":
        raise StoreBroken(
            f"{rest[0]}, and is left untouched. Finish it with what wrote it, delete it, or give"
            " SCHEDULER_QUEUE_KEY and SCHEDULER_DUPEFILTER_KEY other names."
        )
    if word == "schema":
        raise StoreTooNew(
            f"The job in Redis was written by another version (schema {rest[0]}, this is"
            f" {SCHEMA}). Finish it with that one."
        )
    if word == "lost":
        raise JobLost(_lost(rest[0]))
    return int(rest[0]), rest[1], Totals(rows=int(rest[2]), workers=int(rest[3]) + 1)


def check(reply: Any) -> None:
    """Is this worker, and the job, still there?

    Raises:
        JobLost, Fenced: no.
    """
    word = text(reply[0])
    if word == "lost":
        raise JobLost(_lost(text(reply[1])))
    if word == "fenced":
        raise Fenced("This worker was silent for too long, and was taken for dead.")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What `fetch.lua` brought.

    Attributes:
        memory: None where it was not asked for.
        lines: Domains of this worker, with the rows left in Redis.
        watched: A number for each key that was watched.
        inherited: Domains that are new to this worker.
    """

    totals: Totals
    memory: Memory | None
    rows: list[StoredRequest]
    lines: list[tuple[str, int]]
    crashed: list[StoredRequest]
    watched: list[int]
    inherited: list[Inherited]

    @classmethod
    def read(cls, reply: Any) -> Self:
        """From the answer, after `check`."""
        _, _, totals, rows, lines, crashed, watched, inherited = reply
        numbers = [text(part) for part in totals]
        memory = None
        if numbers[11]:
            memory = Memory(int(numbers[11]), int(numbers[12] or 0), numbers[13])
        return cls(
            totals=_totals(numbers),
            memory=memory,
            rows=[read_row(id_, value) for id_, value in _by(2, rows)],
            lines=[(text(a), int(b)) for a, b in _by(2, lines)],
            crashed=[read_row(id_, value) for id_, value in _by(2, crashed)],
            watched=[int(number) for number in watched],
            inherited=[
                Inherited(text(name), text(kept), age_s=int(age_ms) / 1000, died=int(died) == 1)
                for name, died, age_ms, kept in _by(4, inherited)
            ],
        )


def _totals(numbers: Sequence[str]) -> Totals:
    return Totals(
        rows=int(numbers[1]),
        delayed=int(numbers[2]),
        held=int(numbers[3]),
        seen=int(numbers[4]),
        unclaimed=int(numbers[5]),
        domains=int(numbers[6]),
        workers=int(numbers[7]),
        hungry=int(numbers[8]),
        next_due_at=float(numbers[9]) if numbers[9] else None,
        reclaimed=int(numbers[10]),
    )


def _lost(what: str) -> str:
    return (
        f"Part of the job vanished from Redis: {what}. It was emptied, restarted without its data, or evicts keys"
        " (maxmemory-policy must be noeviction). What it held is lost: start over with"
        " SCHEDULER_FLUSH_ON_START=True."
    )


def text(value: Any) -> str:
    """Bytes of Redis's as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _by(n: int, flat: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return zip(*[iter(flat)] * n, strict=True)
