"""The heartbeat of the books: finds what ended, commits, and brings in what waits on disk.

The rule it keeps: it runs in a loop callback of its own, so that it never sees a request between two places; and only here
is anything committed. Ends, children and items of one request therefore share one commit.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later, run_in_thread, sleep
from scrapy.utils.defer import deferred_from_coro

from . import compat, names
from .closing import Closing
from .ledger import entry_of
from .settling import Settler
from .stores.base import StoreBusy, StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from .control import Control
    from .ledger import Ledger

logger = logging.getLogger(__name__)

SOON_S = 0.002
"""A replacement or an empty window waits this long: a few more ends still share the commit."""
FULL_RETRY_S = 1.0
"""How often a commit is tried again while the disk is full."""
REFILL_BUDGET = 512
"""Rows brought in by one flush, all domains together: at 25 microseconds each it holds the loop for about 13 ms."""
LEARNED_S = 60.0
"""How often what the governors found is kept with the job: a crash costs the last minute's finding."""
CLOSE_STORE_S = 15.0
"""How long the end of a crawl waits for a job store that is busy; a checkpoint took 1.2 s on a machine under load."""
LOOK_AGAIN_S = 0.1
"""How often it looks whether the store is free."""
DEAD_PROXIES_S = 1.0
"""How long a crawl that is asked to stop waits for requests on proxies of which none is known to be healthy."""
SWEEP_S = 5.0
"""How often drained domains are looked for."""


