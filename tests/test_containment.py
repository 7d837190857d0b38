"""What is no `Exception` ends its request, item or start(), by name; nothing hangs or goes without a word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import scrapy
from pytest_twisted import ensureDeferred
from scrapy.exceptions import DropItem
from twisted.internet.defer import Deferred

from extensions.containment import Escaped, contained


class StrangeError(BaseException):
    """Of a library that thinks much of itself."""


STRANGE = [GeneratorExit, asyncio.CancelledError, StrangeError]
EXITS = {SystemExit: "sys.exit", KeyboardInterrupt: "KeyboardInterrupt"}


class Pages(scrapy.Spider):
    name = "pages"
    strange: type[BaseException] = asyncio.CancelledError
    where = ""

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
        if self.where == "process_spider_exception" and response.url.endswith("/2"):
            raise ValueError

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


class InCoroutineErrback(InErrback):
    async def errback(self, failure):
        await asyncio.sleep(0)
        raise self.strange


class InAsyncGeneratorErrback(InErrback):
    async def errback(self, failure):
        yield {"url": "from the errback"}
        raise self.strange


class InStart(Pages):
    async def start(self):
        async for request in super().start():
            self.raise_at(request.url)
            yield request


CALLBACKS = [InGenerator, InAsyncGenerator, InFunction, InCoroutine]
ERRBACKS = [InErrback, InCoroutineErrback, InAsyncGeneratorErrback]


class Component:
    """A part of a crawl that raises it for page 2, at the place that the spider names."""

    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def raise_at(self, where, url):
        if self.crawler.spider.where == where:
            self.crawler.spider.raise_at(url)


class RaisingPipeline(Component):
    def process_item(self, item):
        self.raise_at("pipeline", item["url"])
        return item


class RaisingCoroutinePipeline(Component):
    async def process_item(self, item):
        await asyncio.sleep(0)
        self.raise_at("coroutine pipeline", item["url"])
        return item


class RaisingMiddleware(Component):
    async def process_request(self, request):
        self.raise_at("process_request", request.url)

    async def process_response(self, request, response):
        await asyncio.sleep(0)
        self.raise_at("process_response", request.url)
        return response


class RaisingSpiderMiddleware(Component):
    def process_spider_input(self, response):
        self.raise_at("process_spider_input", response.url)

    async def process_spider_output(self, response, result):
        async for output in result:
            yield output
        self.raise_at("process_spider_output", response.url)

    def process_spider_exception(self, response, exception):
        self.raise_at("process_spider_exception", response.url)


PIPELINES = ["pipeline", "coroutine pipeline"]
MIDDLEWARES = [
    "process_request",
    "process_response",
    "process_spider_input",
    "process_spider_output",
    "process_spider_exception",
]
COMPONENTS = {
    "ITEM_PIPELINES": {RaisingPipeline: 300, RaisingCoroutinePipeline: 301},
    "DOWNLOADER_MIDDLEWARES": {RaisingMiddleware: 300},
    "SPIDER_MIDDLEWARES": {RaisingSpiderMiddleware: 300},
}


def case(spider=Pages, **attributes):
    return type("Case", (spider,), attributes)


def told(done):
    """What the log says, with the errors that go with it."""
    return "\n".join(f"{line.getMessage()} {(line.exc_info or ['', ''])[1]}" for line in done.logs)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("spider", CALLBACKS)
@ensureDeferred
async def test_a_callback_that_raises_it_is_a_dead_letter(crawl, site, spider, strange):
    done = await crawl(case(spider, strange=strange), {}, timeout_s=40, site=site)
    assert done.reason == "finished"
    assert done.stats["sluice/parsed"] == 3
    assert done.stats["sluice/dead_letters/callback error"] == 1
    assert done.stats["sluice/exit_code"] == 3
    assert f"raised {strange.__name__}" in told(done)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("spider", ERRBACKS)
@ensureDeferred
async def test_an_errback_that_raises_it_ends(crawl, site, spider, strange):
    done = await crawl(case(spider, strange=strange), {}, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/parsed"]) == ("finished", 3)
    assert done.stats["sluice/dead_letters"] == 1
    assert f"raised {strange.__name__}" in told(done)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("where", PIPELINES)
@ensureDeferred
async def test_an_item_whose_pipeline_raises_it_is_a_dead_letter(crawl, site, where, strange):
    spider = case(where=where, strange=strange)
    done = await crawl(spider, COMPONENTS, timeout_s=40, site=site)
    assert done.stats["sluice/dead_letters/item error"] == 1
    assert done.stats["item_scraped_count"] == 3
    assert done.stats["sluice/exit_code"] == 3


@pytest.mark.parametrize(
    ("where", "strange"),
    [*((where, GeneratorExit) for where in MIDDLEWARES), ("process_request", StrangeError)],
)
@ensureDeferred
async def test_a_middleware_that_raises_it_ends_its_request(crawl, site, where, strange):
    spider = case(where=where, strange=strange)
    done = await crawl(spider, COMPONENTS, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/parsed"]) == ("finished", 3)
    assert done.stats["sluice/dead_letters"] == 1
    assert f"raised {strange.__name__}" in told(done)


@pytest.mark.parametrize(
    ("spider", "strange"),
    [
        *((case(spider), SystemExit) for spider in CALLBACKS),
        (InCoroutine, KeyboardInterrupt),
        *((case(where=where), SystemExit) for where in (*PIPELINES, *MIDDLEWARES)),
        (case(where="pipeline"), KeyboardInterrupt),
    ],
    ids=lambda value: getattr(value, "where", "") or value.__name__,
)
@ensureDeferred
async def test_who_exits_ends_the_crawl_and_the_page_stays_pending(crawl, site, spider, strange):
    settings = {**COMPONENTS, "JOBDIR": "job", "CONCURRENT_REQUESTS": 1}
    done = await crawl(case(spider, strange=strange), settings, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/exit_code"]) == (EXITS[strange], 4)
    assert "which stays pending" in told(done)
    assert "sluice/dead_letters" not in done.stats
    again = await crawl(Pages, settings, timeout_s=40, site=site)
    assert done.stats.get("sluice/parsed", 0) + again.stats["sluice/parsed"] == 4
    assert len(set(Path("results/pages.jsonl").read_text().splitlines())) == 4


@pytest.mark.parametrize("spider", ERRBACKS)
@ensureDeferred
async def test_an_errback_that_exits_ends_the_crawl_and_its_page_stays_pending(crawl, site, spider):
    settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1}
    done = await crawl(case(spider, strange=SystemExit), settings, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/exit_code"]) == ("sys.exit", 4)
    assert "sluice/dead_letters" not in done.stats
    again = await crawl(Pages, settings, timeout_s=40, site=site)
    assert again.stats["sluice/dead_letters/http 404"] == 1


@pytest.mark.parametrize("strange", STRANGE)
@ensureDeferred
async def test_a_start_that_raises_it_is_no_complete_crawl(crawl, site, strange):
    done = await crawl(case(InStart, strange=strange), {}, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/exit_code"]) == ("start_error", 1)
    assert done.stats["sluice/parsed"] == 2


@pytest.mark.parametrize(("strange", "reason"), EXITS.items())
@ensureDeferred
async def test_a_start_that_exits_ends_the_crawl(crawl, site, strange, reason):
    done = await crawl(case(InStart, strange=strange), {}, timeout_s=40, site=site)
    assert (done.reason, done.stats["sluice/exit_code"]) == (reason, 4)


IN_A_TASK = """
import asyncio, scrapy
class Exits(scrapy.Spider):
    name = "exits"
    async def start(self):
        for n in range(50):
            yield scrapy.Request(f"{self.base}/page/{n}")
    async def parse(self, response):
        if response.url.endswith("/20"):
            await asyncio.create_task(self.leave())
        return {"url": response.url, "status": 200}
    async def leave(self):
        raise STRANGE
