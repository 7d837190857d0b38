"""Seeds are fresh when they are sent, and a `start()` that waits for its source is waited for.

Source: scrapy/scrapy#6813 (an endless `start()` ran ahead of every callback).
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request
from scrapy.exceptions import CloseSpider
from twisted.internet.threads import deferToThread

from tests.conftest import scrapy_environment
from tests.sites import Host, Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

CAP = 4
LATENCY_S = 0.1


class Stamped(ListSpider):
    """An endless `start()` that puts the time into each URL."""

    async def start(self) -> AsyncIterator[Any]:
        self.most_ahead = 0
        number = 0
        while True:
            number += 1
            self.most_ahead = max(self.most_ahead, number - len(self.parsed))
            yield Request(f"{self.base}/page/{number}?at={time.time()}")

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        if len(self.parsed) == 40:
            raise CloseSpider("enough")


@pytest_twisted.ensureDeferred
async def test_a_seed_waits_before_it_is_drawn_not_after(crawl: Callable[..., Any]) -> None:
    """What a seed carries is at most (cap + 2) answers old when the site receives it."""
    with Site(Host(latency_s=LATENCY_S)) as site:
        overrides = {"SLUICE_MAX_PENDING": CAP, "CONCURRENT_REQUESTS": 1}
        result = await crawl(Stamped, overrides, base=site.url(""))
        log = site.log()
    ages = [
        entry.at - float(entry.target.partition("?at=")[2]) for entry in log if "?at=" in entry[1]
    ]
    assert result.reason == "enough"
    assert max(ages[8:]) <= (CAP + 2) * LATENCY_S * 1.5
    assert result.crawler.spider.most_ahead <= CAP + 2


class Fed(ListSpider):
    """Gets its URLs from a queue that somebody fills now and then."""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.base}/page/0")
        while (url := await self.queue.get()) is not None:
            yield Request(url)


@pytest_twisted.ensureDeferred
async def test_an_empty_source_does_not_end_the_crawl(crawl: Callable[..., Any]) -> None:
    """Over six dry seconds (a heartbeat is five) the spider stays open, then fetches what comes."""
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    with Site() as site:

        def feed() -> None:
            for url in [*site.urls(4)[1:], None]:
                queue.put_nowait(url)

        asyncio.get_running_loop().call_later(6.0, feed)
        result = await crawl(Fed, base=site.url(""), queue=queue)
        assert site.stats().hits == {"/robots.txt": 1, **{f"/page/{n}": 1 for n in range(4)}}
    assert result.reason == "finished"


ENDLESS = """
import asyncio
import sys

from scrapy import Request, Spider


class Endless(Spider):
    name = "endless"

    async def start(self):
        number = 0
        try:
            while True:
                number += 1
                yield Request(f"{self.base}/page/{number}")
        finally:
            sys.stderr.write("start() was ended\\n")

    def parse(self, response):
        yield {"url": response.url}
"""


@pytest_twisted.ensureDeferred
async def test_one_interrupt_ends_an_endless_start(tmp_path: Path) -> None:
    """After SIGINT `start()` is ended, what is in flight completes, and the process is gone."""
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    with Site(Host(latency_s=0.2)) as site:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "scrapy",
                "runspider",
                "endless.py",
                "-a",
                f"base={site.url('')}",
                "-s",
                "SLUICE_MAX_PENDING=4",
            ],
            cwd=tmp_path,
            env=scrapy_environment(),
            stderr=subprocess.PIPE,
            text=True,
        )

        def interrupt() -> tuple[str, float]:
            while site.stats().received < 5:
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGINT)
            begun_due = time.monotonic()
            err = process.communicate(timeout=30)[1]
            return err, time.monotonic() - begun_due

        err, seconds = await deferToThread(interrupt)
    assert "start() was ended" in err
    assert "Spider closed (shutdown)" in err
    assert seconds < 5.0