class Flusher:
    """Runs the flush. One for each crawl.

    Args:
        control: The crawl's control room.
        ledger: The job's books.
        fail: Closes the spider with a reason.
    """

    def __init__(self, *, control: Control, ledger: Ledger, fail: Callable[[str], None]) -> None:
        self._control = control
        self._ledger = ledger
        self._fail = fail
        self._settler = Settler(control=control, ledger=ledger)
        self._interval_s = control.config.flush_interval_s
        self._timer: CallLaterResult | None = None
        self._due = math.inf
        self._uncommitted = 0  # ends in the batch that is being gathered
        self._sweep_due = 0.0
        self._learned_due = control.now() + LEARNED_S
        self._pages_before = 0
        self._learned_at: float | None = None
        self._closed = False
        self._cut_due = math.inf  # when a closing crawl stops waiting
        self._checkpointing = False

    def open(self) -> None:
        """Begin."""
        self._arm(0.0)

    @property
    def is_busy(self) -> bool:
        """Is something leased, or ended and not committed?"""
        return bool(self._ledger.leases or self._uncommitted)

    def note_change(self) -> None:
        """Something happened that will need a flush, at the usual pace."""
        if self._timer is None and not self._rests and self._ledger.waits:
            self._arm(self._interval_s)

    def soon(self) -> None:
        """Somebody waits for the flush."""
        if not self._rests and self._due - self._control.now() > SOON_S:
            self._arm(SOON_S)

    @property
    def _rests(self) -> bool:
        """Must no flush begin now? The log of the store starts over only if none comes in between."""
        return self._closed or self._checkpointing

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = self._control.now() + delay_s
        self._timer = call_later(delay_s, self._run)

    def _run(self) -> None:
        self._timer = None
        self._due = math.inf
        if self._rests:
            return
        try:
            wake = self.flush()
        except (StoreFull, StoreBusy) as error:
            self._store_waits(error)
            return
        except StoreError:
            logger.exception("The job store failed; the crawl is closed")
            self._fail(names.REASON_STORE)
            return
        except Exception:
            logger.exception("The flush failed; the crawl is closed, what is committed is kept")
            self._fail(names.REASON_SCHEDULER)
            return
        if compat.is_closing(self._control.engine):
            self._watch_closing()
        if self._ledger.store.checkpoint_due():
            deferred_from_coro(self._checkpoint())
        elif self._control.frontier.is_short:
            self._arm(0.0)
        elif self._ledger.waits or self._ledger.leases:
            self._arm(self._interval_s)
        if wake:
            self._control.wake_soon()

    def _watch_closing(self) -> None:
        """The spider is closing: what is in flight may end, within a bound."""
        control = self._control
        now = control.now()
        if self._cut_due == math.inf:
            control.stopping = True
            self._cut_due = now + control.config.stop_timeout_s
            logger.info(
                "Stopping: %d in flight, at most %g s more; %d pending",
                self._ledger.in_flight,
                control.config.stop_timeout_s,
                control.pending,
            )
        elif now >= self._cut_due or self._only_dead_proxies(now):
            self._cut_due = (
                now + 1.0
            )  # the scraper closes after the downloader: it may need a cut of its own
            logger.warning(
                "Stopped waiting for %d requests that are still running", len(self._ledger.leases)
            )
            control.waits_no_longer = True
            compat.stop_waiting(control.engine)

    def _only_dead_proxies(self, now: float) -> bool:
        """Is all that the closing crawl waits for on proxies that answered nobody?"""
        proxies = self._control.proxies
        waited_s = now - (self._cut_due - self._control.config.stop_timeout_s)
        return proxies is not None and waited_s >= DEAD_PROXIES_S and proxies.hopeless(now)

    # -- one flush -----------------------------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Settle, commit, release, refill. Returns whether the engine should look again.

        Raises:
            StoreError: from the store; nothing is lost, the next flush tries the same again.
        """
        control = self._control
        ledger = self._ledger
        now = control.now()
        control.land(now)
        ended = ledger.take_ended(lambda request: compat.is_scraping(control.engine, request))
        for lease in ended:
            self._settler.settle(lease)
        self._uncommitted += len(ended)
        control.keep_book()
        items = ledger.commit()
        control.entries_committed()
        if control.shared is not None:
            control.shared.committed()
        control.book.results += items
        settled, self._uncommitted = self._uncommitted, 0
        if control.writer is not None:
            control.writer.committed(items, settled)
        if control.post is not None and ledger.buried:
            ledger.buried = 0
            control.post.committed()
        if control.store_waits:
            control.store_waits = False
            logger.info("The job store works again; the crawl goes on")
        refilled = self._refill(now)
        self._housekeeping(now)
        return bool(settled) or refilled

    def _refill(self, now: float) -> bool:
        control = self._control
        store = self._ledger.store
        budget = REFILL_BUDGET
        for domain, wanted in control.frontier.wanting():
            if budget <= 0:
                control.frontier.want(domain)
                continue
            rows = store.refill(domain, min(wanted, budget))
            budget -= len(rows)
            control.frontier.refill(domain, [entry_of(row) for row in rows])
            queue = control.frontier.get(domain)
            if queue is not None and queue.top_priority is not None:
                control.turns.work_came(domain, queue.top_priority)
        if control.delays.wants_disk(now):
            now_at = control.now_at()
            rows, next_at = store.refill_due(now_at, REFILL_BUDGET)
            # The store also has those that wait in memory; such a one will be taken when the crawl wakes.
            rows = [row for row in rows if not control.delays.holds(row.id)]
            next_due = math.inf if next_at is None else now + max(0.0, next_at - now_at)
            control.delays.took_from_disk(len(rows), next_due)
            for row in rows:
                control.book.came_due(row.domain)
                control.admit(entry_of(row), 0.0)
            budget -= len(rows)
        return budget < REFILL_BUDGET

    def _housekeeping(self, now: float) -> None:
        control = self._control
        control.stats.max_value(names.STAT_PENDING_MAX, control.pending)
        if now >= self._sweep_due:
            self._sweep_due = now + SWEEP_S
            if now >= self._learned_due:
                self._learned_due = now + LEARNED_S
                control.keep_learned()
            for name in control.domains.sweep(now, control.is_busy):
                control.turns.forget(name)
                compat.forget_slot(control.engine.downloader, name)
                if control.proxies is not None:
                    control.proxies.forget(name)
            self._learn(now)

    def _learn(self, now: float) -> None:
        """Size the start gate by the pages of the last few seconds."""
        control = self._control
        pages = control.stats.get_value(names.STAT_PARSED, 0)
        if self._learned_at is not None and now > self._learned_at:
            control.gate.learn((pages - self._pages_before) / (now - self._learned_at))
        self._learned_at, self._pages_before = now, pages

    async def _checkpoint(self) -> None:
        """Keep the store's log short, in a thread; flushes wait for it, the crawl does not."""
        self._checkpointing = True
        try:
            await run_in_thread(self._ledger.store.checkpoint)
        except StoreError as error:
            logger.warning("A checkpoint of the job store failed; it is tried again: %s", error)
        finally:
            self._checkpointing = False
            if not self._closed:
                self._arm(0.0)

    def _store_waits(self, error: StoreError) -> None:
        if not self._control.store_waits:
            self._control.store_waits = True
            logger.warning("%s Nothing is fetched until that is over", error)
        self._arm(FULL_RETRY_S)

    def last_commit(self) -> None:
        """The process ends now: what has ended is committed, what has not is pending again."""
        self._closed = True
        try:
            self.flush()
            self._ledger.give_back()
            self._ledger.commit()
        except StoreError as error:
            logger.error("The last commit failed: %s", error)  # noqa: TRY400 - the message says it

    async def close(self) -> None:
        """Nothing runs any more but what `Closing` does."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await Closing(control=self._control, ledger=self._ledger).close(self._flush_when_free)

    async def _flush_when_free(self) -> None:
        """Flush; a checkpoint that is still running, or another program at the file, is waited for within a bound."""
        give_up_due = self._control.now() + CLOSE_STORE_S
        while True:
            late = self._control.now() >= give_up_due
            if not self._checkpointing or late:
                try:
                    self.flush()
                except StoreBusy:
                    if late:
                        raise
                else:
                    return
            await sleep(LOOK_AGAIN_S)
