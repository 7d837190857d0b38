"""Reads a crawl for those who show it: the control room's counters, as plain values.

The rule it keeps: nothing here changes the crawl, and everything is a read of what its owner keeps.
"""

from __future__ import annotations

import math
import shutil
import time
from collections import deque
from typing import TYPE_CHECKING

from . import compat
from .dispatch import Idle
from .lane import SinkStatus
from .policy.blocked import Blocked
from .policy.bottleneck import Cause
from .snapshot import DomainNow, Gauges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .control import Control
    from .domains import Domain
    from .policy.governor import DomainGovernor
    from .proxies import Proxies

_CAUSES = {
    Blocked.NONE: Cause.NONE, Blocked.PACE: Cause.PACE, Blocked.CONCURRENCY: Cause.CONCURRENCY,
    Blocked.CEILING: Cause.USER_CEILING, Blocked.HOLD: Cause.HOLD, Blocked.PARK: Cause.PARK,
    Blocked.PROBE: Cause.PROBE, Blocked.DOWN: Cause.DOWN, Blocked.CRAWL_DELAY: Cause.CRAWL_DELAY,
    Blocked.USER_DELAY: Cause.USER_DELAY,
}  # fmt: skip
_DISK_LOOK_S = 5.0
_WORST = 20  # proxies that the status shows one by one


