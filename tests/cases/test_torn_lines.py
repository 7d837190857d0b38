"""Killed at any moment, resumed, appended to by others: every line is strict JSON, and there once."""

import datetime as dt
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from decimal import Decimal

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from twisted.internet.defer import DeferredList

from extensions.stores.deadletters import DeadLetterFile
from extensions.stores.sinks import JsonLinesSink
from tests.cases.carrying import item
from tests.conftest import ROOT
from tests.databases import running_postgres

ITEMS = 1500


def start(folder, targets, die, items=ITEMS):
    words = [sys.executable, "-m", "tests.cases.carrying", str(folder), targets, str(items), die]
    return subprocess.Popen(words, cwd=ROOT)


def strict_numbers(path):
    def refuse(word):
        raise AssertionError(word)

    data = path.read_bytes()
    assert data.endswith(b"\n")
    lines = data.decode().splitlines()  # as readers do that split at U+2028 as well
    return [json.loads(line, parse_constant=refuse)["n"] for line in lines]


@pytest.mark.parametrize("die", ["before:1", "after:1", "before:3", "after:3", "torn:1", "torn:4"])
def test_a_kill_at_each_point_of_a_write(tmp_path, die):
    path = tmp_path / "shop.jsonl"
    assert start(tmp_path, str(path), die, items=500).wait(60) == -signal.SIGKILL
    assert start(tmp_path, str(path), "never", items=500).wait(60) == 0
    assert strict_numbers(path) == list(range(1, 501))
    assert path.read_text().splitlines()[41] == item(42)


def test_kills_at_random_with_three_sinks(tmp_path):
    """JSON Lines, SQLite and PostgreSQL get each result once, however often the process dies."""
    draw = random.Random(34)  # noqa: S311 - the same moments in every run
    with running_postgres() as postgres:
        path, database = tmp_path / "shop.jsonl", tmp_path / "shop.sqlite"
        targets = f"{path},{database},{postgres.url()}"
        kills = 0
        while kills < 5:
            process = start(tmp_path, targets, "never")
            while not (tmp_path / "job.sqlite-wal").exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.3))
            process.kill()
            if process.wait(60) == 0:
                break
            kills += 1
        assert kills, "it was done before the first kill"
        assert start(tmp_path, targets, "never").wait(60) == 0
        assert strict_numbers(path) == list(range(1, ITEMS + 1))
        connection = sqlite3.connect(database)
        numbers = connection.execute("SELECT item ->> 'n' FROM results ORDER BY id").fetchall()
        connection.close()
        assert numbers == [(n,) for n in range(1, ITEMS + 1)]
        rows = postgres.ask("SELECT (item ->> 'n')::int FROM results ORDER BY id")
        assert rows == [(n,) for n in range(1, ITEMS + 1)]


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path):
    path = tmp_path / "shop.jsonl"
    first = JsonLinesSink(path=path, job="a")
    first.open(None)
    words = [sys.executable, "-m", "tests.cases.carrying", tmp_path / "b", path, "10", "never"]
    second = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert f"is being written by process {os.getpid()}" in second.stderr
    first.write([(1, item(1))])
    first.close()
    assert start(tmp_path / "b", str(path), "never", items=10).wait(60) == 0
    assert strict_numbers(path) == [1, *range(1, 11)]


class Odd(Spider):
    """Yields what JSON can hold and what it cannot."""

    name = "odd"

    async def start(self):
        yield Request(self.url)

    def parse(self, response):
        good = {"at": dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "price": Decimal("1.10"), "s": {1}}
        for number, value in enumerate(
            ["a\u2028b", float("nan"), good, b"x", "\ud800", math.inf, object(), "žluť"], 1
        ):
            yield {"url": f"{response.url}?{number}", "n": number, "value": value}


@ensureDeferred
async def test_what_json_cannot_hold_becomes_a_dead_letter(site, crawl, tmp_path):
    feed = tmp_path / "feed.jsonl"
    feeds = {str(feed): {"format": "jsonlines"}}
    result = await crawl(Odd, {"FEEDS": feeds}, url=site.url("/page/1"))
    assert strict_numbers(tmp_path / "results" / "odd.jsonl") == [1, 3, 8]
    assert [json.loads(line)["n"] for line in feed.read_text().split("\n")[:-1]] == [1, 3, 8]
    with DeadLetterFile(tmp_path / "deadletters" / "odd.sqlite") as file:
        rows = sorted(file.rows(), key=lambda row: row.url)
    assert [row.url[-2:] for row in rows] == ["?2", "?4", "?5", "?6", "?7"]
    assert {row.kind for row in rows} == {"item"}
    assert "value is nan, which JSON has not" in rows[0].detail
    assert result.reason == "finished"


@ensureDeferred
async def test_two_crawls_in_one_process_never_share_a_file(site, crawl, tmp_path):
    target = {"SLUICE_RESULTS": str(tmp_path / "x.jsonl")}
    site.change(latency_s=0.3)
    both = await DeferredList(
        [crawl(Odd, target, url=site.url(f"/page/{n}")) for n in (1, 2)], consumeErrors=True
    )
    reasons = sorted(result.reason for _, result in both)
    assert reasons == ["finished", "sink_gone"]
    assert strict_numbers(tmp_path / "x.jsonl") == [1, 3, 8]
