"""Every request ends as exactly one thing that can be counted, whatever ends it.

Source: scrapy/scrapy#6990 (requests ended by IgnoreRequest vanish without a signal), and the
identity that the project promises: URLs = parsed + dead letters + filtered + pending.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from extensions.jobreport import job_report
from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, letters, skipped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ROBOTS = "User-agent: *\nDisallow: /private/\n"
ROUTES = (
    Route("/flaky/*", (Answer(status=503), Answer(fault="reset"), Answer())),
    Route("/hang/*", (Answer(fault="hang"),)),
    Route("/stall/*", (Answer(fault="stall", body="x" * 1000),)),
    Route("/reset/*", (Answer(fault="reset"),)),
    Route("/moved/*", (Answer(status=301, headers=(("Location", "/page/moved"),)),)),
    Route("/nowhere/*", (Answer(status=302, headers=(("Location", "mailto:a@example.com"),)),)),
)
OVERRIDES = {
    "SLUICE_RETRY_BASE_S": 0.2,
    "RETRY_TIMES": 2,
    "DOWNLOAD_TIMEOUT": 1,
    "DOWNLOAD_MAXSIZE": 50_000,
    "REDIRECT_MAX_TIMES": 5,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
}


class Ignoring:
    """A downloader middleware that leaves some requests out."""

    def process_request(self, request: Request) -> None:
        if "/ignored/" in request.url:
            raise IgnoreRequest("left out by a rule of the user")


class IgnoringInput:
    """A spider middleware that leaves a page out before its callback."""

    def process_spider_input(self, response: Any) -> None:
        if "/unwanted/" in response.url:
            raise IgnoreRequest("not this page")


class Everything(ListSpider):
    """Starts with `urls`; keeps what the callbacks and errbacks were told."""

    allowed_domains = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Ignoring: 500}}

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            meta = {"dont_retry": True} if "dont_retry" in url else {}
            if "handled" in url:
                meta["handle_httpstatus_list"] = [403]
            yield Request(url, meta=meta)

    def parse(self, response: Any) -> Any:
        if "/raises/" in response.url:
            raise ValueError("a callback that fails")
        yield from super().parse(response)


def nine(site: Site) -> dict[str, str]:
    """One URL for each way to end that the report names."""
    return {
        "redirects": site.url("/redirect/50"),
        "robots": site.url("/private/x"),
        "offsite": "http://example.invalid/x",
        "ignored": site.url("/ignored/x"),
        "too large": site.url("/size/100000"),
        "403": site.url("/status/403"),
        "403 handled": site.url("/status/403?handled"),
        "too long": site.url(f"/page/{'x' * 5000}"),
        "scheme": "ftp://127.0.0.1/x",
        "dont_retry": site.url("/status/503?dont_retry"),
    }


def outcomes(result: Any) -> dict[str, int]:
    """The four sides of the account."""
    stats = result.stats
    return {
        "parsed": len(result.crawler.spider.parsed),
        "dead": sum(row["kind"] == "request" for row in letters()),
        "filtered": sum(skipped(stats).values()),
        "pending": stats.get("sluice/pending_left", 0),
    }


@pytest_twisted.ensureDeferred
async def test_the_ways_to_vanish(crawl: Callable[..., Any]) -> None:
    """Each of them is a dead letter or a counted reason, and nothing is left pending."""
    with Site(Host(robots=ROBOTS, routes=ROUTES)) as site:
        urls = nine(site)
        result = await crawl(Everything, OVERRIDES, urls=list(urls.values()))
    assert result.reason == "finished"
    account = outcomes(result)
    dead = {row["url"]: row["reason"] for row in letters()}
    assert account["pending"] == 0
    assert sum(account.values()) == len(urls), (account, dead, skipped(result.stats))
    assert dead[urls["403"]] == "http 403"
    assert dead[urls["dont_retry"]] == "http 503"
    assert [reason for url, reason in dead.items() if "/redirect/" in url] == ["redirects"]
    assert urls["robots"] not in dead
    assert result.crawler.spider.parsed.count(urls["403 handled"]) == 1
    assert skipped(result.stats)["robots.txt"] == 1


@pytest_twisted.ensureDeferred
async def test_a_page_that_a_spider_middleware_ignores_is_skipped(
    crawl: Callable[..., Any],
) -> None:
    """It was meant: no loss, and no complaint about its size."""
    with Site() as site:
        urls = [site.url("/unwanted/1"), site.url("/page/1")]
        middlewares = {"SPIDER_MIDDLEWARES": {IgnoringInput: 500}}
        result = await crawl(Everything, {**OVERRIDES, **middlewares}, urls=urls)
    assert result.reason == "finished"
    assert result.stats["sluice/parsed"] == 1
    assert skipped(result.stats) == {"IgnoreRequest": 1}
    assert result.stats["sluice/exit_code"] == 0


@pytest_twisted.ensureDeferred
async def test_the_account_of_a_crawl_with_all_kinds_of_failures(
    crawl: Callable[..., Any],
) -> None:
    """URLs = parsed + dead letters + filtered + pending."""
    kinds = ("page", "flaky", "raises", "private", "ignored")
    host = Host(latency_s=0.01, robots=ROBOTS, routes=ROUTES)
    with Site(host, host, host, host) as site:
        urls = [site.url(f"/{kind}/{n}") for n in range(12) for kind in kinds]
        for number, fault in enumerate(("hang", "stall", "reset"), start=1):
            urls += [site.url(f"/page/{n}", number) for n in range(6)]
            urls += [site.url(f"/{fault}/{n}", number) for n in range(6)]
        urls += [site.url(f"/status/{status}") for status in (400, 403, 404, 410, 500, 502, 504)]
        urls += nine(site).values()
        urls += [site.url("/page/0"), site.url("/page/1")]
        urls += [site.url(f"/nowhere/{n}") for n in range(3)]
        result = await crawl(
            Everything,
            {**OVERRIDES, "SLUICE_GIVE_UP_AFTER_S": 8},
            timeout_s=90.0,
            urls=list(dict.fromkeys(urls)),
        )
    account = outcomes(result)
    story = (account, skipped(result.stats), result.messages())
    assert result.reason == "finished"
    assert sum(account.values()) == len(set(urls)), story
    assert account["parsed"] >= 12 + 18
    assert account["dead"] >= 12 + 18
    assert account["pending"] == 0


@pytest_twisted.ensureDeferred
async def test_the_account_of_a_crawl_that_is_stopped(crawl: Callable[..., Any]) -> None:
    """Stopped half-way with JOBDIR, the rest is pending, and the next run finishes it."""
    settings = {**OVERRIDES, "JOBDIR": "job"}
    with Site(Host(latency_s=0.02, routes=ROUTES)) as site:
        urls = [*site.urls(300), *site.urls(20, path="/flaky/{}")]
        first = await crawl(Everything, {**settings, "CLOSESPIDER_PAGECOUNT": 100}, urls=urls)
        second = await crawl(Everything, settings, urls=urls)
        hits = site.stats().hits
    parsed = [*first.crawler.spider.parsed, *second.crawler.spider.parsed]
    assert first.reason == "closespider_pagecount"
    assert second.reason == "finished"
    assert sorted(parsed) == sorted(urls)
    assert letters() == []
    pages = {url: count for url, count in hits.items() if url.startswith("/page/")}
    assert set(pages.values()) == {1}


@pytest_twisted.ensureDeferred
async def test_the_results_of_a_job_are_all_counted_when_it_goes_on(
    crawl: Callable[..., Any],
) -> None:
    """The totals that a commit keeps hold the results of that very commit."""
    settings = {"JOBDIR": "job", "SLUICE_FLUSH_INTERVAL_S": 0.5}
    with Site() as site:
        urls = site.urls(30)
        first = await crawl(Everything, {**settings, "CLOSESPIDER_PAGECOUNT": 10}, urls=urls)
        second = await crawl(Everything, settings, urls=urls)
    items = [len(run.items) for run in (first, second)]
    assert 0 < items[0] < 30
    assert job_report(Path("job"))["status"]["results_written"] == sum(items) == 30