class ControlView:
    """One crawl, to be read; see `CrawlView`.

    Args:
        control: The crawl's control room.
        folder: The job's folder, whose disk may fill up; None: none.
    """

    def __init__(self, *, control: Control, folder: str | None) -> None:
        self._control = control
        self._folder = folder or "."
        self._drain_s = control.config.stop_timeout_s
        self._max_in_flight = control.crawler.settings.getint("CONCURRENT_REQUESTS")
        self._user_delay_s = control.crawler.settings.getfloat("DOWNLOAD_DELAY")
        self._free_bytes = 0
        self._disk_due = 0.0
        self._written: deque[tuple[float, int]] = deque(maxlen=3600)
        self._places_free = False  # then a domain that may send now, will
        self.stop_asked_at: float | None = None

    # -- ten times a second ------------------------------------------------------------------------

    def held_back(self) -> str:
        """Why the scheduler's last answer was nothing."""
        dispatch = getattr(self._control.engine.scheduler, "dispatch", None)
        idle: Idle | None = dispatch.idle if dispatch is not None else None
        return idle.value if idle is not None else ""

    def in_flight(self) -> int:
        """Requests at a site now."""
        return len(self._control.engine.downloader.active)

    def backed_out(self) -> bool:
        """Do answers wait for callbacks?"""
        return compat.scraper_is_behind(self._control.engine)

    def gate_waits(self) -> bool:
        """Does the crawl wait for the spider's `start()`?"""
        return self._control.awaits_seed

    # -- once a second -----------------------------------------------------------------------------

    def gauges(self, now_at: float) -> Gauges:
        """The counters of this moment."""
        control = self._control
        gauges = Gauges(
            max_in_flight=self._max_in_flight,
            user_delay_s=self._user_delay_s,
            pending_high=control.gate.high,
            pending_low=control.gate.low,
            gate_open=not control.gate.closed,
            stopping=compat.is_closing(control.engine),
            paused_since_at=control.paused_since_at,
            paused_by=control.paused_by,
            seeds_done=compat.seeds_are_read(control.engine),
            unread=self._unread(),
            in_flight=self.in_flight(),
            disk=self._folder,
            backout_bytes=compat.waiting_answers_bytes(control.engine),
        )
        spider = control.engine.spider
        gauges.source = getattr(spider, "seed_queue", "")
        gauges.waits_for_seeds = bool(gauges.source)
        gauges.idle_until_at = getattr(spider, "idle_until_at", None)
        if gauges.stopping:
            self.stop_asked_at = self.stop_asked_at or now_at
            gauges.stop_within_s = max(0.0, self.stop_asked_at + self._drain_s - now_at)
        self._queues(gauges, now_at)
        self._results(gauges, now_at)
        self._machine(gauges)
        return gauges

    def _unread(self) -> int | None:
        """Seeds that are not drawn yet, if the spider can tell (`seeds_left`); None if it cannot."""
        engine = self._control.engine
        if compat.seeds_are_read(engine):
            return 0
        left: int | None = getattr(engine.spider, "seeds_left", None)
        return None if left is None else self._control.book.unread(left)

    def _queues(self, gauges: Gauges, now_at: float) -> None:
        control = self._control
        gauges.pending_in_memory = control.frontier.in_memory
        gauges.pending_on_disk = control.frontier.on_disk + control.given_back
        gauges.delayed = len(control.delays)
        now = control.now()
        if gauges.delayed and math.isfinite(control.delays.next_due):
            gauges.next_due_at = now_at + max(0.0, control.delays.next_due - now)
            if math.isfinite(control.delays.last_due):
                gauges.last_due_at = now_at + max(0.0, control.delays.last_due - now)
        gauges.leased = control.leased
        gauges.robots_domains = control.robots_domains
        gauges.links_found = control.book.links
        gauges.seeds_read = control.book.seeds

    def _results(self, gauges: Gauges, now_at: float) -> None:
        control = self._control
        writer = control.writer
        if writer is None:
            return
        gauges.results_waiting = writer.waiting
        gauges.results_bound = control.config.results_bound
        gauges.results_written = max(0, control.book.results - writer.waiting)
        self._written.append((now_at, control.book.results))
        states = writer.states
        if states:
            slowest = max(states, key=lambda state: state.waiting)
            gauges.sink = slowest.name
            if gauges.results_waiting:
                gauges.oldest_result_s = now_at - self._came_at(gauges.results_written, now_at)
            down = [s for s in states if s.status in {SinkStatus.DOWN, SinkStatus.GONE}]
            if down:
                gauges.sink = down[0].name
                gauges.sink_down_s = max(0.0, now_at - down[0].since_at)
                gauges.sink_says = down[0].message

    def _came_at(self, number: int, now_at: float) -> float:
        """When the result after the *number*-th was committed, to a second."""
        return next((at for at, results in self._written if results > number), now_at)

    def _machine(self, gauges: Gauges) -> None:
        control = self._control
        now = control.now()
        gauges.network_down = control.outage.sure(now)
        if control.proxies is not None:
            self._proxies(gauges, control.proxies, now)
        gauges.probe_every_s = max(1.0, control.outage.next_probe_due - now)
        shared = control.shared
        gauges.disk_full = control.store_waits and shared is None
        if shared is not None:
            gauges.store = "Redis"
            away_at = shared.away_since_at
            gauges.store_silent_s = 0.0 if away_at is None else max(0.0, time.time() - away_at)
        if time.monotonic() >= self._disk_due:
            self._disk_due = time.monotonic() + _DISK_LOOK_S
            try:
                self._free_bytes = shutil.disk_usage(self._folder).free
            except OSError:
                self._free_bytes = 0
        gauges.free_bytes = self._free_bytes

    def _proxies(self, gauges: Gauges, proxies: Proxies, now: float) -> None:
        gauges.proxies = len(proxies.pool)
        gauges.healthy_proxies = proxies.pool.healthy
        gauges.worst_proxies = proxies.worst(_WORST, now)
        next_due = proxies.pool.next_due()
        if math.isfinite(next_due):
            gauges.next_proxy_at = time.time() + max(0.0, next_due - now)

    # -- the domains -------------------------------------------------------------------------------

    def working(self) -> Iterable[str]:
        """Names of the domains with work: something pending, delayed or in flight."""
        control = self._control
        self._places_free = self.in_flight() < self._max_in_flight and self.held_back() in {
            "", Idle.ALL_BLOCKED.value, Idle.NO_REQUEST.value
        }  # fmt: skip
        names = dict.fromkeys(name for name, _ in control.frontier.domains())
        names.update(dict.fromkeys(control.book.delayed))
        names.update(dict.fromkeys(control.domains_in_flight()))
        return names

    def domain(self, name: str, now: float) -> DomainNow | None:
        """One of them, now."""
        control = self._control
        queue = control.frontier.get(name)
        domain = control.domains.find(name)
        pending = len(queue) if queue is not None else 0
        delayed = control.book.delayed.get(name, 0)
        if domain is None:
            return DomainNow(cause=Cause.NONE, pending=pending, delayed=delayed)
        governor = domain.governor
        if domain.paused:
            cause, wait_s = Cause.USER_PAUSE, math.inf
        else:
            cause = _CAUSES[governor.blocked_by(now, domain.in_flight)]
            if cause is Cause.NONE and self._places_free:
                cause = _lasting(governor)
            if control.proxies is not None:
                cause = control.proxies.cause(name, cause)
            wait_s = self._wait_s(name, domain, cause, now)
        row = control.book.rows.get(name)
        note = row.note if row is not None else ""
        growing = not governor.met_limit and cause not in {Cause.HOLD, Cause.PARK, Cause.DOWN}
        return DomainNow(
            cause=cause,
            pending=pending,
            delayed=delayed,
            in_flight=domain.in_flight,
            limit=governor.concurrency if not self._by_proxy else domain.in_flight,
            pace=governor.pace,
            wait_s=wait_s,
            growing=growing and pending > 0 and cause not in {Cause.USER_CEILING, Cause.POOL},
            why=self._why(domain, cause, note),
            crawl_delay_s=governor.crawl_delay_s,
        )

    @property
    def _by_proxy(self) -> bool:
        """Are the limits those of proxies, and not of the domain's governor?"""
        return self._control.proxies is not None and self._control.proxies.by_proxy

    def _wait_s(self, name: str, domain: Domain, cause: Cause, now: float) -> float:
        """Seconds until *domain* may be asked; infinity: when a running request ends."""
        if cause in {Cause.HOLD, Cause.PARK, Cause.DOWN}:
            held = domain.governor.held_until
            return max(0.0, held - now) if held is not None else 0.0
        if cause in {Cause.PROBE, Cause.CONCURRENCY, Cause.USER_CEILING, Cause.POOL}:
            return math.inf
        due = self._control.turns.due_of(name)
        return max(0.0, due - now) if due is not None else 0.0

    def _why(self, domain: Domain, cause: Cause, note: str) -> str:
        governor = domain.governor
        if domain.given_up is not None:
            return f"given up: {domain.given_up}"
        proxies = self._control.proxies
        if proxies is not None and (why := proxies.why(domain.name)):
            return why
        match cause:
            case Cause.USER_PAUSE:
                return "paused by hand"
            case Cause.DOWN:
                return f"answers {note} only" if note.isdecimal() else note or "no answer"
            case Cause.HOLD | Cause.PARK:
                return note or "refused or failed"
            case Cause.PROBE:
                return f"{note}, one probe at a time" if note else "one probe at a time"
            case Cause.CRAWL_DELAY:
                return f"robots.txt: Crawl-delay {governor.crawl_delay_s:g} s"
            case Cause.USER_DELAY:
                return "your DOWNLOAD_DELAY"
            case Cause.USER_CEILING:
                return f"your limit of {governor.concurrency} at once"
            case Cause.CONCURRENCY if governor.met_limit:
                return f"slows down over {governor.concurrency} at once"
            case Cause.PACE if governor.met_limit:
                return f"{note} above this pace" if note.startswith("429") else "its own pace"
        return "limit not found yet" if not governor.met_limit else ""


def _lasting(governor: DomainGovernor) -> Cause:
    """What holds a domain back over time, though just now it may send: it is about to."""
    if governor.crawl_delay_s > 0:
        return Cause.CRAWL_DELAY
    if governor.pace is not None:
        return Cause.PACE
    return Cause.CONCURRENCY if governor.met_limit else Cause.NONE
