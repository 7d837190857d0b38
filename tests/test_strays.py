"""What goes round the scheduler obeys the host's limits all the same; real crawls."""

from __future__ import annotations

import scrapy
from pytest_twisted import ensureDeferred
from scrapy.pipelines.files import FilesPipeline

from tests.cases.tools import ListSpider
from tests.sites import Answer, Bucket, Host, Route, Site


class Files(scrapy.Spider):
    name = "files"

    def __init__(self, urls, **kwargs):
        super().__init__(**kwargs)
        self.pages, self.files = urls[:4], urls[4:]

    async def start(self):
        for url in self.pages:
            yield scrapy.Request(url)

    def parse(self, response):
        at = self.pages.index(response.url)
        share = len(self.files) // len(self.pages)
        yield {"url": response.url, "file_urls": self.files[at * share : (at + 1) * share]}


@ensureDeferred
async def test_files_of_a_limited_host_all_come_and_few_are_refused(crawl, tmp_path):
    with Site(Host(limit=Bucket(rate=40, burst=5), latency_s=0.02)) as site:
        settings = {
            "ITEM_PIPELINES": {FilesPipeline: 1},
            "FILES_STORE": str(tmp_path / "files"),
        }
        done = await crawl(Files, settings, urls=site.urls(44))
        stats = site.stats()
    assert done.stats["file_count"] == 40
    assert done.stats["sluice/parsed"] == 4
    assert stats.refused <= 15  # the first burst, and few after it


@ensureDeferred
async def test_a_limit_of_one_does_not_lock_a_page_and_its_robots_txt_together(crawl):
    with Site(Host(latency_s=0.05)) as site:
        settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "ITEM_PIPELINES": {}}
        done = await crawl(Files, settings, urls=site.urls(4))
        stats = site.stats()
    assert done.reason == "finished"
    assert done.stats["sluice/parsed"] == 4
    assert stats.max_in_flight == 1


@ensureDeferred
async def test_a_quick_robots_txt_is_not_taken_for_what_the_host_can_do(crawl):
    """Pages queue at two workers: that shows by their own times, before the first of them times out."""
    with Site(Host(latency_s=0.3, workers=2)) as site:
        urls = site.urls(70)
        done = await crawl(ListSpider, {"DOWNLOAD_TIMEOUT": 1}, urls=urls)
    assert sorted(done.crawler.spider.parsed) == sorted(urls)
    assert done.stats.get("downloader/exception_count", 0) <= 2


@ensureDeferred
async def test_a_refused_robots_txt_is_asked_for_again_later(crawl):
    refused = Answer(status=429, headers=(("Retry-After", "1"),))
    script = Route("/robots.txt", (refused, Answer(body="User-agent: *\nDisallow: /page/1\n")))
    with Site(Host(routes=(script,))) as site:
        done = await crawl(Files, {"ITEM_PIPELINES": {}}, urls=site.urls(4))
    assert done.stats["sluice/parsed"] == 3
    assert done.stats["sluice/skipped/robots.txt"] == 1


class Walls(Files):
    name = "walls"

    async def start(self):
        for url in [*self.pages, *self.files]:
            yield scrapy.Request(url)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}


WALL = Answer(body="<html><title>Just a moment...</title></html>")


@ensureDeferred
async def test_a_challenge_page_is_retried_later_and_never_parsed(crawl):
    walled = Route("/page/2", (WALL, WALL, Answer(body="<title>page</title>")))
    with Site(Host(routes=(walled,))) as site:
        done = await crawl(Walls, {"HTTPCACHE_ENABLED": True}, urls=site.urls(6))
    assert done.stats["sluice/bans"] == 2
    assert done.stats["sluice/parsed"] == 6
    assert "Just a moment..." not in {item["title"] for item in done.items}


@ensureDeferred
async def test_a_page_that_stays_banned_is_a_dead_letter_after_so_many_retries(crawl):
    with Site(Host(routes=(Route("/page/2", (WALL,)),))) as site:
        done = await crawl(Walls, {"SLUICE_MAX_REFUSALS": 2}, urls=site.urls(6))
        hits = site.stats().hits
    assert hits["/page/2"] == 3
    assert done.stats["sluice/parsed"] == 5
    assert done.stats["sluice/dead_letters/ban"] == 1


class Broken(Walls):
    name = "broken_rule"

    def is_ban(self, response):
        raise ZeroDivisionError


@ensureDeferred
async def test_a_rule_that_raises_says_nothing(crawl):
    with Site() as site:
        done = await crawl(Broken, urls=site.urls(6))
    assert done.stats["sluice/parsed"] == 6
    assert done.stats["sluice/ban_rule_errors"] == 7  # and robots.txt
