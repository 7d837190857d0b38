"""Looks at the crawl once a second and makes the snapshot that everything shows.

The rule it keeps: a look costs the same however large the crawl is. Counters are read, not worked
out; domains are looked at in slices, all of them within one look up to a few thousand.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from .looks import LOOK_S, LOOKS_PER_TICK, Looks, Marks, Round, rss_bytes
from .policy.account import Account
from .policy.bottleneck import Bottleneck, Cause, Code, Readings
from .policy.eta import Times
from .policy.history import History
from .policy.sentences import sentence
from .snapshot import Gauges, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from .book import Book, DomainRow
    from .snapshot import CrawlView, DomainNow

logger = logging.getLogger(__name__)

SLICE = 250
"""Domains looked at in one look, ten times a second: under two milliseconds."""
SERIES = (
    "pages_per_s", "refused_per_s", "pending_in_memory", "in_flight", "delayed",
    "retries_out_per_s", "retries_in_per_s", "results_waiting", "loop_lag_ms", "rss_mib",
    "dead_letters", "working",
)  # fmt: skip
OWN_HOLDS = frozenset({
    Code.PAUSED, Code.WRITER_BEHIND, Code.SINK_DOWN, Code.DISK_FULL, Code.STORE_UNREACHABLE,
    Code.NETWORK_DOWN, Code.NO_PROXY,
})  # fmt: skip
_STATES = {
    Cause.NONE: "ready", Cause.PACE: "limit", Cause.CONCURRENCY: "limit", Cause.HOLD: "waiting",
    Cause.PARK: "parked", Cause.PROBE: "probing", Cause.DOWN: "down", Cause.ROBOTS: "robots",
    Cause.CRAWL_DELAY: "limit", Cause.USER_DELAY: "limit", Cause.USER_CEILING: "limit",
    Cause.USER_PAUSE: "paused", Cause.PROXY: "waiting",
}  # fmt: skip
UNKNOWN_END = frozenset({"down", "parked", "paused", "probing"})


class Sampler:
    """Samples a crawl; `start` it when the spider has opened, `stop` it when it has closed.

    Args:
        view: The crawl.
        book: Its counters.
        spider, job: Names to show.
        kept: What is left goes on at the next start.
        rss_limit_bytes: Memory at which the crawl is closed; 0: none.
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
        self._rss_limit_bytes = rss_limit_bytes
        self._moved = moved
        self._bottleneck_changed = bottleneck_changed
        self._looks = Looks()
        self._gauges = Gauges()
        self._marks: deque[Marks] = deque(maxlen=601)
        self._round = Round([], 0)
        self._last = self._round
        self._ticked_due = self.started_due
        self._cpu_s = time.process_time()
        self._cpu: deque[float] = deque(maxlen=10)
        self._free_rate = 0.0
        self._idle_since_at: float | None = None
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
            elif not self._round.ended:
                self._go_round(now, time.time())
        except Exception:
            logger.exception("A look at the crawl failed; the crawl goes on")
        self._due = max(now, self._due) + LOOK_S
        self._timer = call_later(max(0.0, self._due - time.monotonic()), self._look)

    def tick(self) -> Snapshot:
        """Make the next snapshot and hand it to the listeners."""
        now, now_at = time.monotonic(), time.time()
        elapsed_s, self._ticked_due = now - self._ticked_due, now
        gauges = self._gauges = self.view.gauges(now_at)
        self._measure(now, gauges, elapsed_s)
        if self.bottleneck.code in OWN_HOLDS:
            self.book.held_s += elapsed_s
        self._go_round(now, now_at)
        readings = self._readings(now_at, gauges)
        changed = self.bottleneck.sample(readings, elapsed_s=elapsed_s)
        snapshot = self.snapshot = self._snapshot(now_at, gauges, readings)
        self._remember(snapshot)
        if changed:
            self._bottleneck_changed(snapshot)
        for listener in self.listeners:
            listener(snapshot)
        return snapshot

    def _measure(self, now: float, gauges: Gauges, elapsed_s: float) -> None:
        book = self.book
        self._marks.append(
            Marks(
                now, book.got, book.refused, book.answers, book.retries_out, book.retries_in,
                gauges.results_written, gauges.links_found, gauges.seeds_read,
            )
        )  # fmt: skip
        spent_s = time.process_time()
        if elapsed_s >= LOOK_S:
            self._cpu.append((spent_s - self._cpu_s) / elapsed_s)
            self._cpu_s = spent_s

    def rate(self, name: str, span_s: int = 10) -> float:
        """Events a second over the last *span_s* samples."""
        if len(self._marks) < 2:
            return 0.0
        last, first = self._marks[-1], self._marks[max(0, len(self._marks) - 1 - span_s)]
        passed_s = last.now - first.now
        return (getattr(last, name) - getattr(first, name)) / passed_s if passed_s > 0 else 0.0

    # -- the domains -------------------------------------------------------------------------------

    def _go_round(self, now: float, now_at: float) -> None:
        current = self._round
        if current.ended:
            current = self._round = Round(list(self.view.working()), current.number + 1)
        unread_each = (self._gauges.unread or 0) / self.book.asked if self.book.asked else 0.0
        end = min(len(current.names), current.place + SLICE)
        for name in current.names[current.place : end]:
            seen = self.view.domain(name, now)
            if seen is not None and (seen.pending or seen.delayed or seen.in_flight):
                self._see(self.book.row(name), seen, now, now_at, each=unread_each)
        current.place = end
        if current.ended:
            self._settle(current, now_at)
            self._last = current

    def _see(
        self, row: DomainRow, seen: DomainNow, now: float, now_at: float, *, each: float
    ) -> None:
        current, before = self._round, row.state
        row.pending, row.delayed, row.in_flight = seen.pending, seen.delayed, seen.in_flight
        row.limit, row.pace, row.why, row.growing = seen.limit, seen.pace, seen.why, seen.growing
        row.cause = str(seen.cause)
        state = _STATES[seen.cause]
        if state in {"ready", "limit"} and seen.growing:
            state = "growing"
        row.state = state
        row.seen_pass = current.number
        row.next_at = now_at + seen.wait_s if math.isfinite(seen.wait_s) else None
        held = seen.cause in {Cause.HOLD, Cause.PARK, Cause.DOWN}
        left = row.left + each * row.asked
        per_s = None if state in UNKNOWN_END else row.goodput.per_s(now - self.book.held_s)
        wait_s = seen.wait_s if held else 0.0
        row.left_s = wait_s + left / per_s if per_s and math.isfinite(wait_s) else None
        current.blocked[seen.cause] += 1
        current.states[state] += 1
        current.growing += state == "growing"
        current.horizon.add(row.name, left=left, per_s=per_s, hold_s=wait_s)
        if row.left_s is not None and row.left_s > (
            current.slowest.left_s or 0 if current.slowest else 0
        ):
            current.slowest = row
        if held and (
            current.held is None or (row.next_at or math.inf) < (current.held.next_at or math.inf)
        ):
            current.held = row
        if (
            seen.cause is Cause.CRAWL_DELAY
            and seen.crawl_delay_s > (current.crawl_delay or (0,))[0]
        ):
            current.crawl_delay = (seen.crawl_delay_s, row.name)
        if before != state:
            self._moved(row, before, now_at)

    @property
    def _seen(self) -> Round:
        """The last whole round; until there is one, what was seen of the first."""
        return self._last if self._last.number else self._round

    def _settle(self, current: Round, now_at: float) -> None:
        """What was looked at in the last round and not in this one has no more work."""
        names = set(current.names)
        for name in self._last.names:
            row = None if name in names else self.book.rows.get(name)
            if row is not None and row.state != "done" and row.seen_pass != current.number:
                before, row.state = row.state, "done"
                row.pending = row.delayed = row.in_flight = 0
                row.left_s, row.next_at, row.cause, row.why = 0.0, None, "none", ""
                self._moved(row, before, now_at)
        current.states["done"] = max(0, self.book.domains - sum(current.states.values()))

    # -- the snapshot ------------------------------------------------------------------------------

    def _share(self, seen: deque[str], what: str) -> float:
        return seen.count(what) / len(seen) if seen else 0.0

    def _readings(self, now_at: float, g: Gauges) -> Readings:
        book, looks, last = self.book, self._looks, self._seen
        pages_per_s = self.rate("got")
        results_share = self._share(looks.held, "results")
        if results_share == 0 and pages_per_s:
            self._free_rate += (pages_per_s - self._free_rate) / 20
        pending = g.pending_in_memory + g.pending_on_disk
        nothing = not (pending or g.leased or g.delayed)
        self._idle_since_at = (self._idle_since_at or now_at) if nothing else None
        worst = max(book.rows.values(), key=lambda r: r.dead) if self.finish and book.rows else None
        in_flight = sum(looks.in_flight) / len(looks.in_flight) if looks.in_flight else 0.0
        slow, held = last.slowest, last.held
        return Readings(
            now_at=now_at,
            running_s=self.running_s(),
            asked=book.asked,
            pages=book.got,
            lost=book.dead,
            lost_items=book.dead_items,
            skipped=book.skipped,
            pending=pending,
            delayed=g.delayed,
            next_due_at=g.next_due_at,
            last_due_at=g.last_due_at,
            closed=self.finish is not None,
            complete=bool(self.finish and self.finish[1]),
            kept=self.kept,
            lost_domain=worst.name if worst and worst.dead else None,
            lost_there=worst.dead if worst else 0,
            stopping=g.stopping,
            stop_within_s=g.stop_within_s,
            paused_since_at=g.paused_since_at,
            paused_by=g.paused_by,
            disk_full=g.disk_full,
            free_bytes=g.free_bytes,
            resume_bytes=g.resume_bytes,
            disk=g.disk,
            store=g.store,
            store_silent_s=g.store_silent_s,
            network_down=g.network_down,
            probe_every_s=g.probe_every_s,
            sink=g.sink,
            sink_down_s=g.sink_down_s,
            results_waiting=g.results_waiting,
            results_bound=g.results_bound,
            results_share=results_share,
            results_per_s=self.rate("written"),
            pages_would_per_s=self._free_rate,
            backout_share=sum(looks.backed_out) / len(looks.backed_out) if looks.backed_out else 0,
            backout_bytes=g.backout_bytes,
            cpu_share=self.cpu_share(),
            lag_s=looks.lag_p99_s(),
            rss_bytes=rss_bytes(),
            rss_limit_bytes=self._rss_limit_bytes,
            in_flight=g.in_flight,
            max_in_flight=g.max_in_flight,
            in_flight_share=in_flight / g.max_in_flight if g.max_in_flight else 0.0,
            blocked=last.blocked,
            growing=last.growing,
            domains=book.domains,
            slowest=slow.name if slow else None,
            slowest_per_s=slow.goodput.per_s(time.monotonic() - book.held_s) if slow else None,
            slowest_left_s=slow.left_s if slow else None,
            held=held.name if held else None,
            held_why=held.why if held else "",
            held_until_at=held.next_at if held else None,
            crawl_delay_domain=last.crawl_delay[1] if last.crawl_delay else None,
            crawl_delay_s=last.crawl_delay[0] if last.crawl_delay else 0.0,
            user_delay_s=g.user_delay_s,
            proxies=g.proxies,
            healthy_proxies=g.healthy_proxies,
            next_proxy_at=g.next_proxy_at,
            seeds_done=g.seeds_done,
            seed_wait_share=sum(looks.gate_waits) / len(looks.gate_waits)
            if looks.gate_waits
            else 0,
            seeds_per_s=self.rate("seeds"),
            pending_low=g.pending_low,
            gate_open=g.gate_open,
            robots_domains=g.robots_domains,
            waits_for_seeds=g.waits_for_seeds,
            idle_since_at=self._idle_since_at,
            idle_until_at=g.idle_until_at,
            source=g.source,
        )

    def _snapshot(self, now_at: float, gauges: Gauges, readings: Readings) -> Snapshot:
        book, last = self.book, self._seen
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
        first = self._marks[0]
        answers, refused = book.answers - first.answers, book.refused - first.refused
        if len(self._marks) < 601:
            answers, refused = book.answers, book.refused
        pages = self.rate("got", 60)
        links = self.rate("links", 60)
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
            code=str(code),
            level=self.bottleneck.level,
            sentence=sentence(code, readings),
            since_at=self.bottleneck.since_at,
            account=account,
            gauges=gauges,
            times=times,
            pages_per_s=self.rate("got"),
            pages_per_s_mean=book.got / readings.running_s if readings.running_s > 0 else 0.0,
            refused_per_s=self.rate("refused"),
            refused_share=refused / answers if answers > 0 else None,
            retries_out_per_s=self.rate("retries_out"),
            retries_in_per_s=self.rate("retries_in"),
            links_per_page=links / pages if pages > 0 else 0.0,
            rss_bytes=readings.rss_bytes,
            cpu_share=readings.cpu_share,
            loop_lag_s=readings.lag_s,
            domains=book.domains,
            working=readings.working,
            states={name: number for name, number in last.states.items() if number},
            blocked={str(cause): number for cause, number in last.blocked.items()},
            seconds={str(name): spent for name, spent in self.bottleneck.seconds.items()},
            finish_reason=self.finish[0] if self.finish else None,
            exit_code=self.exit[0] if self.exit else None,
            exit_rule=self.exit[1] if self.exit else "",
        )

    def _remember(self, snapshot: Snapshot) -> None:
        figures = snapshot.figures() | {"working": snapshot.working}
        values = [figures[name] for name in SERIES]
        self.history.append([math.nan if v is None else float(v) for v in values])
        self.history_at = snapshot.at

    def cpu_share(self) -> float:
        """Part of one core that this process used in the last ten seconds."""
        return sum(self._cpu) / len(self._cpu) if self._cpu else 0.0

    def running_s(self) -> float:
        """How long this job has run, over all its processes."""
        return self.earlier_s + time.monotonic() - self.started_due
