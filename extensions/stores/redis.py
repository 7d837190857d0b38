"""A job in Redis, shared by many workers: `JobStore` whose calls touch nothing but this process's own buffers.

The rule it keeps: the event loop never waits for Redis. What a commit says goes into a bounded buffer; `exchange`, run by
one task, carries it out and brings in what the worker may do next. A row is this worker's while its lease lasts, by Redis's
own clock; what is said of a row that is no longer this worker's is refused there.

Results and dead letters wait in a local SQLite file on their way to the sinks. A request's end goes to Redis only after
they have arrived, so that the file may be lost at any time: the request is then fetched again, by whoever is left.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .base import Batch, Counts, Recovered, State, StoreBusy, StoredRequest, StoreError
from .redisbuffer import Outgoing, is_child
from .redisdelivery import Delivery
from .redisexchange import Exchange
from .redishand import Hand
from .redisowner import OwnersSide
from .redisscripts import RedisAway, wipe
from .redisshelf import MOST_ROWS, SHARED_ROWS
from .redisvalues import Terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redis.asyncio import Redis

    from .base import DeadLetter, StagedItem
    from .sqlite import SqliteJobStore

MAX_BUFFER: Final = 20_000
"""Rows and ends that may wait for Redis; then nothing more is fetched."""


class RedisJobStore(OwnersSide):
    """`JobStore` over Redis. All calls are made on one event loop, but `checkpoint` and `close`."""

    def __init__(
        self,
        *,
        client: Redis,
        local: SqliteJobStore,
        requests_key: str,
        dupefilter_key: str,
        terms: Terms | None = None,
        window: int = 1000,
        first_domains: int = 16,
    ) -> None:
        """Keep the settings; `connect` does the work.

        Args:
            client: From redis-py; closed by `leave`.
            local: Where results and dead letters wait; opened and closed here.
            requests_key: scrapy-redis's key for what is pending, with the spider's name in it.
            dupefilter_key: Its key for what was seen.
            terms: What holds between the workers.
            window: Rows that may be fetched ahead.
            first_domains: How many to claim at the start.
        """
        self._client = client
        self._local = local
        self._requests_key, self._dupefilter_key = requests_key, dupefilter_key
        terms = terms or Terms()
        most = MOST_ROWS if terms.workers_per_domain == 1 else SHARED_ROWS
        out, hand = Outgoing(), Hand(room=window, most=most)
        exchange = Exchange(
            client=client,
            requests_key=requests_key,
            dupefilter_key=dupefilter_key,
            terms=terms,
            out=out,
            hand=hand,
            first_domains=first_domains,
        )
        super().__init__(out=out, hand=hand, exchange=exchange)
        self._delivery = Delivery(
            local=local,
            delivered=lambda item, letters: self._out.delivered(item=item, letters=letters),
        )
        self._open = False
        self._existed = False
        self._lost: set[int] = set()  # rows that became others' while this worker was at them

    # --- the way in and out -----------------------------------------------------------------------

    async def connect(self) -> None:
        """Enter the job as a new worker, and fetch the first rows.

        Raises:
            RedisAway, RedisRefused: as Redis says.
            StoreBroken: what is under the keys is not this program's, or part of it is missing.
        """
        if not self.number:
            await self._enter()
            self._existed = self.totals.rows > 0
        if not self._open:
            self._local.open()
            self._open = True
        with contextlib.suppress(RedisAway):  # it is tried again with all later ones
            await self.exchange()

    async def _enter(self) -> None:
        await self._exchange.enter()
        self._delivery.job = self.job
        self._delivery.maker = f"{self.job}:{self.number}"

    async def flush(self) -> bool:
        """Forget the job and whatever else is under its keys. False: not while others are at work.

        Raises:
            RedisAway, RedisRefused: as Redis says.
        """
        return await wipe(
            self._client, requests_key=self._requests_key, dupefilter_key=self._dupefilter_key
        )

    async def enter_again(self) -> int:
        """Go on as a new worker after `Fenced`. Returns how many ends were lost with the old one."""
        ends, orphans = self._out.drop_ends()
        self._lost.update(self._hand.rows)
        self._hand.clear()
        if orphans:
            self.events.passed_on(orphans)
        await self._enter()
        return ends

    def open(self) -> Recovered:
        """What the first exchange has brought. Call `connect` before."""
        self._connected()
        exchange, hand = self._exchange, self._hand
        crashed, exchange.crashed = exchange.crashed, []
        return Recovered(
            backlogs=[hand.backlog(domain) for domain in sorted(hand.shelf.domains())],
            delayed=self.totals.delayed,
            next_due_at=self.totals.next_due_at,
            last_id=self.number << 32,
            crashed=crashed,
            resumed=self._existed,
        )

    async def exchange(self) -> None:
        """Carry out what was committed, renew the lease, bring in work: one round trip.

        Raises:
            RedisAway: try again; nothing is lost, nothing is done twice.
            RedisRefused, JobLost: no retry will mend it.
            Fenced: call `enter_again`.
        """
        await self._exchange.run()

    async def leave(self, *, wipe: bool = False, crashed: bool = False) -> tuple[int, int]:
        """Give everything back and go. Returns requests and workers that are left.

        Args:
            crashed: What was in flight counts a crash.
            wipe: Where this is the last worker and nothing is left, forget the job.
        """
        return await self._exchange.leave(wipe=wipe, crashed=crashed)

    def close(self) -> None:
        """Close the local file. Called in a thread, after `leave`."""
        self._open = False
        self._local.close()

    def _connected(self) -> None:
        if not self._open:
            raise StoreError("The job in Redis is not open")

    # --- the store's promises ---------------------------------------------------------------------

    def seen(self, fingerprint: bytes) -> bool:
        """Is it known here to be seen? If not, the commit of its request will tell (`Events.duplicate`)."""
        self._connected()
        return fingerprint in self._hand.known

    def commit(self, batch: Batch) -> None:
        """Take over *batch*. It is Redis's at the end of a later exchange.

        Raises:
            StoreBusy: Redis has not answered for so long, or so much waits for it, that this worker must rest.
        """
        self._connected()
        self._rest_if_needed()
        for row in batch.inserts:
            if row.id in self._hand or self._out.unsent(row.id):
                raise StoreError(f"There is a request {row.id} already")
        if self._lost:
            batch = self._without_orphans(batch)
        item, letter = self._delivery.take(batch)
        self._hand.follow(batch)
        self._out.take(batch, item=item, letter=letter)

    def _without_orphans(self, batch: Batch) -> Batch:
        """*batch* without the children of rows that are others' now: those yield them again."""
        orphans = [row.id for row in batch.inserts if is_child(row) and row.parent in self._lost]
        if not orphans:
            return batch
        gone = set(orphans)
        self.events.passed_on(orphans)
        return replace(batch, inserts=[row for row in batch.inserts if row.id not in gone])

    def _rest_if_needed(self) -> None:
        if self.silent_s > self.lease_s:
            raise RedisAway(f"Redis has not answered for {self.silent_s:.0f} s.")
        if len(self._out) > MAX_BUFFER:
            raise StoreBusy(f"{len(self._out)} changes wait for Redis.")

    def refill(self, domain: str, limit: int) -> list[StoredRequest]:
        """The *limit* first rows of *domain* that were fetched ahead."""
        return self._hand.give(domain, limit)

    def refill_due(self, now_at: float, limit: int) -> tuple[list[StoredRequest], float | None]:
        """Nothing: what is due joins its domain's line in Redis, and comes by `refill`."""
        del now_at, limit
        return [], self.totals.next_due_at

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""
        return self._delivery.outbox(after, limit)

    def forget_items(self, up_to: int) -> None:
        """Every sink has these: the ends of their requests may go."""
        self._delivery.forget_items(up_to)

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed dead letters that are not yet in the dead-letter store, in order."""
        return self._delivery.dead_outbox(limit)

    def forget_dead(self, ids: Iterable[int]) -> None:
        """The dead-letter store has these: the ends of their requests may go."""
        self._delivery.forget_dead(ids)

    def fact(self, name: str) -> str | None:
        """A small named value of this worker's; the job's own name is Redis's."""
        if name == "job" and self.job:
            return f'"{self.job}"'
        return self._local.fact(name)

    def counts(self) -> Counts:
        """The whole job as of the last exchange; what is in hand, and what is to be delivered, is this worker's."""
        local, totals = self._local.counts(), self.totals
        leased, window = self._hand.count(State.LEASED), self._hand.count(State.WINDOW)
        return Counts(
            pending=max(0, totals.rows - totals.delayed - totals.held - window - leased),
            window=window,
            leased=leased,
            delayed=totals.delayed,
            held=totals.held,
            seen=totals.seen,
            outbox=local.outbox,
            dead=local.dead,
        )

    def checkpoint_due(self) -> bool:
        """Of the local file."""
        return self._local.checkpoint_due()

    def checkpoint(self) -> None:
        """Of the local file."""
        self._local.checkpoint()

    def delivers(self, *, items: bool, letters: bool) -> None:
        """Are there sinks, and a place for dead letters, for which a request's end must wait?"""
        self._delivery.items, self._delivery.letters = items, letters
