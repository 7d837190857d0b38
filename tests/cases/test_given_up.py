"""What is given up is listed, its errback is honoured, and a broken chain goes on after a replay.

Source: scrapy/scrapy#3843 (there is no list of the URLs whose retries are spent).
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request
from twisted.internet.threads import deferToThread

from tests.conftest import ROOT
from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, letters, results

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

OVERRIDES = {"SLUICE_RETRY_BASE_S": 0.2, "RETRY_TIMES": 2}


class Mixed(ListSpider):
    """Good pages, pages that always fail, missing ones, a closed port; half with an errback."""

    async def start(self) -> AsyncIterator[Any]:
        self.told: list[str] = []
        for number, url in enumerate(self.urls):
            errback = self.failed if number % 2 else None
            yield Request(url, errback=errback, cb_kwargs={"number": number}, meta={"mark": "kept"})

    def parse(self, response: Any, number: int = -1) -> Any:
        yield from super().parse(response)

    def failed(self, failure: Any) -> Any:
        self.told.append(failure.request.url)
        if len(self.told) == 1:
            yield Request(self.replacement)
        elif len(self.told) == 2:
            raise ValueError("an errback that fails")


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest_twisted.ensureDeferred
async def test_every_failed_url_is_one_row(crawl: Callable[..., Any]) -> None:
    """Seven failures, seven rows with their story; each errback called once, its output honoured."""
    with Site() as site:
        good = site.urls(5)
        broken = [site.url(f"/status/503?{n}") for n in range(3)]
        missing = [site.url(f"/status/404?{n}") for n in range(2)]
        refused = [f"http://127.0.0.9:{closed_port()}/{n}" for n in range(2)]
        urls = [*good, *broken, *missing, *refused]
        result = await crawl(Mixed, OVERRIDES, urls=urls, replacement=site.url("/instead"))
        instead = site.url("/instead")
    spider = result.crawler.spider
    assert sorted(spider.parsed) == sorted([*good, instead])
    failing = [*broken, *missing, *refused]
    assert sorted(spider.told) == sorted(url for n, url in enumerate(urls) if n % 2 and n > 4)
    rows = {row["url"]: row for row in letters() if row["kind"] == "request"}
    assert sorted(rows) == sorted(failing)
    assert {rows[url]["reason"] for url in broken} == {"http 503"}
    assert {rows[url]["reason"] for url in missing} == {"http 404"}
    assert {rows[url]["reason"] for url in refused} == {"refused"}
    assert {rows[url]["attempts"] for url in broken} == {3}
    assert {rows[url]["status"] for url in missing} == {404}
    assert all(rows[url]["first_at"] <= rows[url]["last_at"] for url in failing)
    assert all(b'"mark"' in rows[url]["payload"] for url in failing)
    assert result.stats["sluice/dead_letters"] == 7


@pytest_twisted.ensureDeferred
async def test_a_handled_failure_may_leave_no_row(crawl: Callable[..., Any]) -> None:
    """With SLUICE_DEAD_LETTERS_HANDLED=False an errback that deals with it is enough."""
    with Site() as site:
        urls = [site.url(f"/status/404?{n}") for n in range(4)]
        overrides = {**OVERRIDES, "SLUICE_DEAD_LETTERS_HANDLED": False}
        result = await crawl(Mixed, overrides, urls=urls, replacement=site.url("/instead"))
    assert len(result.crawler.spider.told) == 2
    # The first errback dealt with it, the second one raised.
    assert len(letters()) == 3


CHAIN = """
from scrapy import Spider


class Chain(Spider):
    name = "chain"

    def __init__(self, url=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        yield {"url": response.url}
        for link in response.css("a"):
            yield response.follow(link)
"""


@pytest_twisted.ensureDeferred
async def test_a_broken_chain_goes_on_after_a_replay(
    scrapy_cli: Callable[..., Any], tmp_path: Any
) -> None:
    """Page 3 of 10 fails: the run says that it is incomplete, and the replay fetches the rest."""
    package = tmp_path / "chains"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "chain.py").write_text(CHAIN, encoding="utf-8")
    fails = Route("/chain/10/3", (*[Answer(status=503)] * 3, Answer()))
    settings = ["-s", "SPIDER_MODULES=chains", "-s", "SLUICE_RETRY_BASE_S=0.2"]

    def run(*words: str) -> Any:
        return scrapy_cli(*words, *settings, PYTHONPATH=f"{tmp_path}:{ROOT}")

    with Site(Host(routes=(fails,))) as site:
        url = site.url("/chain/10/0")
        first = await deferToThread(run, "crawl", "chain", "-a", f"url={url}")
        assert len(results(tmp_path)) == 3
        assert len(letters(tmp_path)) == 1
        assert "'sluice/dead_letters': 1" in first.err
        replay = await deferToThread(run, "deadletters", "replay")
        assert replay.code == 0, replay.err
        assert len({row["url"] for row in results(tmp_path)}) == 10
        assert letters(tmp_path) == []
