"""The job's books: what was handed out, what changed since the last commit, and what ended.

The rule it keeps: whatever must become true together is committed together. A request's end, its children and its items go
into one batch; nothing is committed while a request is being enqueued or handed out, so that a retry and the end of the
request that it replaces can never be torn apart by a crash.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from .codec import Unserialisable
from .leases import Lease
from .policy.frontier import Entry
from .stores.base import Batch, DeadLetter, StagedItem, State, StoredRequest, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request

    from .codec import RequestCodec
    from .domains import Domain
    from .stores.base import JobStore

logger = logging.getLogger(__name__)

HELD_IN_MEMORY = 200
"""Unfilterable children of one running callback kept live; more of them wait in the store, so that a callback that yields
200,000 links does not hold them all."""


class Ledger:
    """Leases and the batch that is being gathered.

    Args:
        store: Where batches go.
        durable: Whether the job survives this process; if not, only what is not in memory gets a row.
        codec: Makes payloads of requests.
        on_unstorable: Told of each request that the codec refuses.
    """

    def __init__(
        self,
        *,
        store: JobStore,
        durable: bool,
        codec: RequestCodec,
        on_unstorable: Callable[[Request, Unserialisable], None],
    ) -> None:
        self.store = store
        self.durable = durable
        self.codec = codec
        self._on_unstorable = on_unstorable
        self._reopened = 0
        self.staged = 0  # results of leased requests
        self.buried = 0  # dead letters put into a batch; set back by whoever carries them on
        self.leases: dict[int, Lease] = {}
        self.by_request: dict[Request, Lease] = {}
        self._flying: dict[Request, Lease] = {}
        self._landed: dict[int, Lease] = {}
        self._batch = Batch()
        self._inserts: dict[int, StoredRequest] = {}
        self._seen: set[bytes] = set()

    # -- rows ----------------------------------------------------------------------------------------------------------

    def was_seen(self, fingerprint: bytes) -> bool:
        """Was it asked for before, in this job? Remembers it if not."""
        if fingerprint in self._seen or self.store.seen(fingerprint):
            return True
        self._seen.add(fingerprint)
        self._batch.seen.append(fingerprint)
        return False

    def put(
        self, entry: Entry, state: State, *, due_at: float | None = None, parent: int | None = None
    ) -> bool:
        """Give *entry* a row in *state*, or move its row there. Drops the live copy where it goes to disk.

        Returns:
            False where it cannot be stored: it then lives in memory only.
        """
        to_disk = state in {State.PENDING, State.HELD}
        if not entry.stored:
            if not (self.durable or to_disk or state is State.DELAYED):
                return True
            if not entry.storable:
                return False  # tried and told before
            try:
                payload = (
                    entry.request
                    if isinstance(entry.request, bytes)
                    else self.codec.encode(entry.request)
                )
            except Unserialisable as error:
                entry.storable = False
                self._on_unstorable(entry.request, error)
                return False
            entry.stored = True
            self._inserts[entry.id] = StoredRequest(
                id=entry.id,
                domain=entry.domain,
                priority=entry.priority,
                rank=entry.rank,
                payload=payload,
                state=state,
                due_at=due_at,
                parent=entry.parent if parent is None else parent,
                crashes=entry.crashes,
                fingerprint=entry.fingerprint,
            )
            return True
        row = self._inserts.get(entry.id)
        if row is not None:
            row.state, row.due_at = state, due_at
        elif state is State.DELAYED and due_at is not None:
            self._batch.delayed.append((due_at, entry.id))
        else:
            self._batch.moved.append((state, entry.id))
        return True

    def drop(self, entry: Entry, *, releases: bool = False) -> None:
        """*entry* has ended: its row goes. *releases*: it has held children on disk, which become pending."""
        fresh = self._inserts.pop(entry.id, None)
        if releases or (entry.stored and fresh is None):
            self._batch.done.append(entry.id)

    def stage(self, item: StagedItem) -> int:
        """Keep *item* until its request is acknowledged; what belongs to no request goes with the next commit.

        Returns:
            How many items its request has staged by now.
        """
        lease = None if item.request_id is None else self.leases.get(item.request_id)
        if lease is None:
            self._batch.items.append(item)
            return 0
        lease.items.append(item)
        self.staged += 1
        return len(lease.items)

    def bury(self, letter: DeadLetter) -> None:
        """Have *letter* committed with the next batch."""
        self._batch.dead.append(letter)
        self.buried += 1

    def record(self, name: str, value: str) -> None:
        """Have a small fact of the job committed with the next batch."""
        self._batch.facts[name] = value

    # -- leases --------------------------------------------------------------------------------------------------------

    def lease(self, entry: Entry, request: Request, domain: Domain, now: float) -> Lease:
        """*request* is handed out."""
        lease = Lease(entry=entry, request=request, domain=domain, now=now)
        self.leases[entry.id] = lease
        self.by_request[request] = lease
        self._flying[request] = lease
        if self.durable:
            self.put(entry, State.LEASED)
        return lease

    def is_fresh(self, entry: Entry) -> bool:
        """Is the row of *entry* still in the batch that is being gathered?"""
        return entry.id in self._inserts

    def commit_lease(self, entry: Entry) -> None:
        """Have the lease of *entry* committed now, alone; the batch that is being gathered says it again.

        A store that cannot is left to the next flush.
        """
        if entry.stored:
            with contextlib.suppress(StoreError):
                self.store.commit(Batch(moved=[(State.LEASED, entry.id)]))

    @property
    def in_flight(self) -> int:
        """Requests in the downloader's hands, as of the last `land`."""
        return len(self._flying)

    def land(self, active: set[Request]) -> list[Lease]:
        """Which leases have left the downloader, whose requests in hand are *active*?"""
        gone = [self._flying.pop(request) for request in self._flying.keys() - active]
        for lease in gone:
            lease.flying = False
            self._landed[lease.id] = lease
        return gone

    def take_ended(self, is_scraping: Callable[[Request], bool]) -> list[Lease]:
        """Leases that neither downloader nor scraper has any more. Each is told once."""
        ended = [lease for lease in self._landed.values() if not is_scraping(lease.request)]
        for lease in ended:
            del self._landed[lease.id]
            self.leases.pop(lease.id, None)
            self.by_request.pop(lease.request, None)
        return ended

    def settle(self, lease: Lease, letters: Iterable[DeadLetter]) -> None:
        """Put the end of *lease* into the batch: its row, items and dead letters."""
        self.drop(lease.entry, releases=bool(lease.held_on_disk))
        self._batch.items.extend(lease.items)
        self.staged -= len(lease.items)
        for letter in (*letters, *lease.letters):
            self.bury(letter)

    def reopen(self, lease: Lease) -> None:
        """*lease* came to nothing: its request is pending again at the next start."""
        self._reopened += 1
        self.staged -= len(lease.items)
        lease.children.clear()  # it will yield them again
        lease.held_on_disk.clear()
        if lease.entry.stored:
            self.put(lease.entry, State.PENDING)

    def give_back(self) -> int:
        """What is still out when the crawl stops is pending again. Returns how many requests."""
        left = [*self._flying.values(), *self._landed.values()]
        for lease in left:
            if lease.entry.stored:
                self.put(lease.entry, State.PENDING)
        self._flying.clear()
        self._landed.clear()
        self.leases.clear()
        self.by_request.clear()
        return len(left) + self._reopened

    @property
    def new_results(self) -> int:
        """Results that the next commit makes visible to the sinks."""
        return len(self._batch.items)

    @property
    def waits(self) -> bool:
        """Is there anything to commit, or a lease whose end must be looked for?"""
        return bool(self._landed or self._inserts or self._batch)

    @property
    def uncommitted_items(self) -> int:
        """Results of ended requests that no commit has taken."""
        return len(self._batch.items)

    def commit(self) -> int:
        """Commit what was gathered. After an error all of it is still gathered, for the next try.

        Returns:
            How many results became visible to the sinks.

        Raises:
            StoreError: as the store says.
        """
        batch = self._batch
        batch.inserts = list(self._inserts.values())
        if not batch:
            return 0
        self.store.commit(batch)
        self._batch = Batch()
        self._inserts = {}
        self._seen.clear()
        return len(batch.items)


def entry_of(row: StoredRequest) -> Entry:
    """*row* as what the frontier holds: its payload is decoded only when it is handed out."""
    return Entry(
        id=row.id,
        domain=row.domain,
        priority=row.priority,
        rank=row.rank,
        request=row.payload,
        stored=True,
        crashes=row.crashes,
    )
