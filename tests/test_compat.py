"""What `compat` relies on is there: a private part that Scrapy moved costs speed or containment, and this says which."""

from __future__ import annotations

import asyncio

import scrapy
from pytest_twisted import ensureDeferred

from extensions import compat


class Looks(scrapy.Spider):
    name = "looks"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site
        self.seen = {}

    async def start(self):
        yield scrapy.Request(self.site.url("/page/0"), dont_filter=True)

    async def parse(self, response):
        engine = self.crawler.engine
        scraper, downloader = engine.scraper, engine.downloader
        self.seen = {
            "nextcall": callable(engine._slot.nextcall.schedule),
            "closing": engine._slot.closing is None and scraper.slot.closing is None,
            "active": response.request in scraper.slot.active,
            "queue": list(scraper.slot.queue) == [],
            "needs_backout": scraper.slot.needs_backout() is False,
            "active_size": scraper.slot.active_size >= len(response.body),
            "slots": isinstance(downloader.per_slot_settings, dict),
            "callback": compat.default_callback(self) == self._parse,
        }
        for _ in range(20):
            await asyncio.sleep(0)
        self.seen["start"] = compat.seeds_are_read(engine)


@ensureDeferred
async def test_what_is_relied_on_is_there(crawl, site):
    done = await crawl(Looks, {}, timeout_s=40, site=site)
    assert {name for name, there in done.crawler.spider.seen.items() if not there} == set()
    assert len(done.crawler.spider.seen) == 9


@ensureDeferred
async def test_all_calls_to_user_code_can_be_wrapped(crawl, site):
    done = await crawl(Looks, {}, timeout_s=40, site=site)
    wrapped = []

    def note(call):
        wrapped.append(call)
        return call

    names = ("spider", "scrape", "output", "item", "middleware", "download")
    compat.wrap_user_code(done.crawler.engine, **dict.fromkeys(names, note))
    assert len(wrapped) == len(names)
