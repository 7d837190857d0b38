"""One crawl on many workers: this worker's part of a frontier that is in Redis.

The rule it keeps: a request is in this worker's window only while its domain is this worker's; so the governor needs to know
of no other. What comes in goes to Redis first, since only there is it known whether somebody had it; it comes back at once,
without being read again, when it is this worker's to fetch.

Nothing here waits on the event loop's time: one task exchanges batches with Redis, and its failures are waited out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from . import names
from .arrivals import Arrivals
from .away import RETRY_BASE_S, RETRY_CAP_S, Away
from .fairshare import FairShare
from .hearing import Hearing
from .policy.wording import plural
from .stores.base import State, StoreBroken, StoreError, StoreTooNew
from .stores.redisanswers import Fenced, JobLost
from .stores.redisscripts import RedisRefused
from .watches import Watches

if TYPE_CHECKING:
    from .control import Control
    from .domains import Domain
    from .policy.frontier import Entry
    from .stores.redis import RedisJobStore

logger = logging.getLogger(__name__)

IDLE_S = 1.0
"""How often an idle worker asks: one command a second, and new work is seen within one."""
BUSY_S = 0.02
"""Least time between two exchanges of a worker that could use more domains than it has."""
CLOSE_S = 10.0
SEEDS_UP_TO = 0.7
"""Of Redis's memory: with more used no seeds come in. The rest is for links, which cannot wait, and for what was seen."""
FULL_FROM = 0.99
"""Of it: with more used no seed can come in until somebody makes room, though nothing was refused yet."""
ALL_FULL = 1 << 62
SOON_BELOW = 64
"""With fewer requests in the window than this, a new one does not wait for the usual flush."""


