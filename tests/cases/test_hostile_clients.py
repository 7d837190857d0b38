"""A status page under attack, and callbacks that are slow: the crawl does not notice the one, and names the other."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted

from extensions.overview import Overview
from tests.conftest import scrapy_environment
from tests.sites import Bucket, Host, Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy.http import Response

TOKEN = "open-sesame"  # noqa: S105 - of a page that lives for one test


def test_a_crawl_does_not_notice_who_attacks_its_page(tmp_path: Path) -> None:
    """Fifty silent clients, ten megabytes of request line, a stop from a foreign page or without the token."""
    with Site(Host(limit=Bucket(rate=30, burst=30))) as site:
        (tmp_path / "seeds.txt").write_text("\n".join(site.urls(300)))
        command = [
            sys.executable, "-m", "scrapy", "crawl", "pages", "-a", "seeds=seeds.txt",
            "-s", "JOBDIR=job", "-s", "SLUICE_STATUS_PORT=0", "-s", f"SLUICE_STATUS_TOKEN={TOKEN}",
        ]  # fmt: skip
        with (tmp_path / "log").open("w") as log:
            crawl = subprocess.Popen(command, cwd=tmp_path, env=scrapy_environment(), stderr=log)
        try:
            attack(page_of(tmp_path))
            assert crawl.wait(120) == 0
        finally:
            crawl.kill()
            crawl.wait()
        assert len({received.target for received in site.log(0)} - {"/robots.txt"}) == 300
    status = json.loads((tmp_path / "job/report.json").read_text())["status"]
    assert (status["account"]["got"], status["account"]["difference"]) == (300, 0)
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert "log_count/ERROR" not in said


def page_of(folder: Path) -> str:
    path = folder / "job/status.url"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text()[-3000:])


def attack(url: str) -> None:
    port = int(url.rsplit(":", 1)[1].strip("/"))
    with ExitStack() as open_ones:
        for _ in range(50):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
        loud = open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
        with suppress(ConnectionError):
            loud.sendall(b"GET /" + b"a" * 10_000_000)
        right = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        for headers, code in [
            ({"Content-Type": "application/json"}, 401),
            (right | {"Origin": "http://evil.example"}, 403),
            (right | {"Host": "evil.example"}, 403),
        ]:
            asked = urllib.request.Request(url + "action/stop", b"{}", headers)  # noqa: S310
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=10)  # noqa: S310
            assert refused.value.code == code
            refused.value.close()
        with urllib.request.urlopen(url + "status.json", timeout=10) as answer:  # noqa: S310
            assert json.load(answer)["finish_reason"] is None


class Slow(ListSpider):
    """Its callback works for longer than a page takes to come."""

    name = "slow"

    async def parse(self, response: Response) -> None:
        overview = self.crawler.get_extension(Overview)
        assert overview is not None
        assert overview.sampler is not None
        await asyncio.sleep(2.5)
        snapshot = overview.sampler.snapshot
        assert snapshot is not None
        self.crawler.stats.max_value("waited", snapshot.gauges.backout_bytes)


@pytest_twisted.ensureDeferred
async def test_slow_callbacks_are_what_holds_a_crawl_back(
    crawl: Callable[..., Any], site: Site
) -> None:
    """Answers pile up over Scrapy's bound for them: that is said, with their size."""
    settings = {"SLUICE_RESULTS": "", "ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS": 4}

    urls = [site.url(f"/size/{6_000_000 + number}") for number in range(9)]
    result = await crawl(Slow, settings, urls=urls)
    assert result.stats["sluice/bottleneck_seconds/parsing_behind"] > 2
    assert result.stats["waited"] > 5_000_000
