"""Says how the pool fares: lines in the log, stats, and which proxies fare worst.

The rule it keeps: half a pool falls within a moment, and that is one line; that none is healthy is said at once.
"""

from __future__ import annotations

import heapq
import logging
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later

from . import names
from .policy.proxies.member import Health
from .policy.wording import duration

if TYPE_CHECKING:
    from .control import Control
    from .policy.proxies import ProxyPool

logger = logging.getLogger("sluice.proxies")

LINE_S = 1.0
"""How long after a change a line says how many are healthy."""


class PoolWatch:
    """Watches one pool.

    Args:
        control: The crawl's control room.
        pool: What is watched.
        direct: Requests go directly while no proxy is healthy.
    """

    def __init__(self, *, control: Control, pool: ProxyPool, direct: bool) -> None:
        self._control = control
        self._pool = pool
        self._direct = direct
        self._healthy_before: int | None = None
        self._line: Any = None
        self._none_since: float | None = None

    def begin(self) -> None:
        """The pool is filled: all count as healthy."""
        self.count()
        self._healthy_before = len(self._pool)
        self._control.stats.set_value(names.STAT_PROXIES_HEALTHY, len(self._pool))

    def count(self) -> None:
        """The pool is another one than before."""
        self._control.stats.set_value(names.STAT_PROXIES, len(self._pool))
        self._healthy_before = None

    def close(self) -> None:
        """Say nothing more."""
        line, self._line = self._line, None
        if line is not None:
            line.cancel()

    def look(self, now: float) -> None:
        """Say how many are healthy when that has changed, and at once when there are none, or some again."""
        healthy, known = self._pool.healthy, len(self._pool)
        if healthy == self._healthy_before:
            return
        self._control.stats.set_value(names.STAT_PROXIES_HEALTHY, healthy)
        if not healthy and self._none_since is None:
            self._none_since = now
            logger.warning(
                "No healthy proxy: 0 of %d. %s; proxies are tried one request at a time",
                known,
                "Requests go directly" if self._direct else "Nothing is sent until one answers",
            )
        elif healthy and self._none_since is not None:
            logger.info(
                "Proxies answer again after %s: %d of %d",
                duration(now - self._none_since),
                healthy,
                known,
            )
            self._none_since = None
        elif self._line is None:
            self._line = call_later(LINE_S, self._say_health)
        self._healthy_before = healthy

    def _say_health(self) -> None:
        """One line for all that fell or rose within a moment."""
        self._line = None
        if self._none_since is None and not self._control.stopping:
            logger.info("%d of %d proxies are healthy", self._pool.healthy, len(self._pool))

    def worst(self, count: int, now: float) -> list[dict[str, Any]]:
        """The first *count* proxies for whoever looks: the resting, then those that fail most."""
        first = heapq.nsmallest(
            count,
            self._pool,
            key=lambda m: (m.health is Health.HEALTHY, -m.failed / (m.failed + m.answered + 1)),
        )
        return [
            {
                "proxy": member.address.name,
                "state": member.health.value,
                "rests_s": round(max(0.0, member.rest_due - now), 1)
                if member.health is Health.RESTING
                else 0.0,
                "in_flight": member.in_flight,
                "limit": member.limit,
                "answered": member.answered,
                "failed": member.failed,
            }
            for member in first
        ]
