"""A writer that is slow, or waits for a lock, slows the crawl; nothing is lost, nothing piles up."""

import asyncio
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider, signals

from extensions.control import Control
from tests.conftest import scrapy_environment
from tests.databases import running_postgres
from tests.sites import Host, Site

PAGES = 150
ITEMS = 10
BOUND = 200
SLEEP_S = 0.002

SLOW = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep({SLEEP_S}); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON results FOR EACH ROW EXECUTE FUNCTION slow();
"""


class Tens(Spider):
    """Ten results a page; it watches the loop and the buffer while it runs."""

    name = "tens"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.lags = []
        spider.depths = []
        spider.reasons = set()
        crawler.signals.connect(spider.begin, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.spider_closed)
        return spider

    def begin(self):
        self.watch = asyncio.ensure_future(self.look())

    def end(self):
        self.watch.cancel()

    async def look(self):
        control = self.crawler.get_extension(Control)
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            self.lags.append(time.monotonic() - before - 0.01)
            if control.writer is not None:
                self.depths.append(control.writer.waiting + control.ledger.staged)
                self.reasons |= {state.status.value for state in control.writer.states}

    async def start(self):
        for url in self.urls:
            yield Request(url)

    def parse(self, response):
        for part in range(ITEMS):
            yield {"url": response.url, "part": part}


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


@pytest.fixture
def table(postgres):
    postgres.ask("DROP TABLE IF EXISTS results")
    postgres.ask("DROP FUNCTION IF EXISTS slow CASCADE")
    return postgres


def make_slow(postgres):
    postgres.ask(
        "CREATE TABLE results (job text, id bigint, spider text, url text, item jsonb, "
        "stored_at timestamp, PRIMARY KEY (job, id))"
    )
    postgres.ask(SLOW)


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def in_order(rows):
    """Order within each page is kept."""
    seen = {}
    for url, part in rows:
        assert part == seen.get(url, -1) + 1
        seen[url] = part
    return len(rows)


@ensureDeferred
async def test_postgres_that_sleeps(site, crawl, table):
    make_slow(table)
    began = time.monotonic()
    result = await crawl(
        Tens,
        {"SLUICE_RESULTS": table.url(), "SLUICE_RESULTS_BOUND": BOUND, "CONCURRENT_REQUESTS": 16},
        urls=site.urls(PAGES),
    )
    took_s = time.monotonic() - began
    spider = result.crawler.spider
    rows = table.ask("SELECT url, (item ->> 'part')::int FROM results ORDER BY id")
    assert in_order(rows) == PAGES * ITEMS
    assert max(spider.depths) <= BOUND
    assert max(spider.depths) > BOUND / 2  # the bound was the brake, not something else
    assert took_s > SLEEP_S * PAGES * ITEMS
    assert p99(spider.lags) < 0.1
    assert result.reason == "finished"


@ensureDeferred
async def test_sqlite_that_is_locked_from_outside(site, crawl, tmp_path):
    database = tmp_path / "out.sqlite"
    blocker = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    blocker.execute("PRAGMA journal_mode=WAL")

    class Locked(Tens):
        def begin(self):
            super().begin()
            blocker.execute("BEGIN IMMEDIATE")
            loop = asyncio.get_running_loop()
            loop.call_later(1.5, blocker.execute, "ROLLBACK")

    result = await crawl(
        Locked,
        {"SLUICE_RESULTS": f"sqlite:///{database}?timeout=0.3", "SLUICE_RESULTS_BOUND": BOUND},
        urls=site.urls(PAGES),
    )
    spider = result.crawler.spider
    rows = blocker.execute("SELECT url, item ->> 'part' FROM results ORDER BY id").fetchall()
    blocker.close()
    assert in_order(rows) == PAGES * ITEMS
    assert max(spider.depths) <= BOUND
    assert "down" in spider.reasons
    assert p99(spider.lags) < 0.1


def test_a_sigterm_in_the_middle_loses_nothing(tmp_path, table):
    make_slow(table)
    folder = tmp_path / "slowspiders"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "tens.py").write_text("from tests.cases.test_slow_writer import Tens as T\n"
        "class Tens(T):\n"
        "    def __init__(self, base, **kwargs):\n"
        "        super().__init__(**kwargs)\n"
        f"        self.urls = [f'{{base}}/page/{{n}}' for n in range({PAGES})]\n"
    )  # fmt: skip
    environment = scrapy_environment()
    environment["PYTHONPATH"] += f":{tmp_path}"
    with Site(Host()) as site:
        words = [
            sys.executable, "-m", "scrapy", "crawl", "tens", "-a", f"base={site.url('')}",
            "-s", "SPIDER_MODULES=slowspiders", "-s", f"SLUICE_RESULTS={table.url()}",
            "-s", f"SLUICE_RESULTS_BOUND={BOUND}", "-s", "JOBDIR=job",
        ]  # fmt: skip
        stopped = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while table.ask("SELECT count(*) FROM results")[0][0] < PAGES * ITEMS / 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        stopped.send_signal(signal.SIGTERM)
        stopped.wait(60)
        [[between]] = table.ask("SELECT count(*) FROM results")
        assert between < PAGES * ITEMS
        subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
    rows = table.ask("SELECT url, (item ->> 'part')::int FROM results ORDER BY id")
    assert in_order(rows) == PAGES * ITEMS
