"""One worker over a real Valkey: the whole crawl, as on a file of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest_twisted
import scrapy
from scrapy import signals

from spiders.pages import PagesSpider


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
