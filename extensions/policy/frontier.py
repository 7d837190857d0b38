"""The frontier: what waits, per domain, in order; a bounded window of it in memory, the rest on disk.

The rule it keeps: within a domain everything in the window comes before everything on disk, so that priorities mean the
same in memory and on disk. Nothing here does I/O: what no longer fits is handed back as a spill, and what is short is
named by `wanting`.

Order within a domain: larger priority first, then smaller rank (the scheduler gives seeds a rising and links a falling
rank, which is Scrapy's own order).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_REFILL = 8
"""Rows of a domain's first refill: the first page must not wait for a large one (a row costs about 25 microseconds)."""


@dataclass(slots=True, eq=False)
class Entry:
    """One pending request.

    Attributes:
        id: Its row's id; unique in the job.
        request: The live request, or its payload where it was on disk or holds what may change.
        stored: Whether the job store has a row of it (or will, from the batch that is being gathered).
        storable: False for what can only live in memory (lambda callbacks, live objects); it never spills.
        crashes: Processes that died while it was in flight.
        delay_s: Seconds to wait from its parent's end on; only while it is held for its parent.
        fingerprint: What it is known by, where only a shared store can tell whether it is new.
        parent: Id of the request that made it, for a shared store.
        seed: The entry of a queue that it came from.
    """

    id: int
    domain: str
    priority: int
    rank: int
    request: Any
    stored: bool = False
    storable: bool = True
    crashes: int = 0
    delay_s: float = 0.0
    fingerprint: bytes | None = None
    parent: int | None = None
    seed: int | None = None


Key = tuple[int, int]


class DomainQueue:
    """One domain's part of the frontier."""

    __slots__ = ("_bound", "_window", "on_disk", "refill_size")

    def __init__(self) -> None:
        # Ascending, so that the next one is at the end and the last one, the spill, at the front.
        self._window: list[tuple[int, int, Entry]] = []
        self._bound: Key | None = None  # no row on disk comes before this key
        self.on_disk = 0
        self.refill_size = FIRST_REFILL

    def __len__(self) -> int:
        return len(self._window) + self.on_disk

    @property
    def in_memory(self) -> int:
        """Live entries."""
        return len(self._window)

    @property
    def top_priority(self) -> int | None:
        """Priority of the next entry in memory; None where there is none."""
        return self._window[-1][0] if self._window else None

    @property
    def is_storable(self) -> bool:
        """Could all of it go to disk?"""
        return all(entry.storable for _, _, entry in self._window)

    def belongs_on_disk(self, entry: Entry) -> bool:
        """Would *entry* come after something that is on disk already?"""
        return self._bound is not None and (entry.priority, -entry.rank) < self._bound

    def add(self, entry: Entry) -> None:
        """Put *entry* into the window."""
        insort(self._window, (entry.priority, -entry.rank, entry))

    def pop(self) -> Entry | None:
        """Take the next entry of the window; None where it is empty (there may be more on disk)."""
        return self._window.pop()[2] if self._window else None

    def peek(self) -> Entry | None:
        """The next entry of the window, left in it; None where it is empty."""
        return self._window[-1][2] if self._window else None

    def spill_last(self) -> Entry | None:
        """Take the storable entry that comes last; None where there is none."""
        for at, (_, _, entry) in enumerate(self._window):
            if entry.storable:
                del self._window[at]
                return entry
        return None

    def withdraw(self) -> list[Entry]:
        """Take out all that is stored."""
        entries = [entry for _, _, entry in self._window if entry.storable]
        self._window = [key for key in self._window if not key[2].storable]
        self.on_disk = 0
        self._bound = None
        return entries

    def note_spilled(self, priority: int, rank: int, count: int = 1) -> None:
        """*count* rows are on disk, none of which comes before the given key (beyond what was known)."""
        self.on_disk += count
        key = (priority, -rank)
        if self._bound is None or key > self._bound:
            self._bound = key

    def take_refill(self, entries: Iterable[Entry]) -> int:
        """Rows came back from disk, in order. Returns how many."""
        count = 0
        last: Entry | None = None
        for entry in entries:
            self.add(entry)
            last = entry
            count += 1
        self.on_disk = max(0, self.on_disk - count)
        if not count:
            # The store has none left: what was counted is gone (a job cleaned by hand). Truth wins over the count.
            self.on_disk = 0
        if not self.on_disk:
            self._bound = None
        elif last is not None:
            self._bound = (last.priority, -last.rank)
        self.refill_size = min(self.refill_size * 4, 256)
        return count