"""


@pytest.mark.parametrize("strange", ["SystemExit", "KeyboardInterrupt"])
def test_a_task_that_exits_ends_the_process_and_the_job_goes_on(
    site, scrapy_cli, tmp_path, strange
):
    spider = tmp_path / "exits.py"
    spider.write_text(IN_A_TASK.replace("STRANGE", strange))
    arguments = ("-a", f"base={site.url('')}", "-s", "JOBDIR=job")
    done = scrapy_cli("runspider", "exits.py", *arguments, timeout_s=60)
    assert done.code == 4, done.err
    assert "CloseSpider" in done.err
    spider.write_text(IN_A_TASK.replace("raise STRANGE", "pass"))
    done = scrapy_cli("runspider", "exits.py", *arguments, timeout_s=60)
    assert done.code == 0, done.err
    lines = (tmp_path / "results" / "exits.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 50


def test_dropping_is_no_escape():
    dropped = DropItem("on purpose")
    assert contained(dropped, None) is dropped


@ensureDeferred
async def test_a_coroutine_that_is_thrown_away_half_way_ends_in_silence():
    """Its GeneratorExit is Python's own, and comes after the task that it was begun in."""
    error = GeneratorExit()
    its_task = asyncio.ensure_future(asyncio.sleep(0))
    assert contained(error, its_task) is error
    assert isinstance(contained(error, asyncio.current_task()), Escaped)
    await Deferred.fromFuture(its_task)
