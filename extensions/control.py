"""The crawl's one control room: what the scheduler, the middlewares and the pipelines share.

The rule it keeps: each piece of state has one owner, and this is where the owners find each other. It is an extension, so
that it exists before the middlewares and the scheduler are made.
"""

from __future__ import annotations

import json
import logging
import random
import time
from typing import TYPE_CHECKING, Self

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object

from . import compat, names
from .book import Book
from .commandline import leaves_no_trace
from .config import Config
from .domains import Domains
from .graves import Graves
from .learned import Learned
from .ledger import HELD_IN_MEMORY
from .lineage import current_lease
from .policy.delays import Delays
from .policy.domains import domain_key
from .policy.frontier import Frontier
from .policy.outage import OutageDetector
from .policy.retry import delay_s
from .policy.seedgate import SeedGate
from .policy.turns import Turns
from .politeness import UNLIMITED, Politeness
from .stores.base import State
from .strays import Strays
from .telling import Telling
from .witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.robotstxt import RobotParser

    from .deadletterpost import DeadLetterPost
    from .distributed import Distributed
    from .domains import Domain
    from .leases import Lease
    from .ledger import Ledger
    from .policy.frontier import Entry
    from .proxies import Proxies
    from .stores.base import Recovered
    from .writer import ResultsWriter

logger = logging.getLogger(__name__)

STOCK_FILTER = "scrapy.dupefilters.RFPDupeFilter"

SENTINEL = Request("data:,sluice", dont_filter=True)
"""Recognised by identity: crawling it only has the engine ask the scheduler."""


def steady_wall_clock() -> Callable[[], float]:
    """Wall-clock seconds, deaf to changes of the system's clock: one set back would stretch every delay."""
    offset_s = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset_s