class Frontier:
    """All domains' queues under one window.

    Args:
        window: Live entries that memory may hold; each domain has an equal share of it, at least one.

    Attributes:
        most_each: Live entries that a domain may have in any case: fewer where other processes take of its line too.
    """

    __slots__ = ("_queues", "_wanting", "_window", "in_memory", "most_each", "pending")

    def __init__(self, *, window: int) -> None:
        self._window = window
        self.most_each = window
        self._queues: dict[str, DomainQueue] = {}
        self._wanting: dict[str, None] = {}  # insertion-ordered: first short, first filled
        self.in_memory = 0
        self.pending = 0

    @property
    def on_disk(self) -> int:
        """Pending requests that have no live copy."""
        return self.pending - self.in_memory

    def domains(self) -> Iterable[tuple[str, DomainQueue]]:
        """Every domain with work."""
        return self._queues.items()

    def __contains__(self, domain: str) -> bool:
        return domain in self._queues

    def get(self, domain: str) -> DomainQueue | None:
        """The queue of *domain*; None where nothing of it is pending."""
        return self._queues.get(domain)

    def share(self) -> int:
        """Live entries that one domain may have now."""
        return max(1, min(self.most_each, self._window // max(1, len(self._queues))))

    def _queue(self, domain: str) -> DomainQueue:
        queue = self._queues.get(domain)
        if queue is None:
            queue = self._queues[domain] = DomainQueue()
        return queue

    def push(self, entry: Entry) -> Entry | None:
        """Take in *entry*. Returns the entry, this or another of its domain, that must go to disk; None if none must."""
        queue = self._queue(entry.domain)
        self.pending += 1
        if entry.storable and queue.belongs_on_disk(entry):
            queue.note_spilled(entry.priority, entry.rank)
            return entry
        queue.add(entry)
        self.in_memory += 1
        if queue.in_memory <= self.share():
            return None
        spilled = queue.spill_last()
        if spilled is not None:
            queue.note_spilled(spilled.priority, spilled.rank)
            self.in_memory -= 1
        return spilled

    def unspill(self, entry: Entry) -> None:
        """*entry*, handed back as a spill by `push`, cannot go to disk: it stays in memory."""
        queue = self._queue(entry.domain)
        queue.on_disk -= 1
        queue.add(entry)
        self.in_memory += 1

    def note_on_disk(self, domain: str, count: int, priority: int, rank: int) -> None:
        """*count* requests of *domain* are on disk since before, the first of them with the given key."""
        self._queue(domain).note_spilled(priority, rank, count)
        self.pending += count
        self._wanting[domain] = None

    def peek(self, domain: str) -> Entry | None:
        """What `pop` would give, which stays where it is."""
        queue = self._queues.get(domain)
        return None if queue is None else queue.peek()

    def pop(self, domain: str) -> Entry | None:
        """The next entry of *domain*; None where its window is empty. Names it as wanting when it runs low."""
        queue = self._queues.get(domain)
        if queue is None:
            return None
        entry = queue.pop()
        if entry is not None:
            self.pending -= 1
            self.in_memory -= 1
        if queue.on_disk:
            if queue.in_memory * 4 <= min(self.share(), queue.refill_size):
                self._wanting[domain] = None
        elif not queue.in_memory:
            del self._queues[domain]
        return entry

    def withdraw(self, domain: str) -> list[Entry]:
        """Take out all of *domain* that another process can go on with. Returns what was in memory."""
        queue = self._queues.get(domain)
        if queue is None:
            return []
        before = len(queue)
        entries = queue.withdraw()
        self.in_memory -= len(entries)
        self.pending -= before - len(queue)
        self._wanting.pop(domain, None)
        if not len(queue):
            del self._queues[domain]
        return entries

    def want(self, domain: str) -> None:
        """*domain* still wants its refill."""
        self._wanting[domain] = None

    def wanting(self) -> list[tuple[str, int]]:
        """Domains whose window runs low, with how many rows each should get. Asking clears the list."""
        wishes = []
        for domain in self._wanting:
            queue = self._queues.get(domain)
            if queue is not None and queue.on_disk:
                room = max(1, self.share() - queue.in_memory)
                wishes.append((domain, min(room, queue.refill_size)))
        self._wanting.clear()
        return wishes

    def refill(self, domain: str, entries: list[Entry]) -> None:
        """Rows of *domain* came back from disk."""
        queue = self._queue(domain)
        before = len(queue)
        self.in_memory += queue.take_refill(entries)
        self.pending += len(queue) - before
        if not len(queue):
            del self._queues[domain]

    @property
    def is_short(self) -> bool:
        """Does some domain want a refill?"""
        return bool(self._wanting)
