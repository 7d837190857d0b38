"""The crawl wakes up when a delayed request is due, sleeps until then, and does not end meanwhile.

Source: scrapy/scrapy#1618 (an engine that only finished downloads wake).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest_twisted

from tests.sites import Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Later(ListSpider):
    """Asks for every page to be kept back for a while."""

    async def start(self) -> AsyncIterator[Any]:
        self.begun_at = time.time()
        self.begun_cpu_s = time.process_time()
        async for request in super().start():
            yield request


@pytest_twisted.ensureDeferred
async def test_delayed_requests_go_when_they_are_due(crawl: Callable[..., Any]) -> None:
    """Two hosts, everything undue for 1.3 s and nothing in flight: the first goes 1.3 s later."""
    with Site() as first, Site(first=2) as second:
        urls = [*first.urls(20), *second.urls(20)]
        result = await crawl(
            Later, {"ROBOTSTXT_OBEY": False}, urls=urls, meta={"sluice_delay_s": 1.3}
        )
        begun_at = result.crawler.spider.begun_at
        waits = [site.log()[0].at - begun_at for site in (first, second)]
    assert result.reason == "finished"
    assert len(result.items) == 40
    assert all(1.29 <= wait <= 1.7 for wait in waits)


@pytest_twisted.ensureDeferred
async def test_waiting_costs_no_cpu_and_does_not_end_the_crawl(crawl: Callable[..., Any]) -> None:
    """One request seven seconds out and nothing else: over a heartbeat the crawl just sleeps."""
    with Site() as site:
        result = await crawl(
            Later, {"ROBOTSTXT_OBEY": False}, urls=site.urls(1), meta={"sluice_delay_s": 7.0}
        )
        spider = result.crawler.spider
        wait = site.log()[0].at - spider.begun_at
    assert result.reason == "finished"
    assert 6.99 <= wait <= 7.4
    assert time.process_time() - spider.begun_cpu_s < 0.7
