"""Fifty dead letters, replayed in every way: each fetched once, none lost, none doubled."""

import json
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from extensions.stores.deadletters import DeadLetterFile
from tests.conftest import scrapy_environment
from tests.sites import Answer, Host, Route, Site

COUNT = 50
BROKEN = Host(routes=(Route("/page/*", (Answer(status=404, body="no credit"),)),))
FAST = (
    *("-s", "RETRY_TIMES=1"),
    *("-s", "SLUICE_RETRY_BASE_S=0.01"),
    *("-s", "SLUICE_RETRY_BUDGET=1"),
    *("-s", "LOG_LEVEL=INFO"),
)


@pytest.fixture
def broken():
    with Site(BROKEN) as site:
        yield site


@pytest.fixture
def filled(broken, tmp_path, scrapy_cli):
    """A folder whose dead-letter file has fifty rows, and the site that they are of."""
    (tmp_path / "seeds.txt").write_text("\n".join(broken.urls(COUNT)))
    done = scrapy_cli("crawl", "pages", "-a", "seeds=seeds.txt", *FAST, timeout_s=40)
    assert done.code in {0, 3}, done.err
    assert len(states(tmp_path)) == COUNT
    broken.forget()
    return broken


def heal(site):
    site.change(routes=())
    site.forget()


def rows(folder):
    with DeadLetterFile(folder / "deadletters" / "pages.sqlite") as file:
        return sorted(file.rows(), key=lambda row: row.id)


def states(folder):
    return [row.state for row in rows(folder)]


def page_hits(site):
    return {target: n for target, n in site.stats().hits.items() if target.startswith("/page/")}


def results(folder):
    lines = (folder / "results" / "pages.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["url"] for line in lines)


def start(folder, *words):
    with (folder / "log.txt").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "scrapy", *words],
            cwd=folder,
            env=scrapy_environment(),
            stdout=log,
            stderr=log,
        )


def until(condition, within_s=60):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def test_replay_all(filled, tmp_path, scrapy_cli):
    before = rows(tmp_path)
    assert {(row.reason, row.status, row.attempts) for row in before} == {("http 404", 404, 1)}
    heal(filled)
    done = scrapy_cli("deadletters", "replay", *FAST)
    assert done.code == 0, done.err
    assert states(tmp_path) == []
    assert set(page_hits(filled).values()) == {1}
    assert results(tmp_path) == sorted(filled.urls(COUNT))


def test_replay_by_filter(filled, tmp_path, scrapy_cli):
    heal(filled)
    nothing = scrapy_cli("deadletters", "replay", "--reason", "timeout")
    assert "nothing to replay" in nothing.out
    done = scrapy_cli(
        "deadletters", "replay", "--domain", filled.domain(), "--url", "/page/1", *FAST
    )
    assert done.code == 0, done.err
    assert page_hits(filled) == {f"/page/{n}": 1 for n in (1, *range(10, 20))}
    assert states(tmp_path) == ["dead"] * 39


def test_replay_with_the_server_still_broken(filled, tmp_path, scrapy_cli):
    before = rows(tmp_path)
    scrapy_cli("deadletters", "replay", *FAST)
    after = rows(tmp_path)
    assert [row.id for row in after] == [row.id for row in before]
    assert {(row.state, row.replays, row.attempts) for row in after} == {("dead", 1, 2)}
    assert all(
        a.first_at == b.first_at and a.last_at > b.last_at
        for a, b in zip(after, before, strict=True)
    )
    assert set(page_hits(filled).values()) == {1}


def test_two_replays_at_once(filled, tmp_path):
    heal(filled)
    processes = [start(tmp_path, "deadletters", "replay", *FAST) for _ in range(2)]
    for process in processes:
        process.wait(120)
    assert states(tmp_path) == [], (tmp_path / "log.txt").read_text()
    assert set(page_hits(filled).values()) == {1}


