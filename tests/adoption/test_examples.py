"""The example projects of Scrapy's documentation, unchanged under the add-on, give the same items."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from itemadapter import ItemAdapter
from pytest_twisted import ensureDeferred
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings
from twisted.internet.defer import Deferred

from tests.adoption.example_sites import (
    BOOK_PAGES,
    BOOKS_A_PAGE,
    QUOTE_PAGES,
    QUOTES_A_PAGE,
    example_host,
)
from tests.adoption.example_spiders import SPIDERS
from tests.sites import Site

QUOTES = QUOTE_PAGES * QUOTES_A_PAGE
ITEMS = {
    "quotes": QUOTES,
    "tag": QUOTES_A_PAGE,
    "author": 5,
    "inline": 3 * QUOTES_A_PAGE,
    "login": 1,
    "books": BOOK_PAGES * BOOKS_A_PAGE - 10,
}


async def items_of(spider, addons: dict, **more) -> list[str]:
    """What *spider* yields, in one order."""
    settings = Settings({"ADDONS": addons, "TELNETCONSOLE_ENABLED": False, **more})
    with Site(example_host()) as site:
        crawler = AsyncCrawlerRunner(settings).create_crawler(spider)
        items: list[str] = []

        def keep(item):
            items.append(json.dumps(ItemAdapter(item).asdict(), sort_keys=True))

        crawler.signals.connect(keep, signals.item_scraped)
        crawl = crawler.crawl_async(site=f"http://{site.domain()}")
        await Deferred.fromFuture(asyncio.ensure_future(crawl))
    assert crawler.stats.get_value("finish_reason") == "finished"
    assert crawler.stats.get_value("log_count/ERROR", 0) == 0
    return sorted(items)


@pytest.mark.parametrize("spider", SPIDERS, ids=lambda spider: spider.name)
@ensureDeferred
async def test_the_same_items_with_and_without_the_add_on(spider, tmp_path, monkeypatch):
    """In memory and with a JOBDIR; and what is written is what was yielded."""
    monkeypatch.chdir(tmp_path)
    stock = await items_of(spider, {})
    assert len(stock) == ITEMS[spider.name]
    for job in (None, "job"):
        file = f"{job}.jsonl"
        ours = await items_of(spider, {"extensions.Addon": 300}, JOBDIR=job, SLUICE_RESULTS=file)
        assert ours == stock
        written = Path(file).read_text().splitlines()
        assert sorted(json.dumps(json.loads(line), sort_keys=True) for line in written) == stock
