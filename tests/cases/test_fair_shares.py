"""A slow, limited or refusing domain takes nothing from the others.

Source: scrapy/scrapy#7293 and #6982 (one slow slot soaked up all CONCURRENT_REQUESTS).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy.exceptions import CloseSpider

from tests.sites import Answer, Bucket, Host, Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import Callable

FAST = Host(latency_s=0.02)


class UntilFast(ListSpider):
    """Ends when the 300 pages of the fast hosts are there."""

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        if not response.url.startswith(self.slow):
            self.fast = getattr(self, "fast", 0) + 1
            if self.fast == 300:
                raise CloseSpider("fast hosts done")


async def seconds_for_fast(crawl: Callable[..., Any], slow: Host, **settings: Any) -> Any:
    """Seconds with and without 500 URLs of a slow host first, and what the slow host saw."""
    overrides = {"CONCURRENT_REQUESTS": 8, "ROBOTSTXT_OBEY": False, **settings}
    seconds = []
    for with_slow in (False, True):
        with Site(slow, FAST, FAST, FAST) as site:
            fast = [site.url(f"/page/{n}", host) for n in range(100) for host in (1, 2, 3)]
            if "DOWNLOAD_SLOTS" in settings:
                overrides["DOWNLOAD_SLOTS"] = {site.domain(): settings["DOWNLOAD_SLOTS"]}
            begun_due = time.monotonic()
            result = await crawl(
                UntilFast,
                overrides,
                urls=[*(site.urls(500) if with_slow else ()), *fast],
                slow=site.url(""),
            )
            seconds.append(time.monotonic() - begun_due)
            stats = site.all_stats()
        assert result.reason == "fast hosts done"
        assert [host.received for host in stats[1:]] == [100, 100, 100]
    return *seconds, stats[0]


@pytest_twisted.ensureDeferred
async def test_a_limited_slow_domain_holds_one_place(crawl: Callable[..., Any]) -> None:
    """One in flight for a host of 1 s an answer; the others go on in the other seven places."""
    alone, among, slow = await seconds_for_fast(
        crawl,
        Host(latency_s=1.0),
        DOWNLOAD_SLOTS={"concurrency": 1, "delay": 0.0, "randomize_delay": False},
    )
    assert slow.max_in_flight == 1
    assert among <= 1.5 * alone + 2.5


@pytest_twisted.ensureDeferred
async def test_a_domain_in_a_cool_down_holds_no_place(crawl: Callable[..., Any]) -> None:
    """A host that asks for a minute's silence gets it, and the others do not notice."""
    refusal = Answer(status=429, headers=(("Retry-After", "60"),))
    host = Host(limit=Bucket(rate=0.001, burst=1), refusal=refusal)
    alone, among, slow = await seconds_for_fast(crawl, host)
    assert slow.received <= 1 + 16
    assert among <= 1.5 * alone + 2.0


@pytest_twisted.ensureDeferred
async def test_a_thousand_domains_of_one_url(crawl: Callable[..., Any]) -> None:
    """Each is fetched once; names need no DNS, since the site is their proxy."""
    with Site() as site:
        urls = [f"http://host{number}.test/" for number in range(1000)]
        result = await crawl(
            ListSpider,
            {"ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS": 32},
            urls=urls,
            meta={"proxy": site.url("")},
        )
        hits = site.stats().hits
    assert result.reason == "finished"
    assert hits == dict.fromkeys(urls, 1)
