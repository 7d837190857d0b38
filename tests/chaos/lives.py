"""Runs a crawl over many lives and accounts for what came of it."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT, scrapy_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sites import Site

PAGES = 1000
IN_FLIGHT = 8


@dataclass
class Outcome:
    """What many lives of one job added up to.

    Attributes:
        lives: How many processes worked on it; all but the last were killed.
        fetched: Times that each page was asked for, by path.
        jsonl, sql: Times that each page is in the results, by URL.
        left: Rows still in the job, by table or state.
        stats: Scrapy's stats of the last life.
    """

    lives: int
    kills: int
    fetched: Counter[str]
    jsonl: Counter[str]
    sql: Counter[str]
    left: dict[str, int]
    stats: dict[str, Any]
    seconds: float
    log: str = ""
    places: list[str] = field(default_factory=list)

    @property
    def fetched_again(self) -> int:
        """Fetches over the first of each page."""
        return self.fetched.total() - len(self.fetched)


class Lives:
    """One job of `scrapy crawl site` over a graph of pages, killed and started again.

    Args:
        site: Where the graph is.
        folder: For the job, its results and its dead letters.
        pages: Pages of the graph.
        settings: Beside those that a chaos run needs.
        spider: Name in the project, or ``module:Class``.
        arguments: Of the spider; by default those of `site`, for the graph.
    """

    def __init__(
        self,
        site: Site,
        folder: Path,
        *,
        pages: int = PAGES,
        settings: dict[str, Any] | None = None,
        spider: str = "site",
        arguments: dict[str, str] | None = None,
    ) -> None:
        self._site = site
        self._folder = folder
        self._spider = spider
        self._arguments = arguments or {"url": site.url(f"/graph/{pages}/0")}
        self._kills = 0
        self._lives = 0
        self._places: list[str] = []
        self._log = folder / "log"
        self.settings: dict[str, Any] = {
            "JOBDIR": str(folder / "job"),
            "SLUICE_RESULTS": [str(folder / "results.jsonl"), str(folder / "results.sqlite")],
            "SLUICE_DEAD_LETTERS": str(folder / "dead.sqlite"),
            "CONCURRENT_REQUESTS": IN_FLIGHT,
            "CONCURRENT_REQUESTS_PER_DOMAIN": IN_FLIGHT,
            "LOG_FILE": str(self._log),
            **(settings or {}),
        }

    def start(self, point: str | None = None, nth: int = 1) -> subprocess.Popen[str]:
        """Begin a life, which dies at *point* if one is named."""
        self._lives += 1
        order = {
            "spider": self._spider,
            "arguments": self._arguments,
            "settings": self.settings,
            "point": point,
            "nth": nth,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.child", json.dumps(order)],
            cwd=ROOT,
            env=scrapy_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def die_after(self, seconds: float) -> bool:
        """One life that is killed *seconds* after its first page. False: it ended before."""
        child = self.start()
        before = self._site.stats().received
        deadline = time.monotonic() + 30
        while child.poll() is None and self._site.stats().received == before:
            if time.monotonic() > deadline:
                child.kill()
                child.wait()
                raise AssertionError(f"the crawl asked for nothing in 30 s\n{self.log()[-5000:]}")
            time.sleep(0.01)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        return self._ended(child, f"{seconds:.2f} s after its first page")

    def die_at(self, point: str, nth: int) -> bool:
        """One life that kills itself the *nth* time that it comes to *point*. False: it never did."""
        child = self.start(point, nth)
        try:
            child.wait(120)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise
        return self._ended(child, f"{point}, the {nth}.")

    def _ended(self, child: subprocess.Popen[str], place: str) -> bool:
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
        killed = child.returncode == -signal.SIGKILL
        assert killed or child.returncode == 0, self.log()
        self._kills += killed
        if killed:
            self._places.append(place)
        return killed

    def live(self) -> bool:
        """One life that may end as it will. True: it was killed, by itself."""
        child = self.start()
        try:
            child.wait(120)
        finally:
            child.kill()
        return self._ended(child, "by itself")

    def finish(self) -> Outcome:
        """One life that is left alone; and the account."""
        began = time.monotonic()
        child = self.start()
        try:
            out, _ = child.communicate(timeout=300)
        finally:
            child.kill()
        assert child.returncode == 0, self.log()
        return Outcome(
            lives=self._lives,
            kills=self._kills,
            fetched=Counter(
                {t: n for t, n in self._site.stats().hits.items() if t != "/robots.txt"}
            ),
            jsonl=Counter(
                json.loads(line)["url"]
                for line in (self._folder / "results.jsonl").read_text("utf-8").splitlines()
            ),
            sql=Counter(self._rows("results.sqlite", "SELECT url FROM results")),
            left=self._left(),
            stats=json.loads(out.splitlines()[-1]),
            seconds=time.monotonic() - began,
            log=self.log(),
            places=self._places,
        )

    def _rows(self, name: str, query: str) -> list[Any]:
        with closing(sqlite3.connect(self._folder / name)) as con:
            return [row[0] for row in con.execute(query)]

    def _left(self) -> dict[str, int]:
        tables = ("request", "outbox", "dead")
        left = {t: self._rows("job/job.sqlite", f"SELECT count(*) FROM {t}")[0] for t in tables}  # noqa: S608
        if (self._folder / "dead.sqlite").exists():
            reasons = Counter(self._rows("dead.sqlite", "SELECT reason FROM letters"))
            left.update({f"dead letters: {reason}": n for reason, n in reasons.items()})
        return left

    def log(self) -> str:
        """What all lives logged."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""


def check(outcome: Outcome, pages: int = PAGES) -> None:
    """Every page was fetched and is in every sink once; nothing is left.

    Raises:
        AssertionError: Says what is missing or too much.
    """
    missing = pages - len(outcome.fetched)
    assert not missing, f"{missing} pages never fetched; left: {outcome.left}; {outcome.places}"
    assert not any(outcome.left.values()), f"left: {outcome.left}"
    for name in ("jsonl", "sql"):
        found: Counter[str] = getattr(outcome, name)
        twice = [url for url, n in found.items() if n > 1]
        assert not twice, f"{name}: {len(twice)} pages twice, such as {twice[0]}"
        assert len(found) == pages, f"{name}: {pages - len(found)} pages missing"


def moments(seed: int, count: int, *, longest_s: float) -> list[float]:
    """*count* moments at which to die, half of them very early."""
    rng = random.Random(seed)  # noqa: S311 (no secret)
    return [rng.uniform(0, longest_s if i % 2 else longest_s / 10) for i in range(count)]