class Control:
    """Shared state of one crawl; find it with `crawler.get_extension(Control)`.

    Args:
        crawler: The crawl.
        config: Sluice's settings.
        now: Monotonic seconds.
        now_at: Wall-clock seconds; by default those of the start of the crawl, carried on by *now*.
        draw: Uniform draws from [0, 1).
    """

    def __init__(
        self,
        *,
        crawler: Crawler,
        config: Config,
        now: Callable[[], float] = time.monotonic,
        now_at: Callable[[], float] | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.crawler = crawler
        self.config = config
        self.now = now
        self.now_at = now_at or steady_wall_clock()
        self.draw = draw
        self.stats = crawler.stats
        self.held_in_memory = HELD_IN_MEMORY
        self.politeness = Politeness(
            settings=crawler.settings,
            draw=draw,
            workers=1 if config.frontier == "local" else config.workers_per_domain,
        )
        self._debug_filter = crawler.settings.getbool("DUPEFILTER_DEBUG")
        self._logged_filter = False
        self.learned = Learned(file=None if leaves_no_trace() else config.learned)
        self.domains = Domains(
            politeness=self.politeness,
            retry_ratio=config.retry_budget,
            recall=self.learned.recall,
            note=self._note_learned,
            u=draw,
        )
        self.frontier = Frontier(window=config.memory_window)
        self.delays = Delays(window=config.memory_window)
        self.turns = Turns()
        self.outage = OutageDetector()
        self.witness = Witness(self)
        self.gate = SeedGate(cap=config.max_pending, frontier=self.frontier, turns=self.turns)
        self.book = Book()
        self._kept_totals = ""
        self.given_back = 0  # requests in flight at the end: they are pending again, on disk
        self.awaits_seed = False  # start() works on the next seed
        self.robots_domains = 0
        self.source_failed = False  # the spider's start() raised
        self.paused_since_at: float | None = None
        self.paused_by = ""
        self.strays = Strays(self)
        self.proxies: Proxies | None = None  # only where SLUICE_PROXIES is set
        self.stopping = False
        self.waits_no_longer = False  # the stopping crawl's time is up
        self.store_waits = False
        self.foreign_filter: BaseDupeFilter | None = None
        self.writer: ResultsWriter | None = None
        self.post: DeadLetterPost | None = None
        self.shared: Distributed | None = None
        self.entry_stored: Callable[[int], None] | None = None  # of a queue's entries
        self._entries: list[int] = []  # taken in since the last commit
        self.tell = Telling(crawler.signals)
        self.graves = Graves(self)
        self._ledger: Ledger | None = None
        self._wake: Callable[[], None] = lambda: None
        self._flush_soon: Callable[[], None] = lambda: None
        self._note_change: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """The control room of *crawler*, for a middleware to work with.

        Raises:
            NotConfigured: Sluice is off, and so is what asks.
        """
        control = crawler.get_extension(cls)
        if control is None:
            raise NotConfigured
        return control

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings and listen for what tells how requests end."""
        config = Config.from_settings(crawler.settings)
        if not config.enabled:
            raise NotConfigured
        control = cls(crawler=crawler, config=config)
        connect = crawler.signals.connect
        control.graves.listen(crawler.signals)
        connect(control.robots_parsed, signals.robots_parsed)
        connect(control.engine_stopping, signals.spider_closed)
        return control

    # -- who is who ----------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The job's books; there from the opening of the scheduler on."""
        if self._ledger is None:
            raise RuntimeError("the job is not open yet")
        return self._ledger

    @property
    def engine(self) -> ExecutionEngine:
        """The crawl's engine."""
        return self.crawler.engine

    @property
    def spider(self) -> Spider:
        """The crawl's spider."""
        if self.crawler.spider is None:
            raise RuntimeError("the spider is not made yet")
        return self.crawler.spider

    @property
    def is_open(self) -> bool:
        """Has the job been opened?"""
        return self._ledger is not None

    def open_job(
        self,
        ledger: Ledger,
        *,
        wake: Callable[[], None],
        flush_soon: Callable[[], None],
        note_change: Callable[[], None],
    ) -> None:
        """The scheduler has opened the job; *note_change* flushes at the usual pace, *flush_soon* at once."""
        self._ledger = ledger
        self._wake = wake
        self._flush_soon = flush_soon
        self._note_change = note_change
        name = self.crawler.settings["DUPEFILTER_CLASS"]
        cls = load_object(name)
        if cls is not load_object(STOCK_FILTER):
            self.foreign_filter = build_from_crawler(cls, self.crawler)

    async def close_job(self) -> None:
        """The job could not be opened to its end: release what of it was."""
        if self.writer is not None:
            await self.writer.close(0.0)
        if self._ledger is not None:
            await run_in_thread(self._ledger.store.close)

    def lease_of(self, request: Request) -> Lease | None:
        """The lease of a request that came from the scheduler; None for robots.txt, media and the like."""
        return None if self._ledger is None else self._ledger.by_request.get(request)

    def lease_at_work(self) -> Lease | None:
        """The lease in whose work this code runs (callback, pipeline, signal); None outside of any."""
        lease_id = current_lease()
        if lease_id is None or self._ledger is None:
            return None
        return self._ledger.leases.get(lease_id)

    def active(self) -> set[Request]:
        """What the downloader has in hand."""
        return self.engine.downloader.active

    def fingerprint(self, request: Request) -> bytes:
        """Identity of *request* by the crawl's own fingerprinter."""
        return self.crawler.request_fingerprinter.fingerprint(request)

    def _note_learned(self, domain: Domain) -> None:
        self.learned.note(domain, self.now(), self.now_at())

    def keep_learned(self) -> None:
        """Have what the governors found committed with the job."""
        for domain in self.domains:
            self._note_learned(domain)
        if self.ledger.durable:
            self.ledger.record(names.FACT_LEARNED, self.learned.text())
            self.ledger.record(names.FACT_WITNESSES, self.witness.kept())

    # -- counts --------------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Known and not handed out: ready, delayed, in memory or on disk."""
        here = self.frontier.pending + len(self.delays)
        return here if self.shared is None else here + self.shared.arriving

    @property
    def everywhere(self) -> int:
        """The same for all workers of a shared frontier together, requests in flight included."""
        return self.pending if self.shared is None else self.shared.everywhere

    def room_for_seeds(self) -> int:
        """How many seeds may come in now; 1 even if none may, since the gate holds it back."""
        known = self.pending
        if self.shared is not None:
            known = self.shared.pending_for_gate(automatic=self.config.max_pending is None)
        return max(1, self.gate.high - known)

    def entry_taken(self, entry: int) -> None:
        """The request of a queue's entry came in; shared frontiers tell for themselves when they have it."""
        if self.ledger.durable and self.shared is None:
            self._entries.append(entry)

    def entries_committed(self) -> None:
        """What came in is durable."""
        entries, self._entries = self._entries, []
        if self.entry_stored is not None:
            for entry in entries:
                self.entry_stored(entry)

    def entry_ended(self, lease: Lease) -> None:
        """*lease* is at its end: if its request was nowhere safe, its queue's entry is done with only now."""
        entry = lease.request.meta.get(names.ENTRY)
        if entry is not None and self.entry_stored is not None and not self.ledger.durable:
            self.entry_stored(entry)

    def backoff_s(self, attempt: int) -> float:
        """A draw of the delay before retry *attempt*."""
        config = self.config
        return delay_s(attempt, base_s=config.retry_base_s, cap_s=config.retry_cap_s, u=self.draw())

    def results_too_deep(self) -> bool:
        """Do so many results wait for their sink that nothing more should be fetched?"""
        if self.writer is None:
            return False
        return not self.writer.room_for(len(self.ledger.leases), self.ledger.staged)

    def seeds_may_come(self) -> bool:
        """Is the start gate open? Of a shared job it looks at what waits for all workers."""
        if self.shared is not None:
            known = self.shared.pending_for_gate(automatic=self.config.max_pending is None)
            return self.gate.is_open(self.now(), known, forgiving=False)
        return self.gate.is_open(self.now(), self.pending)

    def slot_size(self, name: str) -> int:
        """Requests that the downloader's slot of domain *name* lets through."""
        if self.proxies is not None and self.proxies.by_proxy:
            return UNLIMITED  # the pairs' governors hold it
        return self.politeness.ceiling(name)

    def is_busy(self, domain: Domain) -> bool:
        """Has *domain* work, or something in flight?"""
        return (
            domain.in_flight > 0
            or domain.strays > 0
            or domain.paused
            or domain.name in self.frontier
        )

    # -- moves ---------------------------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Have the books flushed within milliseconds: something waits for it."""
        self._flush_soon()

    def admit(self, entry: Entry, delay_s: float) -> None:
        """Make *entry* pending, in *delay_s* seconds if that is over 0."""
        if self.shared is not None and self.shared.takes(entry, delay_s):
            return
        if delay_s > 0:
            self.book.put_off(entry.domain)
            self.stats.inc_value(names.STAT_DELAYED)
            due_at = self.now_at() + delay_s
            to_disk = self.delays.push(entry, self.now() + delay_s)
            if self.ledger.durable or to_disk:
                self.ledger.put(entry, State.DELAYED, due_at=due_at)
            if to_disk:
                entry.request = None
            self.wake_soon()
            return
        if (
            self.ledger.durable
            and not self.ledger.put(entry, State.WINDOW)
            and self.config.unstorable == "dead-letter"
        ):
            self.graves.bury_entry(
                entry, "unstorable", "see the log for the field that cannot be stored"
            )
            return
        spilled = self.frontier.push(entry)
        if spilled is not entry:
            self.turns.work_came(entry.domain, entry.priority)
        if spilled is not None:
            self._spill(spilled)
        if self.frontier.is_short:
            self._flush_soon()

    def _spill(self, entry: Entry) -> None:
        if self.ledger.put(entry, State.PENDING):
            entry.request = None
            self.stats.inc_value(names.STAT_SPILLED)
            if self.shared is not None:
                self.shared.given_back(entry)
            return
        # It turns out that it cannot be stored: it stays in memory, beyond the window.
        self.frontier.unspill(entry)
        self.turns.work_came(entry.domain, entry.priority)

    def restore_book(self, recovered: Recovered) -> None:
        """Go on with the counts of an earlier process of this job."""
        kept = self.ledger.store.fact(names.FACT_ACCOUNT)
        if kept is not None:
            self.book.restore(json.loads(kept))
        left = recovered.delayed + len(recovered.crashed)
        left += sum(backlog.count for backlog in recovered.backlogs)
        self.book.reconcile(left)

    def keep_book(self) -> None:
        """Have the counts committed with the changes that they count."""
        if self.ledger.durable:
            totals = json.dumps(self.book.totals(results=self.ledger.new_results))
            if totals != self._kept_totals:
                self._kept_totals = totals
                self.ledger.record(names.FACT_ACCOUNT, totals)

    @property
    def leased(self) -> int:
        """Requests handed out and not ended: at a site, or in the spider."""
        return 0 if self._ledger is None else len(self._ledger.leases)

    def domains_in_flight(self) -> set[str]:
        """Names of the domains of all leases."""
        if self._ledger is None:
            return set()
        return {lease.domain.name for lease in self._ledger.leases.values()}

    def land(self, now: float) -> None:
        """Take note of the requests that have left the downloader."""
        active = self.active()
        self.strays.land(active, now)
        for lease in self.ledger.land(active):
            domain = lease.domain
            domain.in_flight -= 1
            if lease.ticket is not None:
                domain.governor.abandoned(lease.ticket, now)
                lease.ticket = None
            if lease.ride is not None and self.proxies is not None:
                self.proxies.abandoned(lease.ride, now)
                lease.ride = None
            self.stand_in_line(domain.name)

    def stand_in_line(self, name: str) -> None:
        """Have domain *name* asked for its next request, if it has one in memory."""
        queue = self.frontier.get(name)
        priority = None if queue is None else queue.top_priority
        if priority is not None:
            self.turns.ready(name, priority)

    def wake_soon(self) -> None:
        """Have the engine ask for requests."""
        self._wake()

    def give_up(self, name: str, reason: str) -> None:
        """From now on the requests of domain *name* become dead letters with *reason*."""
        domain = self.domains.get(name, self.now())
        if domain.given_up is None:
            domain.given_up = reason
            logger.warning("Gave up on %s (%s): its requests become dead letters", name, reason)
            self.wake_soon()

    def record_soon(self, name: str, value: str) -> None:
        """Have a fact of the job committed by the next flush at the usual pace.

        A writer's mark that asked for a flush at once would be followed by the next rows, their mark, and so on without end.
        """
        self.ledger.record(name, value)
        self._note_change()

    def close_spider(self, reason: str, message: str) -> None:
        """End the crawl early; what is pending is kept."""
        logger.error("The crawl is closed (%s): %s", reason, message)
        if self.engine.spider is not None:
            deferred_from_coro(self.engine.close_spider_async(reason=reason))

    # -- what Scrapy's signals tell --------------------------------------------------------------------------------------

    def robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        """robots.txt may ask for a delay."""
        self.robots_domains += 1
        if not self.config.crawl_delay:
            return
        agent = self.crawler.settings["ROBOTSTXT_USER_AGENT"] or self.crawler.settings["USER_AGENT"]
        domain = self.domains.get(domain_key(request.url), self.now())
        delay_s = self.politeness.note_robots(domain.name, robotparser, agent)
        if delay_s:
            self.politeness.set_floors(domain.name, domain.governor)
            logger.info("robots.txt of %s asks for %g s between requests", domain.name, delay_s)

    def engine_stopping(self) -> None:
        """The spider is closed."""
        self.stopping = True

    def log_duplicate(self, request: Request) -> None:
        """Say it once, or each time with DUPEFILTER_DEBUG, in Scrapy's own words."""
        if self._debug_filter:
            logger.debug("Filtered duplicate request: %s", request, extra={"spider": self.spider})
        elif not self._logged_filter:
            self._logged_filter = True
            logger.debug(
                "Filtered duplicate request: %s - no more duplicates will be shown"
                " (see DUPEFILTER_DEBUG to show all duplicates)",
                request,
                extra={"spider": self.spider},
            )

    def scraper_is_behind(self) -> bool:
        """Do answers wait for callbacks?"""
        return compat.scraper_is_behind(self.engine)
