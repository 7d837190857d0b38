"""A page with very many links is crawled whole, without a deadlock and without holding them all.

Source: scrapy/scrapy#5330 (one CSV file made 200,000 requests and a gigabyte).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.spiders import CSVFeedSpider
from scrapy.spiders import SitemapSpider as ScrapySitemapSpider

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sites import Site

FAST = {"CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32}
WINDOW = 100


class Feed(CSVFeedSpider):
    """Follows each row of a CSV file."""

    name = "feed"

    def parse_row(self, response: Any, row: dict[str, str]) -> Any:
        return response.follow(row["url"], self.parse_page)

    def parse_page(self, response: Any) -> Any:
        yield {"url": response.url}


class Map(ScrapySitemapSpider):
    """Scrapy's own spider over an index of gzipped sitemaps."""

    name = "map"

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}


@pytest.mark.parametrize(
    ("spider", "argument", "path"),
    [
        (Feed, "start_urls", "/csv/2000"),
        (Map, "sitemap_urls", "/sitemaps/5/400/index.xml"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_list_of_2000_is_crawled_whole(
    crawl: Callable[..., Any], site: Site, spider: Any, argument: str, path: str
) -> None:
    """With a memory window of 100 every URL is fetched once, and the rest waited on disk."""
    overrides = {**FAST, "SLUICE_MEMORY_WINDOW": WINDOW, "SLUICE_MAX_PENDING": WINDOW}
    result = await crawl(spider, overrides, **{argument: [site.url(path)]})
    hits = site.stats().hits
    assert result.reason == "finished"
    assert {url for url in hits if url.startswith("/page/")} == {f"/page/{n}" for n in range(2000)}
    assert all(count == 1 for count in hits.values())
    assert result.stats["sluice/spilled"] > 50  # how many depends on who is faster


class Many(ListSpider):
    """Five callbacks with 600 links each at once, in the form that `form` names."""

    def parse(self, response: Any) -> Any:
        return getattr(self, self.form)(self._requests(response))

    def _requests(self, response: Any) -> list[Request]:
        first = 600 * int(response.url.rpartition("/")[2])
        base = response.urljoin("/page/")
        return [Request(f"{base}{n}", self.parse_page) for n in range(first, first + 600)]

    def sync(self, requests: list[Request]) -> Any:
        yield from requests

    async def asynchronous(self, requests: list[Request]) -> Any:
        for request in requests:
            yield request

    def at_once(self, requests: list[Request]) -> Any:
        return requests

    def parse_page(self, response: Any) -> Any:
        self.parsed.append(response.url)


@pytest.mark.parametrize("form", ["sync", "asynchronous", "at_once"])
@pytest_twisted.ensureDeferred
async def test_callbacks_over_the_window_do_not_deadlock(
    crawl: Callable[..., Any], site: Site, form: str
) -> None:
    """Five pages with 600 links each, a window of 100: all 3,000 are fetched once."""
    overrides = {**FAST, "SLUICE_MEMORY_WINDOW": WINDOW, "SLUICE_MAX_PENDING": WINDOW}
    urls = site.urls(5, path="/start/{}")
    result = await crawl(Many, overrides, urls=urls, form=form)
    assert result.reason == "finished"
    assert sorted(set(result.crawler.spider.parsed)) == sorted(site.urls(3000))
    assert len(result.crawler.spider.parsed) == 3000
