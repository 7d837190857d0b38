"""How late the event loop is: an extension that a measured crawl is given."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

EVERY_S = 0.01


class LagGauge:
    """Writes ``lag.json`` into the working folder: percentiles from the first page to the end, in milliseconds."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._due = 0.0
        self._timer: Any = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Begin with the first answer, since start-up is not what is asked for."""
        gauge = cls()
        crawler.signals.connect(gauge.begin, signals.response_received)
        crawler.signals.connect(gauge.end, signals.spider_closed)
        return gauge

    def begin(self) -> None:
        """The first answer is here."""
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        self._due = time.monotonic() + EVERY_S
        self._timer = call_later(EVERY_S, self._look)

    def _look(self) -> None:
        self._lags.append(time.monotonic() - self._due)
        self._arm()

    def end(self) -> None:
        """Write it."""
        if self._timer is not None:
            self._timer.cancel()
        lags = sorted(self._lags) or [0.0]
        found = {
            f"p{share}_ms": round(1000 * lags[min(len(lags) - 1, len(lags) * share // 100)], 1)
            for share in (50, 90, 99, 100)
        }
        Path("lag.json").write_text(json.dumps(found), encoding="utf-8")
