"""What `extensions.compat` relies on is there in this Scrapy, and it does without what is missing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
import scrapy
from pytest_twisted import ensureDeferred
from scrapy.core.engine import _Slot
from scrapy.core.scraper import Slot

from extensions import compat


class Looks(scrapy.Spider):
    """Asks the engine, from within a callback, for all that compat reads of it."""

    name = "looks"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site
        self.seen = {}

    async def start(self):
        yield scrapy.Request(self.site.url("/page/0"))

    async def parse(self, response):
        engine = self.crawler.engine
        await asyncio.sleep(0)
        self.seen = {
            "wakes": callable(engine._slot.nextcall.schedule),
            "scraping": compat.is_scraping(engine, response.request),
            "not scraping": compat.is_scraping(engine, scrapy.Request("http://a.example/")),
            "behind": compat.scraper_is_behind(engine),
            "closing": compat.is_closing(engine),
            "slots": engine.downloader.per_slot_settings,
            "wrapped": [
                call.__name__
                for call in (
                    engine.scraper.call_spider_async,
                    engine.scraper.itemproc.process_item_async,
                    engine.downloader.middleware.download_async,
                    engine.downloader.handlers.download_request_async,
                )
            ],
        }
        yield {"url": response.url, "status": 200}


@ensureDeferred
async def test_a_running_engine_has_all_that_is_read(crawl, site):
    done = await crawl(Looks, {}, site=site)
    seen = done.crawler.spider.seen
    assert seen.pop("slots") is not None
    assert seen == {
        "wakes": True,
        "scraping": True,
        "not scraping": False,
        "behind": False,
        "closing": False,
        "wrapped": ["contained_spider", "contained_call", "contained_call", "contained_download"],
    }
    assert compat.seeds_are_read(done.crawler.engine)


def test_both_slots_tell_that_they_close():
    assert hasattr(Slot(1), "closing")
    assert "closing" in _Slot.__init__.__code__.co_names


@pytest.mark.parametrize("slot", [None, SimpleNamespace()])
def test_what_is_missing_is_done_without(slot):
    scraper = SimpleNamespace(slot=slot)
    engine = SimpleNamespace(running=False, scraper=scraper, downloader=SimpleNamespace())
    request = scrapy.Request("http://a.example/")
    compat.wake(engine, request)
    compat.set_slot(engine.downloader, "a.example", concurrency=1)
    compat.forget_slot(engine.downloader, "a.example")
    compat.wrap_user_code(engine, spider=id, call=id, download=id)
    assert compat.is_scraping(engine, request) is (slot is not None)
    assert not compat.is_closing(engine)
    assert not compat.seeds_are_read(engine)
