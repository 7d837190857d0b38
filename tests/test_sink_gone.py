"""A sink that cannot be used: nothing is fetched, or the crawl ends early; what was fetched is kept."""

import json
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider

from tests.conftest import scrapy_environment

PAGES = 300


class Dropping(Spider):
    """Its first page makes the table vanish, as a person might."""

    name = "dropping"
    custom_settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 2}

    async def start(self):
        for url in self.urls:
            yield Request(url)

    def parse(self, response):
        if not getattr(self, "dropped", False):
            self.dropped = True
            connection = sqlite3.connect(self.database)
            connection.execute("ALTER TABLE results RENAME TO away")
            connection.commit()
            connection.close()
        yield {"url": response.url}


def urls_in(database):
    connection = sqlite3.connect(database)
    try:
        return [url for (url,) in connection.execute("SELECT url FROM results ORDER BY id")]
    finally:
        connection.close()


@ensureDeferred
async def test_without_a_jobdir_results_are_put_into_a_file(site, crawl, tmp_path):
    database = tmp_path / "x.sqlite"
    settings = {"SLUICE_RESULTS": str(database)}
    result = await crawl(Dropping, settings, urls=site.urls(PAGES), database=database)
    assert result.reason == "sink_gone"
    [left] = (tmp_path / "results").glob("dropping.left-*.jsonl")
    kept = [json.loads(line)["url"] for line in left.read_text().splitlines()]
    assert sorted(kept) == sorted(item["url"] for item in result.items)
    assert len(kept) < PAGES
    assert any(str(left.name) in message for message in result.messages())


@ensureDeferred
async def test_with_a_jobdir_the_next_start_brings_them(site, crawl, tmp_path):
    database = tmp_path / "x.sqlite"
    settings = {"SLUICE_RESULTS": str(database), "JOBDIR": str(tmp_path / "job")}
    first = await crawl(Dropping, settings, urls=site.urls(PAGES), database=database)
    assert first.reason == "sink_gone"
    connection = sqlite3.connect(database)
    connection.execute("ALTER TABLE away RENAME TO results")
    connection.commit()
    connection.close()
    assert urls_in(database) == []

    class Quiet(Dropping):
        dropped = True

    second = await crawl(Quiet, settings, urls=site.urls(PAGES), database=database)
    assert second.reason == "finished"
    assert sorted(urls_in(database)) == sorted(site.urls(PAGES))
    assert not (tmp_path / "results").exists()


@ensureDeferred
async def test_a_sink_that_is_down_for_longer_than_the_patience_closes_the_crawl(
    site, crawl, tmp_path
):
    database = tmp_path / "x.sqlite"
    blocker = sqlite3.connect(database, isolation_level=None)
    blocker.execute("PRAGMA journal_mode=WAL")
    settings = {
        "SLUICE_RESULTS": f"sqlite:///{database}?timeout=0.1",
        "SLUICE_SINK_PATIENCE_S": 1,
        "SLUICE_RESULTS_BOUND": 20,
        "JOBDIR": str(tmp_path / "job"),
    }

    class Locking(Dropping):
        def parse(self, response):
            if not blocker.in_transaction:
                blocker.execute("BEGIN IMMEDIATE")
            yield {"url": response.url}

    result = await crawl(Locking, settings, urls=site.urls(PAGES), database=database)
    blocker.close()
    assert result.reason == "sink_gone"
    assert result.stats["sluice/exit_code"] == 75
    assert result.stats["sluice/results_left"] > 0


@pytest.mark.parametrize("durable", [True, False])
def test_a_signal_while_the_end_waits_for_a_locked_database(site, tmp_path, durable):
    """The crawl ends at once, says that results are left, and keeps them."""
    database = tmp_path / "x.sqlite"
    blocker = sqlite3.connect(database, isolation_level=None)
    blocker.execute("PRAGMA journal_mode=WAL")
    (tmp_path / "seeds.txt").write_text("\n".join(site.urls(PAGES)))
    words = [
        *(sys.executable, "-m", "scrapy", "crawl", "pages", "-a", "seeds=seeds.txt"),
        *("-s", f"SLUICE_RESULTS=sqlite:///{database}?timeout=0.1", "-s", "LOG_LEVEL=INFO"),
        *(("-s", "JOBDIR=job") if durable else ()),
    ]
    options = {"cwd": tmp_path, "env": scrapy_environment()}
    log = tmp_path / "log.txt"
    with log.open("w") as file:
        crawl = subprocess.Popen(words, stderr=file, **options)
        deadline = time.monotonic() + 60
        while not blocker.execute("SELECT 1 FROM sqlite_master").fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        blocker.execute("BEGIN IMMEDIATE")
        while "Closing spider (finished)" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        crawl.send_signal(signal.SIGTERM)
        assert crawl.wait(10) == 75
    blocker.execute("ROLLBACK")
    blocker.close()
    left = list((tmp_path / "results").glob("pages.left-*.jsonl"))
    if durable:
        assert left == []
        subprocess.run(words, check=True, capture_output=True, **options)
        assert sorted(urls_in(database)) == sorted(site.urls(PAGES))
    else:
        [file] = left
        kept = [json.loads(line)["url"] for line in file.read_text().splitlines()]
        assert sorted(kept + urls_in(database)) == sorted(site.urls(PAGES))


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/x", 75, "Connection refused"),
        ("x.csv", 2, "give a path that ends in .jsonl"),
        ("/proc/x.jsonl", 75, "cannot open /proc/x.jsonl"),
    ],
)
def test_unusable_before_the_start(  # noqa: PLR0917
    site, scrapy_cli, tmp_path, target, code, words
):
    (tmp_path / "seeds.txt").write_text(site.url("/page/1"))
    done = scrapy_cli("crawl", "pages", "-a", "seeds=seeds.txt", "-s", f"SLUICE_RESULTS={target}")
    assert done.code == code
    assert sum(words in line for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert "hunter2" not in done.err
    assert site.stats().received == 0
