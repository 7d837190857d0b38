"""Looks at the crawl once a second and makes the snapshot that everything shows.

The rule it keeps: a look costs the same however large the crawl is. Counters are read, not worked
out; domains are looked at in slices, all of them within one look up to a few thousand.
"""

from __future__ import annotations

import logging
import math
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from .looks import LOOK_S, LOOKS_PER_TICK, CpuTime, Looks, Tape
from .policy.account import Account
from .policy.bottleneck import Code
from .policy.eta import Times
from .policy.history import History
from .policy.sentences import sentence
from .policy.shown import Bottleneck
from .readings import OWN_HOLDS, Reader
from .rounds import Rounds
from .snapshot import Gauges, Snapshot
from .worth import EVERY_TICKS, worth_a_look

if TYPE_CHECKING:
    from collections.abc import Callable

    from .book import Book
    from .domainrow import DomainRow
    from .policy.bottleneck import Readings
    from .policy.findings import Finding
    from .snapshot import CrawlView

logger = logging.getLogger(__name__)

SERIES = (
    "pages_per_s", "refused_per_s", "pending_in_memory", "in_flight", "delayed",
    "retries_out_per_s", "retries_in_per_s", "results_waiting", "loop_lag_ms", "rss_mib",
    "dead_letters", "working",
)  # fmt: skip


