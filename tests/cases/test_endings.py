"""A crawl ends when its work is done: never before, never not at all.

Source: scrapy/scrapy#2709 (a spider that closed although its idle handler had just found work).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider, IgnoreRequest

from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, letters

if TYPE_CHECKING:
    from collections.abc import Callable

ONCE = Route("/once", (Answer(status=503), Answer()))
NEVER = Route("/never", (Answer(status=503),))


@pytest_twisted.ensureDeferred
async def test_a_retry_is_waited_for(crawl: Callable[..., Any]) -> None:
    """The only work left is a retry that is due after more than a heartbeat."""
    with Site(Host(routes=(ONCE,))) as site:
        urls = [site.url("/once")]
        result = await crawl(ListSpider, urls=urls, meta={"sluice_delay_s": 5.5})
        assert site.stats().hits["/once"] == 2
    assert result.reason == "finished"
    assert len(result.items) == 1


@pytest_twisted.ensureDeferred
async def test_a_host_that_never_recovers_ends_in_the_dead_letters(
    crawl: Callable[..., Any],
) -> None:
    """When the attempts are spent the request is a dead letter and the crawl ends."""
    with Site(Host(routes=(NEVER,))) as site:
        result = await crawl(ListSpider, {"SLUICE_RETRY_BASE_S": 0.2}, urls=[site.url("/never")])
        assert site.stats().hits["/never"] == 3
    assert result.reason == "finished"
    (letter,) = letters()
    assert letter["reason"] == "http 503"
    assert letter["attempts"] == 3


class IdleSpider(ListSpider):
    """Has an idle handler, and keeps the time of each idle signal."""

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        spider.idles = []
        return spider


class Idle(IdleSpider):
    """An idle handler gives three duplicates, and at the next idle one new URL."""

    def idle(self) -> None:
        self.idles.append(time.monotonic())
        if len(self.idles) == 1:
            for _ in range(3):
                self.crawler.engine.crawl(Request(self.urls[0]))
            raise DontCloseSpider
        if len(self.idles) == 2:
            self.crawler.engine.crawl(Request(self.more))
            raise DontCloseSpider


@pytest_twisted.ensureDeferred
async def test_an_idle_handler_is_asked_again(crawl: Callable[..., Any], site: Site) -> None:
    """Duplicates at the first idle do not end the crawl; the new URL of the second is fetched."""
    result = await crawl(Idle, urls=site.urls(2), more=site.url("/more"))
    assert result.reason == "finished"
    assert site.stats().hits["/more"] == 1
    assert len(result.items) == 3


class Waiting(IdleSpider):
    """Keeps the crawl open for three idle signals."""

    def idle(self) -> None:
        self.idles.append(time.monotonic())
        if len(self.idles) < 4:
            raise DontCloseSpider


@pytest_twisted.ensureDeferred
async def test_an_open_end_idles_at_the_normal_pace(crawl: Callable[..., Any], site: Site) -> None:
    """With DontCloseSpider and an empty queue the signal comes with the heartbeat, not in a loop."""
    result = await crawl(Waiting, urls=site.urls(2))
    idles = result.crawler.spider.idles
    assert result.reason == "finished"
    assert len(idles) == 4
    assert idles[-1] - idles[0] >= 2.0


class Refusing:
    """A downloader middleware that ignores the last request."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/page/1"):
            raise IgnoreRequest("not this one")


@pytest_twisted.ensureDeferred
async def test_an_ignored_last_request_ends_the_crawl(
    crawl: Callable[..., Any], site: Site
) -> None:
    """The last request is dropped on its way out; the crawl ends within a heartbeat."""
    begun_due = time.monotonic()
    result = await crawl(ListSpider, {"DOWNLOADER_MIDDLEWARES": {Refusing: 500}}, urls=site.urls(2))
    assert result.reason == "finished"
    assert time.monotonic() - begun_due < 8.0
    assert len(result.items) == 1
