"""What results cost: each sink alone, and a crawl whose PostgreSQL goes away for a while."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Self

import psutil
from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess

from extensions.control import Control
from extensions.results import encode_item
from extensions.stores.sinks import make_sinks
from tests.conftest import ROOT, project_settings
from tests.databases import running_postgres
from tests.sites import Host, Site

from .scenarios import Table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from tests.databases import Postgres

ROWS = 20_000
BATCH = 500
PAGES = 6000
ITEMS = 4
AWAY_AFTER_S = 3.0
AWAY_S = 20.0


def item(number: int) -> dict[str, Any]:
    """A page as the spiders here yield it."""
    return {
        "url": f"http://example.com/shop/page/{number}",
        "status": 200,
        "title": f"Page {number} of a shop",
        "fetched_at": "2026-11-30T20:09:21.430+00:00",
        "depth": 1,
        "fields": {"price": "19.90", "name": f"thing {number}"},
    }


def sinks(rounds: int) -> Table:
    """20,000 results in batches of 500, each batch made durable before the next."""
    rows = [(number, encode_item(item(number))) for number in range(1, ROWS + 1)]
    took: dict[str, list[tuple[float, float]]] = {}
    with running_postgres() as postgres:
        for turn in range(rounds):
            for name in ("jsonl", "sqlite", "postgresql"):
                took.setdefault(name, []).append(_write_all(name, postgres, rows, turn))
    began = time.perf_counter()
    for number in range(ROWS):
        encode_item(item(number))
    took["(an item made strict JSON)"] = [(time.perf_counter() - began,) * 2]
    lines = []
    for name, pairs in took.items():
        wall, cpu = (statistics.median(pair[i] for pair in pairs) / ROWS * 1e6 for i in (0, 1))
        lines.append((name, f"{wall:.1f}", f"{cpu:.1f}", f"{1e6 / wall:,.0f}"))
    columns = ("sink", "microseconds a row", "of them CPU of this process", "rows a second")
    return Table(f"Sinks alone: {sinks.__doc__}", columns, lines)


def _write_all(
    name: str, postgres: Postgres, rows: list[tuple[int, str]], turn: int
) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        target = postgres.url() if name == "postgresql" else f"{folder}/x.{name}"
        [sink] = make_sinks(target, spider="bench", job=f"{turn}")
        sink.open(None)
        wall, cpu = time.perf_counter(), time.thread_time()
        for start in range(0, ROWS, BATCH):
            sink.write(rows[start : start + BATCH])
        took = time.perf_counter() - wall, time.thread_time() - cpu
        sink.close()
        return took


def outage(_: int) -> Table:
    """6,000 pages of 4 results each; the database is stopped for 20 s in mid-crawl."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sinks"], cwd=ROOT, capture_output=True, check=True
    )
    facts = json.loads(done.stdout.splitlines()[-1])
    rows = [(name, str(value)) for name, value in facts.items()]
    return Table(f"PostgreSQL away: {outage.__doc__}", ("figure", "value"), rows)


class Watched(Spider):
    """Stops the database while it crawls, and watches the loop, the buffer and the memory."""

    name = "watched"
    urls: list[str]
    postgres: Postgres

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.samples = []
        spider.lags = []
        crawler.signals.connect(spider.begin, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.spider_closed)
        return spider

    def begin(self) -> None:
        self.tasks = [asyncio.ensure_future(self.look()), asyncio.ensure_future(self.away())]

    def end(self) -> None:
        self.tasks[0].cancel()

    async def away(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(AWAY_AFTER_S)
        await loop.run_in_executor(None, self.postgres.stop)
        began = time.monotonic()
        await asyncio.sleep(AWAY_S)
        await loop.run_in_executor(None, self.postgres.start)
        self.down = (began, time.monotonic())

    async def look(self) -> None:
        process = psutil.Process()
        control = self.crawler.get_extension(Control)
        sample_due = 0.0
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            now = time.monotonic()
            self.lags.append(now - before - 0.005)
            if now >= sample_due:
                sample_due = now + 0.25
                waiting = 0
                if control is not None and control.writer is not None:
                    waiting = control.writer.waiting
                self.samples.append((now, process.memory_info().rss / 1e6, waiting))

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        for part in range(ITEMS):
            yield item(part) | {"url": response.url, "part": part}


def main() -> None:
    """One such crawl; prints what it showed as one line of JSON."""
    with running_postgres() as postgres, Site(Host(latency_s=0.01)) as site:
        os.chdir(tempfile.mkdtemp())
        settings = project_settings(
            SLUICE_RESULTS=postgres.url(),
            CONCURRENT_REQUESTS=16,
            CONCURRENT_REQUESTS_PER_DOMAIN=16,
            LOG_LEVEL="WARNING",
            JOBDIR="job",
        )
        process = AsyncCrawlerProcess(settings)
        crawler = process.create_crawler(Watched)
        process.crawl(crawler, urls=site.urls(PAGES), postgres=postgres)
        process.start()
        spider = crawler.spider
        assert isinstance(spider, Watched)
        [counts] = postgres.ask(
            "SELECT count(*), count(DISTINCT (url, item ->> 'part')) FROM results"
        )
        began, ended = spider.down
        phases = ((began - 2, began), (began + 5, ended), (ended, float("inf")))
        rss = [max((r for at, r, _ in spider.samples if a < at < b), default=0) for a, b in phases]
        lags = sorted(lag * 1000 for lag in spider.lags)
        facts = {
            "results expected": PAGES * ITEMS,
            "rows in the table, distinct": counts,
            "requests that the site saw": site.stats().received,
            "seconds away": round(ended - began, 1),
            "memory before, during, after (MB)": [round(megabytes) for megabytes in rss],
            "most results waiting": max(waiting for *_, waiting in spider.samples),
            "loop lag p50, p99, max (ms)": [
                round(lags[int(len(lags) * share)], 1) for share in (0.5, 0.99, 0.99999)
            ],
            "finish reason": crawler.stats.get_value("finish_reason"),
        }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
