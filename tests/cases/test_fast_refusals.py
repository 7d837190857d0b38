"""Fast refusals slow the crawl down, failures that pass cost nothing, missing pages change nothing.

Source: scrapy/scrapy#6458 (fast 503 answers did not raise the delay at all).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted

from tests.sites import Answer, Host, Route, Site, SlidingWindow

from .tools import ListSpider, letters

if TYPE_CHECKING:
    from collections.abc import Callable

RATE = 20


@pytest_twisted.ensureDeferred
async def test_the_pace_of_a_metered_host_is_found(crawl: Callable[..., Any]) -> None:
    """503 without Retry-After in 5 ms over 20 a second: all pages, and few refusals in the end."""
    refusal = Answer(status=503, body="busy")
    host = Host(
        latency_s=0.005, limit=SlidingWindow(RATE, 1.0), refusal=refusal, refusal_latency_s=0.005
    )
    with Site(host) as site:
        result = await crawl(ListSpider, {"CONCURRENT_REQUESTS": 16}, urls=site.urls(400))
        log = [entry for entry in site.log() if entry.target != "/robots.txt"]
    assert result.reason == "finished"
    assert len({item["url"] for item in result.items}) == 400
    assert letters() == []
    late = log[len(log) // 4 :]
    assert sum(entry.refused for entry in late) / len(late) < 0.10
    rate = sum(not entry.refused for entry in late) / (late[-1].at - late[0].at)
    assert rate >= 0.6 * RATE


@pytest.mark.parametrize("fault", [None, "hang"])
@pytest_twisted.ensureDeferred
async def test_a_storm_is_waited_out(crawl: Callable[..., Any], fault: str | None) -> None:
    """Only failures for eight seconds, then health: few probes, quick recovery, nothing given up."""
    storm = Answer(status=503, fault=fault)
    with Site(Host(latency_s=0.02, storm=storm, storm_s=8.0)) as site:
        result = await crawl(
            ListSpider,
            {"CONCURRENT_REQUESTS": 16, "DOWNLOAD_TIMEOUT": 1},
            urls=site.urls(60),
        )
        log = [entry for entry in site.log() if entry.target != "/robots.txt"]
    assert len({item["url"] for item in result.items}) == 60
    assert letters() == []
    begun_at = log[0].at
    probes = [entry for entry in log if 2.0 <= entry.at - begun_at <= 8.0]
    assert len(probes) <= 6 * 4
    assert log[-1].at - begun_at <= 8.0 + 30.0


@pytest_twisted.ensureDeferred
async def test_missing_pages_do_not_slow_down(crawl: Callable[..., Any]) -> None:
    """300 times 404 take about as long as 300 pages."""
    seconds = {}
    missing = Route("/missing/*", (Answer(status=404),))
    for path in ("/page/{}", "/missing/{}"):
        with Site(Host(latency_s=0.02, routes=(missing,))) as site:
            begun_due = time.monotonic()
            await crawl(ListSpider, urls=site.urls(300, path=path))
            seconds[path] = time.monotonic() - begun_due
    assert seconds["/missing/{}"] <= 1.5 * seconds["/page/{}"] + 2.0
