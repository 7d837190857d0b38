"""Many crawls, one port: each finds a place of its own, and says where; none notices the others."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import aiohttp
import pytest_twisted
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from twisted.internet.defer import Deferred

from extensions.overview import Overview
from tests.conftest import project_settings, scrapy_environment

from .tools import ListSpider

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from scrapy.http import Response

    from tests.sites import Site


class Asking(ListSpider):
    """Asks its own status page and metrics while it crawls."""

    name = "asking"

    async def parse(self, response: Response) -> None:
        overview = self.crawler.get_extension(Overview)
        assert overview is not None
        assert overview.url is not None
        async with aiohttp.ClientSession() as session:
            status = await (await session.get(overview.url + "status.json")).json()
            metrics = await (await session.get(overview.url + "metrics")).text()
        self.seen = (overview.url, status["spider"], metrics.count("\nsluice_pages_total "))


@pytest_twisted.ensureDeferred
async def test_two_spiders_in_one_process_have_two_pages_and_two_registries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """The same fixed port for both: the second takes the next; their metrics do not clash."""
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO):
        seen = await Deferred.fromFuture(asyncio.ensure_future(_two(site)))
    (first, _, one), (second, _, two) = seen
    assert first != second
    assert one == two == 1
    addresses = [r.getMessage() for r in caplog.records if "Status page: " in r.getMessage()]
    assert len(addresses) == 2


async def _two(site: Site) -> list[tuple[str, str, int]]:
    with_port = {"SLUICE_STATUS_PORT": 38471, "ROBOTSTXT_OBEY": False, "SLUICE_RESULTS": ""}
    runner = AsyncCrawlerRunner(project_settings(**with_port))
    seen: list[tuple[str, str, int]] = []

    def ended(spider: Asking) -> None:
        seen.append(spider.seen)

    crawlers = [runner.create_crawler(Asking) for _ in range(2)]
    for crawler in crawlers:
        crawler.signals.connect(ended, signals.spider_closed, weak=False)
    both = [runner.crawl(crawler, urls=site.urls(3)) for crawler in crawlers]
    await asyncio.gather(*both)
    return seen


def test_three_processes_and_a_taken_port(tmp_path: Path, site: Site) -> None:
    """All three end well, each with a page of its own whose address is in the job's folder."""
    (tmp_path / "seeds.txt").write_text("\n".join(site.urls(5)))
    running = [
        subprocess.Popen(
            [
                sys.executable, "-m", "scrapy", "crawl", "pages", "-a", "seeds=seeds.txt",
                "-s", f"JOBDIR=job{n}", "-s", "SLUICE_STATUS_PORT=38481", "-s", f"LOG_FILE=log{n}",
                "-s", f"SLUICE_RESULTS=results{n}.jsonl",
            ],
            cwd=tmp_path,
            env=scrapy_environment(),
        )
        for n in range(3)
    ]  # fmt: skip
    assert [process.wait(120) for process in running] == [0, 0, 0]
    for n in range(3):
        assert "Status page: http://127.0.0.1:" in (tmp_path / f"log{n}").read_text()
        assert not (tmp_path / f"job{n}/status.url").exists()
        status = json.loads((tmp_path / f"job{n}/report.json").read_text())["status"]
        assert status["account"]["got"] == 5
