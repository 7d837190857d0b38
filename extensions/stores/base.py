"""What a job's store promises, as plain values: one `Batch` in, rows out.

The rule it keeps: everything that must become true together travels in one `Batch` and is committed in one
transaction: a request's end, its children, its items, its dead letter. A store never decides anything; it keeps rows.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class State(enum.IntEnum):
    """Where a stored request stands. Every row is in exactly one of these."""

    PENDING = 0  # on disk only; a refill may take it
    WINDOW = 1  # pending, and its live copy is in this process's memory window
    LEASED = 2  # handed out, not yet acknowledged
    DELAYED = 3  # waits for `due_at`
    HELD = 4  # unfilterable child of a request that is not acknowledged yet: dies with a crash, is yielded again


@dataclass(slots=True)
class StoredRequest:
    """One request as a row.

    Attributes:
        id: Chosen by the scheduler, unique and increasing within a job.
        domain: The politeness key (host, or host:port).
        priority: Scrapy's priority: larger goes first.
        rank: Order within one priority: smaller goes first.
        payload: The request itself (UTF-8 JSON, made by the codec); the store never looks inside.
        state: Where it stands.
        due_at: Wall-clock seconds before which it must not go; only for `State.DELAYED`.
        parent: Id of the request whose callback made it; for `State.HELD`, and where a shared store needs it.
        crashes: How many times a process died while this request was in flight.
        fingerprint: What it is known by, where it must not be stored twice. Only a store that is shared needs it: whether
            another process had it already is known there alone.
    """

    id: int
    domain: str
    priority: int
    rank: int
    payload: bytes
    state: State = State.PENDING
    due_at: float | None = None
    parent: int | None = None
    crashes: int = 0
    fingerprint: bytes | None = None


@dataclass(slots=True)
class StagedItem:
    """A result on its way to the sinks: strict JSON text, and the request that it came from (None: from `start()`).

    `key`, where there is one, names it in databases instead of its row: the same whichever process made it. `origin` is the
    request that its request is a retry of, by which the key is made.
    """

    payload: str
    request_id: int | None = None
    key: int | None = field(default=None, compare=False)
    origin: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class DeadLetter:
    """What was given up, with all that a person or a replay needs. Credentials are taken out before it is made.

    Attributes:
        uid: Makes a resend harmless: the same uid is stored once.
        kind: ``request``, ``item`` or ``seed``.
        key: What identifies the thing over several failures (the request's fingerprint in hex): the same key is one row.
        reason: Stable word or short phrase: ``http 503``, ``timeout``, ``refused``, ``callback error`` ...
        detail: Last status line, exception class and message, or traceback; at most a few kB.
        attempts: How many times it was sent.
        first_at, last_at: Wall-clock seconds of its first and its last failure.
        payload: The whole request (the codec's JSON), raw bytes of what could not be read, or the item.
        dead_letter_id: Row that this request was replayed from, if any.
    """

    uid: str
    kind: str
    key: str
    spider: str
    url: str
    domain: str
    reason: str
    detail: str
    attempts: int
    status: int | None
    exception: str | None
    first_at: float
    last_at: float
    payload: bytes
    dead_letter_id: int | None = None


@dataclass(slots=True)
class Batch:
    """All changes since the last commit. Lists are applied in this order, in one transaction."""

    inserts: list[StoredRequest] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)  # fingerprints to remember (idempotent)
    moved: list[tuple[State, int]] = field(
        default_factory=list
    )  # (new state, id): spill, window, lease, give back
    delayed: list[tuple[float, int]] = field(
        default_factory=list
    )  # (due_at, id): becomes State.DELAYED
    done: list[int] = field(
        default_factory=list
    )  # acknowledged: the row goes, its HELD children become PENDING
    items: list[StagedItem] = field(default_factory=list)  # visible to sinks from this commit on
    dead: list[DeadLetter] = field(default_factory=list)  # to be carried to the dead-letter store
    facts: dict[str, str] = field(default_factory=dict)  # small named values of the job (JSON text)

    def __bool__(self) -> bool:
        """Is there anything to commit?"""
        return bool(
            self.inserts
            or self.seen
            or self.moved
            or self.delayed
            or self.done
            or self.items
            or self.dead
            or self.facts
        )


@dataclass(slots=True, frozen=True)
class DomainBacklog:
    """What waits on disk for one domain, and the first key in its order."""

    domain: str
    count: int
    best_priority: int
    best_rank: int


@dataclass(slots=True, frozen=True)
class Recovered:
    """What a store held when it was opened.

    Leased rows of a dead process have become PENDING with `crashes` + 1. Those with too many
    crashes, at the last of which they were leased alone, are in `crashed`, still LEASED, for the
    scheduler to make dead letters of. WINDOW rows are PENDING again, HELD rows are gone.
    """

    backlogs: Sequence[DomainBacklog]
    delayed: int
    next_due_at: float | None
    last_id: int
    crashed: Sequence[StoredRequest]
    resumed: bool  # the store existed before
    died: bool = False  # whoever had it open last did not close it


@dataclass(slots=True, frozen=True)
class Counts:
    """Rows by state, and what waits to leave."""

    pending: int
    window: int
    leased: int
    delayed: int
    held: int
    seen: int
    outbox: int
    dead: int


class JobStore(Protocol):
    """One job's durable state. Calls are cheap and run on the event loop, except `close`, `checkpoint`.

    Raises (all calls): `StoreError` and its kinds, never the driver's own errors.
    """

    def open(self) -> Recovered:
        """Open or create; take over what a dead process left."""

    def seen(self, fingerprint: bytes) -> bool:
        """Was it committed as seen? The caller knows its own uncommitted batch."""

    def commit(self, batch: Batch) -> None:
        """Apply *batch* in one transaction. On an error nothing of it is applied, and the batch may be tried again."""

    def refill(self, domain: str, limit: int) -> list[StoredRequest]:
        """Move the *limit* first PENDING rows of *domain* to WINDOW and return them in order."""

    def refill_due(self, now_at: float, limit: int) -> tuple[list[StoredRequest], float | None]:
        """Move up to *limit* DELAYED rows due by *now_at* to WINDOW; and when the next one left is due."""

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""

    def forget_items(self, up_to: int) -> None:
        """Drop items that every sink has (id <= *up_to*)."""

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed dead letters that are not yet in the dead-letter store, in order."""

    def forget_dead(self, ids: Iterable[int]) -> None:
        """Drop dead letters that the dead-letter store has."""

    def fact(self, name: str) -> str | None:
        """A small named value of the job."""

    def counts(self) -> Counts:
        """Rows by state, from counters kept with the rows or an index: never a full scan of payloads."""

    def checkpoint_due(self) -> bool:
        """Answer whether it is time for a `checkpoint`; cheap enough to ask after every commit."""

    def checkpoint(self) -> None:
        """Fold the write-ahead log back and give freed pages to the file system. Called in a thread."""

    def close(self) -> None:
        """Commit nothing, close everything, release the lock. Called in a thread."""


class StoreError(Exception):
    """Something is wrong with the store; the message names the file and the remedy."""


class StoreFull(StoreError):
    """No room on the device: try the same batch again when there is."""


class StoreBusy(StoreError):
    """Another program holds the file's write lock: try the same batch again."""


class StoreBroken(StoreError):
    """The file vanished, is read-only, was cut short or is no store: no retry will mend it."""


class StoreTooNew(StoreError):
    """Written by a newer version; left untouched."""


class JobLocked(StoreError):
    """Another living process works on this job; the message names it."""
