"""What is no `Exception` ends its request, item or start(), by name; nothing hangs or goes without a word."""

from __future__ import annotations

import asyncio

import pytest
import scrapy
from pytest_twisted import ensureDeferred
from scrapy.exceptions import DropItem

from extensions.containment import contained


class Pages(scrapy.Spider):
    name = "pages"
    strange: type[BaseException] = asyncio.CancelledError

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site

    async def start(self):
        for index in range(4):
            yield scrapy.Request(self.site.url(f"/page/{index}"), errback=self.errback)

    def raise_at(self, url):
        if url.endswith("/2"):
            raise self.strange

    def parse(self, response):
        yield {"url": response.url}

    def errback(self, failure):
        raise failure.value


class InGenerator(Pages):
    def parse(self, response):
        yield {"url": response.url}
        self.raise_at(response.url)


class InAsyncGenerator(Pages):
    async def parse(self, response):
        yield {"url": response.url}
        self.raise_at(response.url)


class InFunction(Pages):
    def parse(self, response):
        self.raise_at(response.url)
        return {"url": response.url}


class InCoroutine(Pages):
    async def parse(self, response):
        await asyncio.sleep(0)
        self.raise_at(response.url)
        return {"url": response.url}


class InErrback(Pages):
    async def start(self):
        yield scrapy.Request(self.site.url("/status/404?2"), errback=self.errback)
        yield scrapy.Request(self.site.url("/page/0"))
        yield scrapy.Request(self.site.url("/page/1"))
        yield scrapy.Request(self.site.url("/page/3"))

    def errback(self, failure):
        yield {"url": "from the errback"}
        raise self.strange


class InStart(Pages):
    async def start(self):
        async for request in super().start():
            self.raise_at(request.url)
            yield request


class Raises:
    """A pipeline, a downloader middleware and a download handler that raise it for page 2."""

    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)


class RaisingPipeline(Raises):
    async def process_item(self, item):
        self.crawler.spider.raise_at(item["url"])
        return item


class RaisingMiddleware(Raises):
    async def process_request(self, request):
        self.crawler.spider.raise_at(request.url)


@pytest.mark.parametrize(
    ("spider", "strange"),
    [
        (InGenerator, GeneratorExit),
        (InAsyncGenerator, asyncio.CancelledError),
        (InFunction, GeneratorExit),
        (InFunction, asyncio.CancelledError),
        (InCoroutine, asyncio.CancelledError),
    ],
)
@ensureDeferred
async def test_a_callback_that_raises_it_is_a_dead_letter(crawl, site, spider, strange):
    done = await crawl(type("Case", (spider,), {"strange": strange}), {}, timeout_s=40, site=site)
    assert done.reason == "finished"
    assert done.stats["sluice/parsed"] == 3
    assert done.stats["sluice/dead_letters/callback error"] == 1
    assert done.stats["sluice/exit_code"] == 3


@pytest.mark.parametrize("spider", [InGenerator, InAsyncGenerator, InFunction])
@ensureDeferred
async def test_a_callback_that_exits_asks_for_the_end_of_the_crawl(crawl, site, spider):
    done = await crawl(
        type("Case", (spider,), {"strange": SystemExit}), {}, timeout_s=40, site=site
    )
    assert (done.reason, done.stats["sluice/exit_code"]) == ("sys.exit", 4)


EXITS = """
import sys, scrapy
class Exits(scrapy.Spider):
    name = "exits"
    async def start(self):
        for n in range(50):
            yield scrapy.Request(f"{self.base}/page/{n}")
    async def parse(self, response):
        if response.url.endswith("/20"):
            sys.exit(0)
        return {"url": response.url, "status": 200}
"""


def test_a_coroutine_that_exits_ends_the_process_and_the_job_goes_on(site, scrapy_cli, tmp_path):
    spider = tmp_path / "exits.py"
    spider.write_text(EXITS)
    arguments = ("-a", f"base={site.url('')}", "-s", "JOBDIR=job")
    done = scrapy_cli("runspider", "exits.py", *arguments, timeout_s=60)
    assert done.code == 4, done.err
    assert "sys.exit" in done.err
    spider.write_text(EXITS.replace("sys.exit(0)", "pass"))
    done = scrapy_cli("runspider", "exits.py", *arguments, timeout_s=60)
    assert done.code == 0, done.err
    lines = (tmp_path / "results" / "exits.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 50


@ensureDeferred
async def test_an_errback_that_raises_it_ends(crawl, site):
    done = await crawl(InErrback, {}, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/parsed"]) == ("finished", 3)
    assert done.stats["sluice/dead_letters"] == 1


@ensureDeferred
async def test_a_start_that_raises_it_is_no_complete_crawl(crawl, site):
    done = await crawl(InStart, {}, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/exit_code"]) == ("start_error", 1)
    assert done.stats["sluice/parsed"] == 2


@ensureDeferred
async def test_an_item_whose_pipeline_raises_it_is_a_dead_letter(crawl, site):
    settings = {"ITEM_PIPELINES": {RaisingPipeline: 300}}
    done = await crawl(Pages, settings, timeout_s=40, site=site)
    assert done.stats["sluice/dead_letters/item error"] == 1
    assert done.stats["item_scraped_count"] == 3
    assert done.stats["sluice/exit_code"] == 3


@ensureDeferred
async def test_a_middleware_that_raises_it_ends_its_request(crawl, site):
    settings = {"DOWNLOADER_MIDDLEWARES": {RaisingMiddleware: 300}}
    done = await crawl(Pages, settings, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/parsed"]) == ("finished", 3)
    assert done.stats["sluice/dead_letters/Escaped"] == 1


def test_dropping_is_no_escape():
    dropped = DropItem("on purpose")
    assert contained(dropped) is dropped
