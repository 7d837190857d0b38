"""A request can wait for its time without holding up anything else.

Source: scrapy/scrapy#802 (there is no "not before" in Scrapy; workarounds block the slot).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request

from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import Callable

FLAKY = Route("/flaky/*", (Answer(status=503), Answer()))


@pytest_twisted.ensureDeferred
async def test_pages_do_not_wait_for_a_retry(crawl: Callable[..., Any]) -> None:
    """Page 1 fails at first; its retry comes later, the 49 others are long done by then."""
    with Site(Host(latency_s=0.02, routes=(FLAKY,))) as site:
        urls = [site.url("/flaky/1"), *site.urls(49)]
        result = await crawl(ListSpider, {"SLUICE_RETRY_BASE_S": 8}, urls=urls)
        log = [entry for entry in site.log() if entry.target != "/robots.txt"]
    spider = result.crawler.spider
    assert len(spider.parsed) == 50
    assert [entry.target for entry in log].count("/flaky/1") == 2
    pages = [entry.at for entry in log if entry.target.startswith("/page/")]
    assert max(pages) - log[0].at < 4.0
    assert result.stats["retry/count"] == 1


class Again(ListSpider):
    """The callback asks for each page once more, three seconds later; the loop's lag is measured."""

    async def start(self) -> Any:
        self.lags: list[float] = []
        self.watch = asyncio.ensure_future(self.measure())
        async for request in super().start():
            yield request

    async def measure(self) -> None:
        while True:
            due = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.lags.append(time.monotonic() - due)

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        if not response.meta.get("again"):
            yield Request(
                response.url, dont_filter=True, meta={"again": True, "sluice_delay_s": self.delay_s}
            )

    def closed(self, reason: str) -> None:
        self.watch.cancel()


@pytest_twisted.ensureDeferred
async def test_two_hundred_of_one_time_are_no_burst(crawl: Callable[..., Any]) -> None:
    """200 requests due together go within the domain's concurrency, and not before their time."""
    with Site(Host(latency_s=0.02)) as site:
        result = await crawl(
            Again,
            {"CONCURRENT_REQUESTS_PER_DOMAIN": 8, "ROBOTSTXT_OBEY": False},
            urls=site.urls(200),
            delay_s=3.0,
        )
        log, stats = site.log(), site.stats()
    first: dict[str, float] = {}
    waits = [entry.at - first.setdefault(entry.target, entry.at) for entry in log]
    second = [wait for wait in waits if wait]
    assert len(second) == 200
    assert min(second) >= 2.95
    assert stats.max_in_flight <= 8
    lags = sorted(result.crawler.spider.lags)
    assert lags[int(len(lags) * 0.95)] < 0.05


class Spread(ListSpider):
    """Each page at a time of its own, a few milliseconds after the one before."""

    async def start(self) -> Any:
        for number, url in enumerate(self.urls):
            yield Request(url, meta={"sluice_delay_s": 0.5 + 0.004 * (number % 100)})


@pytest_twisted.ensureDeferred
async def test_what_waits_partly_on_disk_goes_once(crawl: Callable[..., Any]) -> None:
    """More than memory may hold come due one after the other, while the books are flushed all the time."""
    with Site() as site:
        urls = site.urls(300)
        settings = {
            "JOBDIR": "job",
            "SLUICE_MEMORY_WINDOW": 20,
            "SLUICE_FLUSH_INTERVAL_S": 0.01,
        }
        result = await crawl(Spread, settings, urls=urls)
        hits = {target: n for target, n in site.stats().hits.items() if target != "/robots.txt"}
    assert result.reason == "finished"
    assert sorted(result.crawler.spider.parsed) == sorted(urls)
    assert set(hits.values()) == {1}
