"""Fixtures for real crawls: a scripted site, a crawl in this process, a `scrapy` process."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from scrapy.utils.reactor import install_reactor

REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
# Scrapy would first make a loop of asyncio's own, and drop it unclosed for the one that it is asked for.
asyncio.set_event_loop(uvloop.new_event_loop())
install_reactor(REACTOR, "uvloop.Loop")  # before anything imports the reactor

from scrapy import signals  # noqa: E402
from scrapy.crawler import AsyncCrawlerRunner  # noqa: E402
from scrapy.settings import Settings  # noqa: E402
from twisted.internet.defer import Deferred  # noqa: E402

from tests.sites import Site  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Spider
    from scrapy.crawler import Crawler

ROOT = Path(__file__).resolve().parents[1]
QUIET = {"LOG_LEVEL": "INFO", "RETRY_TIMES": 2, "TELNETCONSOLE_ENABLED": False}


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of one fast host; a test may change what it does."""
    with Site() as running:
        yield running


@dataclass
class Crawl:
    """How a crawl went."""

    crawler: Crawler
    stats: dict[str, Any]
    items: list[Any] = field(default_factory=list)
    reason: str = ""
    logs: list[logging.LogRecord] = field(default_factory=list)

    def messages(self, level: int = logging.WARNING) -> list[str]:
        """What was logged at *level* or over it."""
        return [record.getMessage() for record in self.logs if record.levelno >= level]


def project_settings(**overrides: Any) -> Settings:
    """The project's own settings with what a test changes."""
    settings = Settings()
    settings.setmodule("project.settings", priority="project")
    settings.setdict({**QUIET, **overrides}, priority="cmdline")
    return settings


@pytest.fixture
def crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[..., Deferred[Crawl]]:
    """Run a spider in this process and in a folder of its own.

    ``await crawl(Spider, {"SETTING": 1}, argument=2)``: the settings are the project's with the
    overrides, the arguments are the spider's.
    """
    monkeypatch.chdir(tmp_path)

    def run(
        spider: type[Spider],
        overrides: dict[str, Any] | None = None,
        *,
        timeout_s: float = 90.0,
        **arguments: Any,
    ) -> Deferred[Crawl]:
        runner = AsyncCrawlerRunner(project_settings(**(overrides or {})))
        crawler = runner.create_crawler(spider)
        result = Crawl(crawler=crawler, stats={})

        def keep_item(item: Any) -> None:
            result.items.append(item)

        def keep_reason(reason: str) -> None:
            result.reason = reason

        crawler.signals.connect(keep_item, signals.item_scraped, weak=False)
        crawler.signals.connect(keep_reason, signals.spider_closed, weak=False)

        async def work() -> Crawl:
            with caplog.at_level(logging.INFO):
                await _within(timeout_s, runner.crawl(crawler, **arguments), crawler)
            result.stats = dict(crawler.stats.get_stats())
            result.logs = list(caplog.records)
            return result

        return Deferred.fromCoroutine(_as_deferred(work()))

    return run


async def _within(timeout_s: float, crawl: asyncio.Task[None], crawler: Crawler) -> None:
    """Wait for *crawl*; if it hangs, say what it was doing, stop it, and fail."""
    done, _ = await asyncio.wait([crawl], timeout=timeout_s)
    if not done:
        stats = dict(crawler.stats.get_stats())
        await asyncio.wait([asyncio.ensure_future(crawler.stop_async())], timeout=10)
        pytest.fail(f"the crawl was not over after {timeout_s:g} s: {stats}")
    await crawl


async def _as_deferred(coroutine: Any) -> Any:
    return await Deferred.fromFuture(asyncio.ensure_future(coroutine))


@dataclass
class ScrapyProcess:
    """A finished `scrapy` command."""

    code: int
    out: str
    err: str
    folder: Path


@pytest.fixture
def scrapy_cli(tmp_path: Path) -> Callable[..., ScrapyProcess]:
    """Run ``python -m scrapy ...`` in a folder of its own, and wait for its end."""

    def run(*arguments: str, timeout_s: float = 300, **environment: str) -> ScrapyProcess:
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", *arguments],
            cwd=tmp_path,
            env=scrapy_environment(**environment),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return ScrapyProcess(done.returncode, done.stdout, done.stderr, tmp_path)

    return run


def scrapy_environment(**more: str) -> dict[str, str]:
    """Environment in which `scrapy` finds the project from any folder."""
    return {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": "project.settings",
        "PYTHONPATH": str(ROOT),
        **more,
    }
