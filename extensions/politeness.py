"""What the user and robots.txt ask for: floors under whatever the governor finds.

The rule it keeps: Scrapy's settings keep their meaning. `DOWNLOAD_DELAY` is jittered as `DOWNLOAD_DELAY_JITTER` says, a slot
of `DOWNLOAD_SLOTS` has its own numbers, and a Crawl-delay outlives the record of a drained domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.robotstxt import RobotParser
    from scrapy.settings import BaseSettings

    from .policy.governor import DomainGovernor

UNLIMITED = 1_000_000
"""Stands for "no limit" where Scrapy's settings say 0."""


class Politeness:
    """The user's and the sites' own limits, by domain.

    Args:
        settings: The crawl's.
        draw: Uniform draws from [0, 1).
        workers: That may ask one domain at the same time: each keeps to its share.
    """

    def __init__(
        self, *, settings: BaseSettings, draw: Callable[[], float], workers: int = 1
    ) -> None:
        self._draw = draw
        self._workers = workers
        self._total = settings.getint("CONCURRENT_REQUESTS") or UNLIMITED
        self._ceiling = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or UNLIMITED
        self._delay_s = settings.getfloat("DOWNLOAD_DELAY")
        self._jitter = settings.getfloat("DOWNLOAD_DELAY_JITTER")
        self._slots: dict[str, dict[str, Any]] = settings.getdict("DOWNLOAD_SLOTS")
        self._crawl_delays: dict[str, float] = {}
        self.has_delays = bool(self._delay_s) or any(s.get("delay") for s in self._slots.values())

    def _slot(self, domain: str) -> dict[str, Any]:
        """What DOWNLOAD_SLOTS says of *domain*: by host and port, or, as in Scrapy, by the host alone."""
        if not self._slots:
            return self._slots
        own = self._slots.get(domain)
        return self._slots.get(domain.rpartition(":")[0], {}) if own is None else own

    def ceiling(self, domain: str) -> int:
        """Requests that *domain* may have in flight, at least 1."""
        own = int(self._slot(domain).get("concurrency", self._ceiling)) or UNLIMITED
        return max(1, min(own // self._workers, self._total))

    def min_delay_s(self, domain: str) -> float:
        """Seconds between two requests to *domain*, before jitter."""
        delay_s = float(self._slot(domain).get("delay", self._delay_s))
        return max(0.0, delay_s * self._workers)

    def set_floors(self, domain: str, governor: DomainGovernor) -> None:
        """Tell the new *governor* of *domain* what robots.txt asked for."""
        delay_s = self._crawl_delays.get(domain)
        if delay_s is not None:
            governor.set_floor(crawl_delay_s=delay_s)

    def draw_gap(self, domain: str, governor: DomainGovernor) -> None:
        """A request was sent: draw the jittered gap before the next one."""
        delay_s = self.min_delay_s(domain)
        if delay_s:
            jitter = float(self._slot(domain).get("jitter", self._jitter))
            spread = jitter * (2.0 * self._draw() - 1.0)
            governor.set_floor(min_interval_s=max(0.0, delay_s * (1.0 + spread)))

    def note_robots(self, domain: str, parser: RobotParser, agent: str) -> float:
        """Take the Crawl-delay or Request-rate of *domain*'s robots.txt. Returns its seconds, 0 for none."""
        delay_s = _crawl_delay_s(parser, agent) * self._workers
        if delay_s > 0.0:
            self._crawl_delays[domain] = delay_s
        return delay_s


def _crawl_delay_s(parser: RobotParser, agent: str) -> float:
    """The larger of Crawl-delay and what Request-rate comes to; parsers that know neither ask for nothing."""
    asks = getattr(parser, "crawl_delay", None)
    delay_s = float(asks(agent) or 0.0) if asks is not None else 0.0
    rate_of = getattr(getattr(parser, "rp", None), "request_rate", None)
    rate = rate_of(agent) if rate_of is not None else None
    if rate is not None and rate.requests > 0:
        delay_s = max(delay_s, rate.seconds / rate.requests)
    return delay_s