class Sampler:
    """Samples a crawl; `start` it when the spider has opened, `stop` it when it has closed.

    Args:
        view: The crawl.
        book: Its counters.
        spider, job: Names to show.
        kept: What is left goes on at the next start.
        rss_limit_bytes: Memory at which the crawl is closed; 0: none.
        time_limit_s: Seconds after which it is; 0: none.
        moved: Called with a domain's row, its state before and the wall clock, where that changed.
        bottleneck_changed: Called with the snapshot when another code is shown.
    """

    def __init__(
        self,
        *,
        view: CrawlView,
        book: Book,
        spider: str,
        job: str,
        kept: bool = True,
        rss_limit_bytes: int = 0,
        time_limit_s: float = 0.0,
        moved: Callable[[DomainRow, str, float], None] = lambda *_: None,
        bottleneck_changed: Callable[[Snapshot], None] = lambda _: None,
    ) -> None:
        self.view = view
        self.book = book
        self.spider, self.job = spider, job
        self.bottleneck = Bottleneck()
        self.history = History(SERIES)
        self.history_at = 0.0  # wall-clock time of the newest sample
        self.started_at = time.time()
        self.started_due = time.monotonic()
        self.earlier_s = 0.0  # running time of earlier processes of this job
        self.snapshot: Snapshot | None = None
        self.listeners: list[Callable[[Snapshot], None]] = []
        self.finish: tuple[str, bool] | None = None  # reason, complete
        self.exit: tuple[int, str] | None = None  # code, and the rule that chose it
        self.kept = kept
        self._time_limit_s = time_limit_s
        self._bottleneck_changed = bottleneck_changed
        self._looks, self._tape, self._cpu = Looks(), Tape(), CpuTime()
        self._rounds = Rounds(view=view, book=book, moved=moved)
        self._reader = Reader(
            book=book,
            looks=self._looks,
            tape=self._tape,
            cpu=self._cpu,
            kept=kept,
            rss_limit_bytes=rss_limit_bytes,
        )
        self._got_before = book.got
        self._gauges = Gauges()
        self._findings: tuple[Finding, ...] = ()
        self._ticked_due = self.started_due
        self._due = 0.0
        self._count = 0
        self._timer: object | None = None

    # -- the clockwork -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look."""
        self._ticked_due = time.monotonic()
        self._due = self._ticked_due + LOOK_S
        self._timer = call_later(LOOK_S, self._look)
        self.tick()

    def stop(self) -> None:
        """Look no more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()  # type: ignore[attr-defined]

    def _look(self) -> None:
        now = time.monotonic()
        try:
            self._looks.add(self.view, max(0.0, now - self._due))
            self._count += 1
            if self._count % LOOKS_PER_TICK == 0:
                self.tick()
            elif self._rounds.under_way:
                self._go_round(now, time.time())
        except Exception:
            logger.exception("A look at the crawl failed; the crawl goes on")
        self._due = max(now, self._due) + LOOK_S
        self._timer = call_later(max(0.0, self._due - time.monotonic()), self._look)

    def _go_round(self, now: float, now_at: float) -> None:
        self._rounds.go_on(now, now_at, unread=self._gauges.unread or 0)

    def tick(self) -> Snapshot:
        """Make the next snapshot and hand it to the listeners."""
        now, now_at = time.monotonic(), time.time()
        elapsed_s, self._ticked_due = now - self._ticked_due, now
        gauges = self._gauges = self.view.gauges(now_at)
        self._tape.mark(now, self.book, gauges)
        self._cpu.mark(elapsed_s)
        if self.bottleneck.code in OWN_HOLDS:
            self.book.held_s += elapsed_s
        self._go_round(now, now_at)
        readings = self._reader.read(
            now_at, now, gauges, self._rounds.seen, running_s=self.running_s(), finish=self.finish
        )
        changed = self.bottleneck.sample(readings, elapsed_s=elapsed_s)
        snapshot = self.snapshot = self._with_findings(self._snapshot(now_at, gauges, readings))
        self._remember(snapshot)
        if changed:
            self._bottleneck_changed(snapshot)
        for listener in self.listeners:
            listener(snapshot)
        return snapshot

    # -- the snapshot ------------------------------------------------------------------------------

    def _snapshot(self, now_at: float, gauges: Gauges, readings: Readings) -> Snapshot:
        book, tape, seen, last = self.book, self._tape, self._rounds.seen, self._rounds.last
        code = self.bottleneck.code or Code.STARTING
        account = Account(
            asked=book.asked,
            got=book.got,
            dead=book.dead,
            skipped=book.skipped,
            pending=readings.pending,
            delayed=gauges.delayed,
            in_flight=gauges.leased,
            unread=gauges.unread,
        )
        pages, links = tape.rate("got", 60), tape.rate("links", 60)
        times = (
            last.horizon.times(ended=account.ended) if last.number else Times(None, None, None, 0)
        )
        return Snapshot(
            seq=self.history.fine.seq,
            at=now_at,
            spider=self.spider,
            job=self.job,
            pid=os.getpid(),
            started_at=self.started_at,
            running_s=readings.running_s,
            here_s=self._here_s(),
            got_here=book.got - self._got_before,
            code=str(code),
            level=self.bottleneck.level,
            sentence=sentence(code, readings),
            since_at=self.bottleneck.since_at,
            account=account,
            gauges=gauges,
            times=times,
            pages_per_s=tape.rate("got"),
            pages_per_s_mean=book.got / readings.running_s if readings.running_s > 0 else 0.0,
            refused_per_s=tape.rate("refused"),
            refused_share=tape.refused_share(),
            retries_out_per_s=tape.rate("retries_out"),
            retries_in_per_s=tape.rate("retries_in"),
            links_per_page=links / pages if pages > 0 else 0.0,
            rss_bytes=readings.rss_bytes,
            cpu_share=readings.cpu_share,
            loop_lag_s=readings.lag_s,
            domains=book.domains,
            working=readings.working,
            states={name: number for name, number in seen.states.items() if number},
            blocked={str(cause): number for cause, number in seen.blocked.items()},
            seconds={str(name): spent for name, spent in self.bottleneck.seconds.items()},
            finish_reason=self.finish[0] if self.finish else None,
            exit_code=self.exit[0] if self.exit else None,
            exit_rule=self.exit[1] if self.exit else "",
        )

    def _with_findings(self, snapshot: Snapshot) -> Snapshot:
        if self.finish is not None or snapshot.seq % EVERY_TICKS == 0:
            self._findings = worth_a_look(
                snapshot,
                self.book,
                here_s=snapshot.here_s,
                time_limit_s=self._time_limit_s,
            )
        return replace(snapshot, findings=self._findings)

    def _remember(self, snapshot: Snapshot) -> None:
        figures = snapshot.figures() | {"working": snapshot.working}
        values = [figures[name] for name in SERIES]
        self.history.append([math.nan if v is None else float(v) for v in values])
        self.history_at = snapshot.at

    def running_s(self) -> float:
        """How long this job has run, over all its processes."""
        return self.earlier_s + self._here_s()

    def _here_s(self) -> float:
        return time.monotonic() - self.started_due
