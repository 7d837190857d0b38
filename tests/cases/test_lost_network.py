"""A lost network costs no page, and dead hosts cost only their own.

Source: scrapy/scrapy#4043 (a machine that lost its network gave up every URL within minutes).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted

from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, letters

if TYPE_CHECKING:
    from collections.abc import Callable

AWAY_S = 8.0


def trouble(site: Site, begin: Callable[[], Any], end: Callable[[], Any]) -> asyncio.Task[None]:
    """Once each host of *site* was asked ten times, *begin*; and *end* it after `AWAY_S`."""

    async def come_and_go() -> None:
        while min(stats.received for stats in site.all_stats()) < 10:
            await asyncio.sleep(0.02)
        begin()
        await asyncio.sleep(AWAY_S)
        end()

    return asyncio.get_running_loop().create_task(come_and_go())


@pytest_twisted.ensureDeferred
async def test_nothing_is_lost_while_the_network_is_away(crawl: Callable[..., Any]) -> None:
    """All three hosts refuse connections for a while, longer than a host alone would be borne with.

    Probes only go out, then all 300 pages.
    """
    with Site(*[Host(latency_s=0.1)] * 3) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(100) for host in range(3)]

        away = trouble(site, site.close, site.listen)
        result = await crawl(ListSpider, {"SLUICE_GIVE_UP_AFTER_S": 4}, urls=urls)
    assert away.done()
    assert result.reason == "finished"
    assert sorted(set(result.crawler.spider.parsed)) == sorted(urls)
    assert letters() == []
    assert result.stats["sluice/outages"] >= 1
    refused = "downloader/exception_type_count/scrapy.exceptions.DownloadConnectionRefusedError"
    assert result.stats.get(refused, 0) <= 24 + 3 * AWAY_S


@pytest_twisted.ensureDeferred
async def test_what_cuts_every_connection_is_a_lost_network(crawl: Callable[..., Any]) -> None:
    """Something on the way accepts for all hosts, and resets: no page spends an attempt on it."""
    reset = tuple(Route(path, (Answer(fault="reset"),)) for path in ("/robots.txt", "*"))
    with Site(*[Host(latency_s=0.1)] * 3) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(60) for host in range(3)]

        def answer(routes: tuple[Route, ...]) -> None:
            for host in range(3):
                site.change(host, routes=routes)

        away = trouble(site, lambda: answer(reset), lambda: answer(()))
        result = await crawl(ListSpider, {"SLUICE_GIVE_UP_AFTER_S": 4}, urls=urls)
    assert away.done()
    assert result.reason == "finished"
    assert sorted(set(result.crawler.spider.parsed)) == sorted(urls)
    assert letters() == []
    assert result.stats["sluice/outages"] >= 1


@pytest_twisted.ensureDeferred
async def test_a_host_that_restarts_costs_its_last_pages_nothing(crawl: Callable[..., Any]) -> None:
    """Its port is shut for longer than three attempts take, and then all pages are there."""
    with Site(Host(latency_s=0.1)) as site:
        urls = site.urls(12)

        away = trouble(site, site.close, site.listen)
        settings = {"SLUICE_RETRY_BASE_S": 0.1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
        result = await crawl(ListSpider, settings, urls=urls)
    assert away.done()
    assert sorted(result.crawler.spider.parsed) == sorted(urls)
    assert letters() == []
    assert result.stats["sluice/outage_retries"] > 3


@pytest_twisted.ensureDeferred
async def test_names_that_do_not_exist_cost_only_themselves(crawl: Callable[..., Any]) -> None:
    """One of three hosts has no address: its URLs are dead letters that say so, the others done."""
    with Site(*[Host(latency_s=0.02)] * 2) as site:
        good = [site.url(f"/page/{n}", host) for n in range(20) for host in range(2)]
        bad = [f"http://nowhere.invalid/page/{n}" for n in range(10)]
        result = await crawl(
            ListSpider,
            {"SLUICE_RETRY_BASE_S": 0.2, "SLUICE_GIVE_UP_AFTER_S": 10, "ROBOTSTXT_OBEY": False},
            urls=[*bad, *good],
        )
    assert result.reason == "finished"
    assert sorted(result.crawler.spider.parsed) == sorted(good)
    rows = letters()
    assert sorted(row["url"] for row in rows) == sorted(bad)
    assert all("CannotResolveHostError" in (row["exception"] or row["detail"]) for row in rows)
    assert {row["domain"] for row in rows} == {"nowhere.invalid"}


@pytest_twisted.ensureDeferred
async def test_a_host_that_resets_costs_only_itself(crawl: Callable[..., Any]) -> None:
    """One host resets every connection; its rows name the exception, the other host is done."""
    reset = Route("/page/*", (Answer(fault="reset"),))
    with Site(Host(latency_s=0.02), Host(routes=(reset,))) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(10) for host in range(2)]
        result = await crawl(
            ListSpider, {"SLUICE_RETRY_BASE_S": 0.2, "SLUICE_GIVE_UP_AFTER_S": 10}, urls=urls
        )
        domain = site.domain(1)
    assert result.reason == "finished"
    assert len(result.crawler.spider.parsed) == 10
    rows = letters()
    assert Counter(row["domain"] for row in rows) == {domain: 10}
    assert all(row["exception"] or "Error" in row["detail"] for row in rows)


@pytest_twisted.ensureDeferred
async def test_dead_pages_at_the_end_are_no_lost_network(crawl: Callable[..., Any]) -> None:
    """What is left are pages that never answer, on two hosts that do: their attempts are spent."""
    reset = Route("/dead/*", (Answer(fault="reset"),))
    with Site(*[Host(latency_s=0.02, routes=(reset,))] * 2) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(2) for host in (0, 1)]
        dead = [site.url(f"/dead/{n}", host) for n in range(2) for host in (0, 1)]
        result = await crawl(
            ListSpider, {"SLUICE_RETRY_BASE_S": 0.5}, urls=[*urls, *dead], timeout_s=40
        )
    assert result.reason == "finished"
    assert len(result.items) == 4
    assert sorted(row["url"] for row in letters()) == sorted(dead)
    assert {row["attempts"] for row in letters()} == {3}
    assert "sluice/outages" not in result.stats


@pytest_twisted.ensureDeferred
async def test_a_job_that_goes_on_while_the_network_is_away_loses_nothing(
    crawl: Callable[..., Any],
) -> None:
    """It remembers who answered: a machine that restarts is often sooner there than its network."""
    settings = {"JOBDIR": "job", "SLUICE_GIVE_UP_AFTER_S": 4, "SLUICE_RETRY_BASE_S": 0.2}
    with Site(*[Host(latency_s=0.05)] * 2) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(15) for host in range(2)]
        first = await crawl(ListSpider, {**settings, "CLOSESPIDER_PAGECOUNT": 10}, urls=urls)
        site.close()

        async def come_back() -> None:
            await asyncio.sleep(AWAY_S)
            site.listen()

        away = asyncio.get_running_loop().create_task(come_back())
        second = await crawl(ListSpider, settings, urls=urls)
    assert away.done()
    assert second.reason == "finished"
    parsed = [*first.crawler.spider.parsed, *second.crawler.spider.parsed]
    assert sorted(set(parsed)) == sorted(urls)
    assert letters() == []
    assert second.stats["sluice/outages"] >= 1


@pytest.mark.parametrize("fast", [False, True])
@pytest_twisted.ensureDeferred
async def test_a_host_to_which_no_route_leads_is_a_failure_of_the_network(
    crawl: Callable[..., Any], fast: bool
) -> None:
    """Whatever name its handler's library has for it: it is counted, and no error of the crawl's."""
    settings = {
        "DNS_RESOLVER": "scrapy.resolver.CachingHostnameResolver",  # knows addresses like this one
        "SLUICE_FAST_HANDLER": fast,
        "SLUICE_RETRY_BASE_S": 0.1,
        "ROBOTSTXT_OBEY": False,
    }
    result = await crawl(ListSpider, settings, urls=["http://[::2]:9/"])
    assert len(letters()) == 1
    assert result.stats["sluice/outcome/overloaded"] == 3
    assert "log_count/ERROR" not in result.stats
