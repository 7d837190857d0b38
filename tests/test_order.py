"""The order of requests of equal priority is what Scrapy's queue settings say."""

from __future__ import annotations

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider

FIFO, LIFO = "scrapy.squeues.FifoMemoryQueue", "scrapy.squeues.LifoMemoryQueue"


class Ordered(Spider):
    """Four seeds; the first has three links."""

    name = "ordered"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site
        self.seen: list[str] = []

    async def start(self):
        for name in ("a", "b", "c", "d"):
            yield Request(self.site.url(f"/{name}"))

    def parse(self, response):
        name = response.url.rpartition("/")[2]
        self.seen.append(name)
        if name == "a":
            for link in ("x", "y", "z"):
                yield response.follow(f"/{link}")


@pytest.mark.parametrize("seeds", [FIFO, LIFO, None])
@pytest.mark.parametrize("links", [FIFO, LIFO])
@ensureDeferred
async def test_the_order_is_that_of_stock_scrapy(crawl, site, links, seeds):
    """In memory and on disk, whatever queues are set for links and for seeds."""
    orders = {}
    for name, more in (
        ("stock", {"ADDONS": {}}),
        ("memory", {}),
        ("disk", {"JOBDIR": "job", "SLUICE_MEMORY_WINDOW": 1}),
    ):
        settings = {
            "SCHEDULER_MEMORY_QUEUE": links,
            "SCHEDULER_START_MEMORY_QUEUE": seeds,
            "CONCURRENT_REQUESTS": 1,
            "ROBOTSTXT_OBEY": False,
            **more,
        }
        done = await crawl(Ordered, settings, site=site)
        orders[name] = "".join(done.crawler.spider.seen)
    assert sorted(orders["stock"]) == sorted("abcdxyz")
    assert orders["memory"] == orders["stock"]
    assert orders["disk"] == orders["stock"]
