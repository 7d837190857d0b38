"""A `start()` that fails half-way is seen to have failed, and what it gave is crawled.

Source: scrapy/scrapy#4182 (one bad URL ended the source, and the run ended as "finished").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.exceptions import CloseSpider
from twisted.internet.threads import deferToThread

from tests.conftest import ROOT
from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, results

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

FLAKY = Route("/flaky/*", (Answer(status=503), Answer()))


class Broken(ListSpider):
    """Five good seeds, one that is no URL, five more good ones."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)
        yield Request("no-scheme")
        yield Request(self.urls[0] + "?more")


@pytest_twisted.ensureDeferred
async def test_a_bad_seed_is_an_error_that_shows(crawl: Callable[..., Any]) -> None:
    """What was scheduled is done first, with its retries; the finish says that `start()` failed."""
    with Site(Host(routes=(FLAKY,))) as site:
        urls = [*site.urls(3), *site.urls(2, path="/flaky/{}")]
        result = await crawl(Broken, {"SLUICE_RETRY_BASE_S": 1}, urls=urls)
    assert sorted(result.crawler.spider.parsed) == sorted(urls)
    assert any("no-scheme" in message or "start" in message for message in result.messages())
    assert result.stats.get("log_count/ERROR", 0) >= 1
    assert result.reason != "finished"


class WithItems(ListSpider):
    """Items and requests in turn, then a reason to close."""

    async def start(self) -> AsyncIterator[Any]:
        yield {"url": "from start"}
        yield Request(self.urls[0])
        yield {"url": "from start, too"}
        for url in self.urls[1:]:
            yield Request(url)
        if self.end:
            raise CloseSpider(self.end)


@pytest.mark.parametrize("end", ["", "had enough"])
@pytest_twisted.ensureDeferred
async def test_start_may_give_items_and_close(
    crawl: Callable[..., Any], site: Site, end: str
) -> None:
    """Items of `start()` reach the results, and the reason of CloseSpider is kept."""
    result = await crawl(WithItems, urls=site.urls(3), end=end)
    assert result.reason == (end or "finished")
    assert next(row["url"] for row in results()) == "from start"
    if not end:
        assert len(results()) == 5


class Odd(ListSpider):
    """Gives what is neither an item nor a request."""

    async def start(self) -> AsyncIterator[Any]:
        yield None
        yield "text"
        for url in self.urls:
            yield Request(url)


@pytest_twisted.ensureDeferred
async def test_what_is_neither_item_nor_request_is_logged(
    crawl: Callable[..., Any], site: Site
) -> None:
    """None and text in between do not keep the seeds after them from being crawled."""
    result = await crawl(Odd, urls=site.urls(3))
    assert len(result.crawler.spider.parsed) == 3
    assert any("str" in message or "text" in message for message in result.messages())


BROKEN = """
from scrapy import Request, Spider


class Broken(Spider):
    name = "broken"
    base = ""

    async def start(self):
        for number in range(3):
            yield Request(f"{self.base}/page/{number}")
        raise RuntimeError("the source broke")

    def parse(self, response):
        yield {"url": response.url}
"""


@pytest_twisted.ensureDeferred
async def test_a_broken_source_has_an_exit_code(
    scrapy_cli: Callable[..., Any], tmp_path: Any, site: Site
) -> None:
    """The command ends with a code other than 0, and the pages that it had are written."""
    (tmp_path / "sources.py").write_text(BROKEN, encoding="utf-8")

    def run() -> Any:
        words = ["crawl", "broken", "-a", f"base={site.url('')}", "-s", "SPIDER_MODULES=sources"]
        return scrapy_cli(*words, PYTHONPATH=f"{tmp_path}:{ROOT}")

    done = await deferToThread(run)
    assert done.code != 0
    assert "the source broke" in done.err
    assert len(results(tmp_path)) == 3
