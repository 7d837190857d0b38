"""The scheduler: caps what is pending, hands out what may go, and never hangs or forgets.

The rule it keeps: an exception in here is a dead letter or a named close of the spider. Scrapy's engine would otherwise stop
asking, or end with "finished" and exit code 0.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.utils.asyncio import call_later, run_in_thread
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from . import compat, names
from .codec import RequestCodec, Unreadable, own_packages
from .compat import add_shutdown_trigger, remove_shutdown_trigger
from .containment import contain
from .control import SENTINEL, Control
from .dispatch import Dispatch
from .flush import Flusher
from .intake import Intake
from .ledger import Ledger
from .lineage import current_lease, enter_lease
from .opening import open_frontier, open_post, open_writer
from .order import Order
from .policy.frontier import Entry
from .proxies import Proxies
from .proxylist import BadProxyList
from .stores.base import StagedItem, StoreError
from .stores.deadletters import DeadLetterError
from .stores.sinks import SinkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from .domains import Domain
    from .stores.base import Recovered
    from .stores.deadletter_rows import Row

logger = logging.getLogger(__name__)

LAST_WORDS_S = 20.0
"""How long a reactor that is told to stop waits for a crawl that is closing."""

TRANSIENT_META = ("download_latency", names.SLOT)
"""Meta keys that mean nothing after a restart."""


class Scheduler(BaseScheduler):
    """Scrapy's scheduler interface over the control room.

    Args:
        control: The crawl's control room.
        order: Of requests of equal priority.
        folder: JOBDIR; None for a job that need not outlive the process.
        auth_encoding: Of the proxies' credentials in a header.
    """

    def __init__(
        self, *, control: Control, order: Order, folder: str | None, auth_encoding: str = "latin-1"
    ) -> None:
        self._control = control
        self._auth_encoding = auth_encoding
        self._order = order
        self._folder = folder
        self._dispatch = Dispatch(control)
        self._intake: Intake | None = None
        self._flusher: Flusher | None = None
        self._timer: CallLaterResult | None = None
        self._timer_due = math.inf
        self._failed = False
        self._on_shutdown: Any = None
        self._on_closed: asyncio.Future[None] | None = None
        self._refusal: Exception | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read Scrapy's own settings for the order of links and the job's folder."""
        control = crawler.get_extension(Control)
        if control is None:
            raise NotConfigured("SCHEDULER is Sluice's, but its extension is not enabled")
        scheduler = cls(
            control=control,
            order=Order.from_settings(crawler.settings),
            folder=job_dir(crawler.settings),
            auth_encoding=crawler.settings["HTTPPROXY_AUTH_ENCODING"] or "latin-1",
        )
        crawler.signals.connect(scheduler.refuse, signals.spider_opened)
        return scheduler

    # -- Scrapy's interface --------------------------------------------------------------------------------------------

    def open(self, spider: Spider) -> Deferred[None]:
        """Open the job and take over what a run before left."""
        return deferred_from_coro(self._open(spider))

    def close(self, reason: str) -> Deferred[None]:
        """Commit, carry what is ready, and leave the rest for the next start."""
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """Is there anything that a further call of `next_request` could bring?"""
        control = self._control
        if self._failed or self._flusher is None:
            return False
        waits = control.pending or self._flusher.is_busy
        if control.shared is not None:
            waits = waits or control.shared.unfinished
        return bool(waits or (control.post is not None and control.post.has_more))

    def enqueue_request(self, request: Request) -> bool:
        """Take in *request*; False: a duplicate."""
        if request is SENTINEL:
            return True
        if self._intake is None or self._flusher is None:
            # Closed: the request that yielded this one is pending still, and will yield it again.
            return False
        try:
            return self._intake.take(request)
        except Exception:
            logger.exception("Could not take in %s: it becomes a dead letter", request)
            self._bury_untaken(request)
            return True
        finally:
            self._flusher.note_change()

    def next_request(self) -> Request | None:
        """The next request that may go now; None: none may, and a timer or an event will tell when."""
        enter_lease(None)
        if self._failed or self._flusher is None:
            return None
        now = self._control.now()
        try:
            lease = self._dispatch.next(now)
        except Exception:
            logger.exception("The scheduler failed; the crawl is closed, what is pending is kept")
            self._fail(names.REASON_SCHEDULER)
            return None
        self._flusher.note_change()
        if lease is None:
            self._set_timer(self._dispatch.next_due())
            return None
        enter_lease(lease.id)
        return lease.request

    def stage_item(self, payload: str) -> None:
        """Keep a finished item, strict JSON text, until the request that it came from is acknowledged."""
        control = self._control
        id_ = current_lease()
        lease = None if id_ is None else control.ledger.leases.get(id_)
        origin = None if lease is None else lease.request.meta.get(names.ORIGIN)
        count = control.ledger.stage(StagedItem(payload=payload, request_id=id_, origin=origin))
        if control.writer is not None:
            control.writer.note_page(count)
        if self._flusher is not None:
            self._flusher.note_change()

    # -- sight ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._control.pending

    @property
    def control(self) -> Control:
        """The crawl's control room."""
        return self._control

    @property
    def dispatch(self) -> Dispatch:
        """Tells why nothing was handed out."""
        return self._dispatch

    def governor(self, domain: str) -> object | None:
        """The governor of *domain*, for those who want to show what it found."""
        record: Domain | None = self._control.domains.find(domain)
        return None if record is None else record.governor

    # -- opening and closing -------------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """End the crawl before its first request if its job could not be opened.

        Raised here and not in `open`, so that every component is opened, and closed again.

        Raises:
            CloseSpider: with the reason; the message was logged.
        """
        if self._refusal is not None:
            logger.error("%s", self._refusal)
            raise CloseSpider(_reason(self._refusal))

    async def _open(self, spider: Spider) -> None:
        try:
            await self._open_job(spider)
        except (StoreError, SinkError, DeadLetterError, BadProxyList) as error:
            self._refusal = error
            self._flusher = None
            await self._control.close_job()

    async def _open_job(self, spider: Spider) -> None:
        control = self._control
        opened = await open_frontier(control, self._folder)
        ledger = Ledger(
            store=opened.store,
            durable=opened.durable,
            codec=RequestCodec(
                spider=spider,
                packages=own_packages(control.crawler.settings),
                transient_meta=TRANSIENT_META,
            ),
            on_unstorable=control.graves.unstorable,
        )
        control.shared = opened.shared
        if control.config.proxies is not None:
            proxies = Proxies(control=control, encoding=self._auth_encoding)
            await proxies.open()
            control.proxies = proxies
        self._flusher = Flusher(control=control, ledger=ledger, fail=self._fail)
        control.open_job(
            ledger,
            wake=self._wake,
            flush_soon=self._flusher.soon,
            note_change=self._flusher.note_change,
        )
        self._intake = Intake(control, first_id=opened.recovered.last_id, order=self._order)
        control.restore_book(opened.recovered)
        control.learned.load(ledger.store.fact(names.FACT_LEARNED), control.now_at())
        control.witness.take(ledger.store.fact(names.FACT_WITNESSES))
        self._take_over(opened.recovered)
        if opened.durable and opened.recovered.died:
            self._dispatch.be_careful()
        if control.foreign_filter is not None and hasattr(control.foreign_filter, "open"):
            control.foreign_filter.open()
        control.writer = await open_writer(control)
        control.post = await open_post(control, self._revive, folder=self._folder)
        self._flusher.open()
        contain(control)
        if opened.shared is not None:
            opened.shared.carries(
                items=control.writer is not None, letters=control.post is not None
            )
            opened.shared.start()
        self._on_shutdown = add_shutdown_trigger(self._shut_down)

    def _take_over(self, recovered: Recovered) -> None:
        control = self._control
        for backlog in recovered.backlogs:
            control.frontier.note_on_disk(
                backlog.domain, backlog.count, backlog.best_priority, backlog.best_rank
            )
        if control.shared is None and recovered.delayed and recovered.next_due_at is not None:
            wait_s = max(0.0, recovered.next_due_at - control.now_at())
            control.delays.note_on_disk(recovered.delayed, control.now() + wait_s)
        for row in recovered.crashed:
            control.graves.bury_crashed(row)
        if recovered.resumed:
            control.stats.set_value(names.STAT_RESUMED, control.pending)
            where = "the job in Redis" if control.shared is not None else self._folder
            logger.info("Resumed %s with %d requests pending", where, control.pending)

    async def _close(self, reason: str) -> None:
        self._control.stopping = True
        if self._control.proxies is not None:
            self._control.proxies.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        flusher, self._flusher = self._flusher, None
        if flusher is None:
            return
        remove_shutdown_trigger(self._on_shutdown)
        self._on_shutdown = add_shutdown_trigger(self._finish_closing)
        control = self._control
        if control.foreign_filter is not None and hasattr(control.foreign_filter, "close"):
            control.foreign_filter.close(reason)
        control.ledger.record("finish_reason", json.dumps(reason))
        await flusher.close()
        if control.shared is not None:
            await control.shared.close(reason)
        try:
            await run_in_thread(control.ledger.store.close)
        except StoreError as error:
            logger.error("The job was closed as well as it could be: %s", error)  # noqa: TRY400
        self._on_closed = asyncio.ensure_future(self._let_go())

    def _finish_closing(self) -> Deferred[None]:
        """The reactor stops while the crawl closes (a signal meanwhile): it must wait, and we be quick."""
        if self._control.writer is not None:
            self._control.writer.hurry()
        return deferred_from_coro(self._closed())

    async def _closed(self) -> None:
        """Until the engine has told everybody how the crawl ended."""
        deadline = self._control.now() + LAST_WORDS_S
        engine = self._control.engine  # it sends no signal when it has told everybody
        while engine.spider is not None and self._control.now() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def _let_go(self) -> None:
        await self._closed()
        remove_shutdown_trigger(self._on_shutdown)

    def _revive(self, rows: Sequence[Row]) -> None:
        """Requested dead letters come back."""
        control = self._control
        if self._intake is None or self._flusher is None:
            return
        for row in rows:
            try:
                self._intake.revive(row)
            except Unreadable as error:
                control.graves.bury_letter(control.graves.letters.again(row, detail=str(error)))
        self._flusher.soon()
        self._wake()

    # -- waking --------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        compat.wake(self._control.engine, SENTINEL)

    def _set_timer(self, due: float) -> None:
        """One timer, for the first thing that is due."""
        if self._timer is not None:
            if due >= self._timer_due:
                return
            self._timer.cancel()
            self._timer = None
        if due == math.inf:
            return
        self._timer_due = due
        self._timer = call_later(max(0.0, due - self._control.now()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._timer_due = math.inf
        if self._flusher is not None:
            self._wake()

    def _shut_down(self) -> None:
        """The reactor stops though the crawl is not closed (a second SIGINT): keep the books right."""
        if self._flusher is not None:
            self._flusher.last_commit()

    # -- when something goes wrong -------------------------------------------------------------------------------------

    def _bury_untaken(self, request: Request) -> None:
        control = self._control
        if self._intake is None:
            return
        entry = Entry(id=self._intake.next_id(), domain="", priority=0, rank=0, request=request)
        control.book.taken(entry.domain)
        control.graves.bury_entry(entry, "not taken in", "see the log for the exception")

    def _fail(self, reason: str) -> None:
        """Close the spider with *reason*; what is pending stays in the job."""
        if self._failed:
            return
        self._failed = True
        engine = self._control.engine
        if engine.spider is not None:
            deferred_from_coro(engine.close_spider_async(reason=reason))


def _reason(refusal: Exception) -> str:
    """Why a crawl whose job could not be opened is closed."""
    if isinstance(refusal, StoreError):
        return names.REASON_STORE
    return names.REASON_PROXIES if isinstance(refusal, BadProxyList) else names.REASON_SINK
