"""A crawl that stops does not wait for a page with very many links, and fetches it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import scrapy
from pytest_twisted import ensureDeferred

from extensions.stores.base import State
from tests.sites import Site


class Deep(scrapy.Spider):
    name = "deep"
    custom_settings = {"CLOSESPIDER_PAGECOUNT": 20, "DEPTH_LIMIT": 1}
    yielded = 0

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            type(self).yielded += 1
            yield response.follow(href)


class DeepAsync(Deep):
    name = "deep_async"

    async def parse(self, response):
        for output in super().parse(response):
            yield output


async def stops_in_time(crawl, tmp_path, spider):
    with Site() as site:
        spider.yielded = 0
        done = await crawl(spider, {"JOBDIR": str(tmp_path / "job")}, url=site.url("/links/40000"))
    assert done.reason == "closespider_pagecount"
    assert spider.yielded < 40_000
    assert not [m for m in done.messages() if "never retrieved" in m]
    with closing(sqlite3.connect(tmp_path / "job" / "job.sqlite")) as job:
        found = job.execute(
            "SELECT state FROM request WHERE json_extract(CAST(payload AS TEXT), '$.url') LIKE '%/links/40000'"
        )
        assert found.fetchall() == [(State.PENDING,)]
        items = job.execute("SELECT count(*) FROM outbox WHERE payload LIKE '%/links/40000%'")
        assert items.fetchone() == (0,)
    results = (tmp_path / "results" / f"{spider.name}.jsonl").read_text()
    assert "/links/40000" not in results


@ensureDeferred
async def test_a_page_with_many_links_is_cut(crawl, tmp_path):
    await stops_in_time(crawl, tmp_path, Deep)


@ensureDeferred
async def test_so_is_one_of_an_asynchronous_callback(crawl, tmp_path):
    await stops_in_time(crawl, tmp_path, DeepAsync)