def test_replay_while_the_spider_runs(filled, tmp_path, scrapy_cli):
    """The running crawl takes the rows; fingerprints that it has seen do not filter them."""
    filled.change(routes=(), latency_s=0.4)
    filled.forget()
    crawl = start(
        tmp_path, "crawl", "pages", "-a", "seeds=seeds.txt", *FAST,
        "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=2",
    )  # fmt: skip
    until(lambda: page_hits(filled))
    done = scrapy_cli("deadletters", "replay", "--url", "/page/1")
    assert done.out == "11 go to the running crawl of pages\n", done.err
    crawl.wait(120)
    hits = page_hits(filled)
    assert [hits[f"/page/{n}"] for n in (1, 10, 19, 20, 49)] == [2, 2, 2, 1, 1]
    assert len(states(tmp_path)) == 39


@pytest.mark.parametrize("durable", [False, True])
def test_killed_in_the_middle_of_a_replay(filled, tmp_path, scrapy_cli, durable):
    filled.change(routes=(), latency_s=0.2)
    filled.forget()
    job = ("-s", "JOBDIR=job") if durable else ()
    scrapy_cli("deadletters", "replay", "--later")
    words = (
        "crawl", "pages", "-a", "seeds=seeds.txt", *FAST, *job, "-s", "SLUICE_REPLAY_ONLY=True",
        "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=2",
    )  # fmt: skip
    replay = start(tmp_path, *words)
    until(lambda: len(page_hits(filled)) >= 5)
    replay.send_signal(signal.SIGKILL)
    replay.wait()
    heal(filled)
    if durable:
        connection = sqlite3.connect(tmp_path / "job" / "job.sqlite")
        [known] = connection.execute("SELECT count(*) FROM request").fetchone()
        [told] = connection.execute("SELECT count(*) FROM dead").fetchone()
        connection.close()
        assert known + told >= len(states(tmp_path)) > 0  # each row is still in the job, or told
        assert set(states(tmp_path)) == {"replaying"}
        done = scrapy_cli(*words)
        assert done.code == 0, done.err
    else:
        done = scrapy_cli("deadletters", "replay", *FAST)
        assert done.code == 0, done.err
    assert states(tmp_path) == []
    if durable:
        assert results(tmp_path) == sorted(filled.urls(COUNT))
    else:
        assert set(results(tmp_path)) == set(filled.urls(COUNT))


def test_priority_body_and_arguments_come_back(broken, tmp_path, scrapy_cli):
    folder = tmp_path / "myspiders"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "poster.py").write_text(
        """
import scrapy
from scrapy import Request


class Poster(scrapy.Spider):
    name = "pages"

    def __init__(self, url=None, **kwargs):
        super().__init__(**kwargs)
        self.url = url

    async def start(self):
        yield Request(
            self.url, self.parse_it, method="POST", body=b"x\\xff", priority=7,
            headers={"X-A": "1", "Authorization": "Basic c2VjcmV0"}, cb_kwargs={"n": 3, "d": {"a": [1]}},
            meta={"mine": "m"},
        )

    def parse_it(self, response, n, d):
        request = response.request
        yield {
            "url": response.url, "n": n, "d": d, "mine": response.meta["mine"],
            "priority": request.priority, "method": request.method, "body": request.body.hex(),
            "a": request.headers[b"X-A"].decode(), "retries": response.meta.get("retry_times", 0),
        }
"""
    )
    env = {"PYTHONPATH": f"{scrapy_environment()['PYTHONPATH']}:{tmp_path}"}
    mine = (*FAST, "-s", "SPIDER_MODULES=myspiders")
    url = broken.url("/page/7")
    scrapy_cli("crawl", "pages", "-a", f"url={url}", *mine, **env)
    assert states(tmp_path) == ["dead"]
    heal(broken)
    done = scrapy_cli("deadletters", "replay", *mine, **env)
    assert done.code == 0, done.err
    [line] = (tmp_path / "results" / "pages.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "url": url,
        "n": 3,
        "d": {"a": [1]},
        "mine": "m",
        "priority": 7,
        "method": "POST",
        "body": "78ff",
        "a": "1",
        "retries": 0,
    }
    assert b"c2VjcmV0" not in (tmp_path / "deadletters" / "pages.sqlite").read_bytes()