class Distributed:
    """This worker's part. One for each crawl with a shared frontier.

    Args:
        control: The crawl's control room.
        store: Connected.
        persist: Keep the job in Redis after its end.
    """

    def __init__(self, *, control: Control, store: RedisJobStore, persist: bool) -> None:
        self.store = store
        self._control = control
        self._persist = persist
        self._arrivals = Arrivals()
        if store.rows_each is not None:
            control.frontier.most_each = store.rows_each
        self.watches = Watches(store)
        Hearing(control=control, store=store, arrivals=self._arrivals)
        self._share = FairShare(control=control, store=store, arrivals=self._arrivals)
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._away = Away(lambda: control.stats.inc_value(names.STAT_REDIS_AWAY))
        self._failed = False

    def carries(self, *, items: bool, letters: bool) -> None:
        """Are there sinks, and a dead-letter file, for which a request's end must wait?"""
        self.store.delivers(items=items, letters=letters)

    def start(self) -> None:
        """Begin to exchange."""
        self._task = asyncio.get_running_loop().create_task(self._work(), name="redis")

    @property
    def away_since_at(self) -> float | None:
        """Since when (wall clock) Redis is away, or full; None while it is well."""
        return self._away.since_at

    # -- what the scheduler asks -----------------------------------------------------------------

    @property
    def arriving(self) -> int:
        """Requests that are on their way to Redis, and not yet known to be new."""
        return len(self._arrivals)

    @property
    def everywhere(self) -> int:
        """Requests that are known and not acknowledged, all workers together."""
        return self.store.totals.rows + len(self._arrivals)

    def pending_for_gate(self, *, automatic: bool) -> int:
        """What counts against this worker's start gate: all that is known, or its share of it where it sizes the gate."""
        if self.store.memory.share > SEEDS_UP_TO:
            return ALL_FULL
        share = max(1, self.store.totals.workers) if automatic else 1
        return self.everywhere // share

    @property
    def unfinished(self) -> bool:
        """May there be more to do, here or for others, of which this worker may yet get some?"""
        if self._failed:
            return False
        store = self.store
        return bool(store.totals.rows or store.waiting or self._control.ledger.waits)

    def takes(self, entry: Entry, delay_s: float) -> bool:
        """Take *entry* on its way to Redis. False: it is this worker's already, or cannot be stored."""
        ledger = self._control.ledger
        if not entry.storable:
            return False
        if delay_s > 0:
            due_at = self._control.now_at() + delay_s
            if not ledger.put(entry, State.DELAYED, due_at=due_at):
                return False
            self._control.stats.inc_value(names.STAT_DELAYED)
            self._control.book.taken(entry.domain, -1)
            return True
        if self.store.in_hand(entry.id):
            return False
        stays = self._has_room(entry)
        if not ledger.put(entry, State.WINDOW if stays else State.PENDING):
            return False
        self._arrivals.add(entry, stays=stays)
        if self._control.frontier.in_memory < SOON_BELOW:
            self._control.flush_soon()
        return True

    def given_back(self, entry: Entry) -> None:
        """*entry* did not fit into the window: others may have it."""
        self._control.book.taken(entry.domain, -1)

    def answered(self, domain: Domain) -> None:
        """*domain* answered, or did not."""
        self._share.answered(domain)

    def committed(self) -> None:
        """The ledger has handed over a batch."""
        self._news.set()

    def _has_room(self, entry: Entry) -> bool:
        frontier, record = self._control.frontier, self._control.domains.find(entry.domain)
        if record is not None and record.leaving:
            return False
        queue = frontier.get(entry.domain)
        here = 0 if queue is None else len(queue)
        return here + self._arrivals.of(entry.domain) < frontier.share()

    # -- the task --------------------------------------------------------------------------------

    async def _work(self) -> None:
        while not self._failed:
            wait_s = await self._beat()
            if wait_s <= 0:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: in Python 3.11 it swallows a cancellation that meets the news.
                async with asyncio.timeout(wait_s):
                    await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        if self._away.failures:
            await asyncio.sleep(RETRY_CAP_S)
        await self._news.wait()

    async def _beat(self) -> float:
        """One exchange. Returns how long to wait for the next, if nothing happens."""
        self._news.clear()
        self._share.wish()
        before = self.store.totals.rows
        try:
            await self.store.exchange()
        except Fenced as error:
            await self._start_again(error)
            return 0.0
        except (RedisRefused, JobLost) as error:
            self._give_up(error)
            return 0.0
        except StoreError as error:
            return self._away.wait_s(error)
        except Exception:
            logger.exception("The exchange with Redis failed; the crawl is closed")
            self._give_up(StoreBroken("the exchange with Redis failed"))
            return 0.0
        self._back()
        if before and not self.store.totals.rows:
            self._control.wake_soon()
        if self.store.has_news:
            return 0.0
        if self.store.wishes.domains and self.store.totals.unclaimed:
            return BUSY_S
        return self._until_due(IDLE_S)

    def _until_due(self, most_s: float) -> float:
        due_at = self.store.totals.next_due_at
        return most_s if due_at is None else min(most_s, max(BUSY_S, due_at - time.time()))

    # -- trouble ---------------------------------------------------------------------------------

    def _back(self) -> None:
        control, store = self._control, self.store
        control.stats.set_value(names.STAT_LATE_ENDS, store.late_ends)
        control.stats.set_value(names.STAT_WORKERS, store.totals.workers)
        if store.totals.reclaimed:
            told = (
                f"{plural(store.totals.reclaimed, 'request')} came back from a worker that is gone"
            )
            logger.info("%s", told)
            control.book.changed(time.time(), None, told)
        if self._is_full:
            self._away.failures = 0
            self._away.wait_s(StoreError("Redis is full (maxmemory): new requests wait here."))
        else:
            self._away.over()

    @property
    def _is_full(self) -> bool:
        """Does Redis take nothing new? Where a worker has nothing left to write, only its memory tells."""
        memory = self.store.memory
        return self.store.full or (memory.share >= FULL_FROM and not memory.evicts)

    async def _start_again(self, error: StoreError) -> None:
        """Others have what was this worker's. What is in flight goes on; its end will not count."""
        control = self._control
        logger.warning("%s It goes on as a new worker; what it held is fetched by others", error)
        control.stats.inc_value(names.STAT_FENCED)
        for name in [name for name, _ in control.frontier.domains()]:
            held = len(control.frontier.withdraw(name)) + self.store.fetched_of(name)
            control.book.taken(name, -held)
            control.turns.forget(name)
            control.stand_in_line(name)
        self._share.forget()
        try:
            self.store.lost_ends(await self.store.enter_again())
        except (RedisRefused, StoreTooNew, JobLost) as broken:
            self._give_up(broken)
        except StoreError as away:
            self._away.wait_s(away)

    def _give_up(self, error: StoreError) -> None:
        self._failed = True
        self._control.store_waits = True
        reason = names.REASON_JOB_LOST if isinstance(error, JobLost) else names.REASON_REDIS
        self._control.close_spider(reason, str(error))

    # -- the end ---------------------------------------------------------------------------------

    async def close(self, reason: str) -> None:
        """Hand over what is left, within a bound, and go."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        control, store = self._control, self.store
        store.wishes.domains = 0
        try:
            async with asyncio.timeout(CLOSE_S):
                while not self._failed:
                    if not await self._hand_over():
                        break
                    await asyncio.sleep(RETRY_BASE_S if self._away.failures else 0)
                wipe = reason == "finished" and not self._persist
                rows, workers = await store.leave(wipe=wipe)
        except (StoreError, TimeoutError) as error:
            logger.warning(
                "Left Redis without a word (%s): what was in hand comes back when the lease ends",
                str(error) or f"no answer in {CLOSE_S:g} s",
            )
        else:
            control.stats.set_value(names.STAT_PENDING_LEFT, rows)
            logger.info("Left the job in Redis: %d requests and %d workers stay", rows, workers)

    async def _hand_over(self) -> bool:
        """One exchange of the last ones. Returns whether another is needed."""
        try:
            await self.store.exchange()
        except (RedisRefused, JobLost, Fenced):
            raise
        except StoreError:
            self._away.failures += 1
            return True
        self._away.failures = 0
        return self.store.waiting > 0 and self.store.sends
