"""What a crash may not do: lose a URL, fetch the rest again, forget how often something failed.

Source: scrapy/scrapy#7978 (a crash loses the queue's index and what was in flight). Kills of a
whole graph are in tests/chaos; here is what they do not show.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from pytest_twisted import ensureDeferred
from twisted.internet.threads import deferToThread

from tests.chaos.lives import Lives, check
from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 40


@ensureDeferred
async def test_a_page_that_kills_the_process_again_and_again_is_a_dead_letter_and_the_others_are_fetched(
    tmp_path: Path,
) -> None:
    def run() -> None:
        with Site(Host(latency_s=0.01)) as site:
            url = site.url(f"/graph/{PAGES}/0")
            lives = Lives(
                site, tmp_path, spider="tests.chaos.deadly:DeadlySpider", arguments={"url": url}
            )
            kills = 0
            while lives.live():
                kills += 1
                assert kills <= 5, "it should have been given up by now"
            outcome = lives.finish()
            deadly = site.url(f"/graph/{PAGES}/13")
        # The very first can come before the page's lease is on record; from then on each counts.
        assert kills in {3, 4, 5}
        assert outcome.left == {
            "request": 0,
            "outbox": 0,
            "dead": 0,
            "dead letters: crashed the process": 1,
        }
        with closing(sqlite3.connect(tmp_path / "dead.sqlite")) as con:
            assert con.execute("SELECT url FROM letters").fetchall() == [(deadly,)]
        assert len(outcome.jsonl) == outcome.jsonl.total() == PAGES - 1
        assert outcome.sql == outcome.jsonl

    await deferToThread(run)


@ensureDeferred
async def test_a_crash_does_not_reset_the_count_of_retries(tmp_path: Path) -> None:
    path = f"/graph/{PAGES}/7"
    host = Host(routes=(Route(path, (Answer(status=503),)),))

    def run() -> None:
        with Site(host) as site:
            settings = {"RETRY_TIMES": 3, "SLUICE_RETRY_BASE_S": 1.0}
            lives = Lives(site, tmp_path, pages=PAGES, settings=settings)
            for seconds in (0.9, 0.9):
                lives.die_after(seconds)
            outcome = lives.finish()
        assert 4 <= outcome.fetched[path] <= 4 + outcome.kills
        assert outcome.left["dead letters: http 503"] == 1
        assert len(outcome.jsonl) == outcome.jsonl.total() == PAGES - 1

    await deferToThread(run)


@ensureDeferred
async def test_seeds_survive_a_kill_while_they_are_read(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"

    def run() -> None:
        with Site(Host(latency_s=0.01)) as site:
            seeds.write_text("\n".join(site.urls(PAGES * 3)))
            lives = Lives(
                site,
                tmp_path,
                spider="pages",
                arguments={"seeds": str(seeds)},
                settings={"SLUICE_MAX_PENDING": 10},
            )
            for seconds in (0.1, 0.3):
                lives.die_after(seconds)
            check(lives.finish(), PAGES * 3)

    await deferToThread(run)
