"""One worker over a real Valkey: the whole crawl, as on a file of its own."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest_twisted
import scrapy
from scrapy import signals

from extensions.stores.base import Batch, StagedItem
from extensions.stores.redisdelivery import Delivery
from extensions.stores.sqlite import SqliteJobStore
from spiders.pages import PagesSpider
from tests.sites import Answer, Host, Route, Site


class Links(scrapy.Spider):
    """Twenty pages that all link to each other."""

    name = "links"

    async def start(self):
        yield scrapy.Request(self.urls[0])

    def parse(self, response):
        yield {"url": response.url}
        for url in self.urls:
            yield scrapy.Request(url)


@pytest_twisted.ensureDeferred
async def test_all_pages_come_once_and_nothing_is_left_in_redis(
    crawl, site, tmp_path, server, shared
):
    urls = site.urls(200)
    (tmp_path / "s").write_text("\n".join(urls))
    result = await crawl(PagesSpider, shared, seeds="s")
    assert result.reason == "finished"
    assert sorted(item.url for item in result.items) == sorted(urls)
    lines = (tmp_path / "results/pages.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["url"] for line in lines) == sorted(urls)
    assert server.client.keys() == []
    assert result.stats["sluice/account_off"] == 0
    assert result.stats["sluice/exit_code"] == 0


@pytest_twisted.ensureDeferred
async def test_links_are_followed_once_and_duplicates_are_reported(crawl, site, shared):
    dropped: list[Any] = []

    def keep(request: Any) -> None:
        dropped.append(request)

    class Watching(Links):
        urls = site.urls(20)

        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            crawler.signals.connect(keep, signals.request_dropped)
            return super().from_crawler(crawler, *args, **kwargs)

    result = await crawl(Watching, shared)
    assert len(result.items) == 20
    assert result.stats["dupefilter/filtered"] == 20 * 20 - 19
    assert len(dropped) == 20 * 20 - 19
    assert result.stats["sluice/account_off"] == 0


class Twice(scrapy.Spider):
    """A page that is refused first, and a link that takes its page's meta along."""

    name = "twice"

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        yield {"url": response.url, "origin": response.meta.get("sluice_origin")}
        if response.url == self.url:
            yield response.follow("/link", meta=response.meta, dont_filter=True)


@pytest_twisted.ensureDeferred
async def test_a_retry_s_results_are_named_by_the_request_that_it_began_as(crawl, shared):
    """So a page that is fetched again after a crash, and refused then, is the same row in a database."""
    refuses = Host(routes=(Route("/page", (Answer(status=503), Answer(status=503), Answer())),))
    with Site(refuses) as site:

        class OfThis(Twice):
            url = site.url("/page")

        settings = {**shared, "SLUICE_RETRY_BASE_S": 0.01, "ROBOTSTXT_OBEY": False}
        result = await crawl(OfThis, {**settings, "SLUICE_RETRY_BUDGET": 1})
    assert [item["origin"] for item in result.items] == [(1 << 32) + 1, None]


def test_a_result_s_key_is_the_origin_s(tmp_path):
    with contextlib.closing(SqliteJobStore(path=None, durable=False)) as local:
        local.open()
        delivery = Delivery(local=local, delivered=lambda *_: None)
        delivery.job = delivery.maker = "job"
        first, again, other = (
            StagedItem("{}", request_id=1),
            StagedItem("{}", request_id=4, origin=1),
            StagedItem("{}", request_id=5),
        )
        for item in (first, again, other):
            delivery.take(Batch(items=[item]))
        keys = [item.key for _, item in delivery.outbox(0, 9)]
    assert keys[0] == keys[1] != keys[2]
