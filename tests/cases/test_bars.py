"""What the project promises of its speed, size and manners, as counts and ratios that hold on any machine.

The figures in seconds and the comparison with Scrapy alone are in `benchmarks`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted
from scrapy.exceptions import CloseSpider
from twisted.internet.threads import deferToThread

from tests.conftest import scrapy_environment
from tests.peaks import peak_bytes
from tests.sites import Bucket, Host, Site

from .tools import ListSpider, letters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest_twisted.ensureDeferred
async def test_a_limited_host_gives_all_its_pages(crawl: Callable[..., Any]) -> None:
    """50 a second, bucket of 10, 429 without Retry-After: every page, few answers refused."""
    with Site(Host(latency_s=0.05, limit=Bucket(rate=50, burst=10))) as site:
        result = await crawl(ListSpider, urls=site.urls(500))
        stats = site.stats()
    assert result.reason == "finished"
    assert len(set(result.crawler.spider.parsed)) == 500
    assert letters() == []
    assert stats.refused <= 0.05 * stats.received


class UntilFast(ListSpider):
    """Ends when the fast hosts are done."""

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        self.fast = getattr(self, "fast", 0) + (not response.url.startswith(self.slow))
        if self.fast == 400:
            raise CloseSpider("fast hosts done")


@pytest_twisted.ensureDeferred
async def test_a_slow_host_holds_nobody_up(crawl: Callable[..., Any]) -> None:
    """100 URLs of 2 s stand first; the 400 of four fast hosts take about as long as without them."""
    seconds = []
    for slow_urls in (0, 100):
        with Site(Host(latency_s=2.0), *[Host(latency_s=0.05)] * 4) as site:
            fast = [site.url(f"/page/{n}", host) for n in range(100) for host in range(1, 5)]
            urls = [*site.urls(slow_urls), *fast]
            result = await crawl(UntilFast, {"ROBOTSTXT_OBEY": False}, urls=urls, slow=site.url(""))
            log = sorted(entry.at for host in range(1, 5) for entry in site.log(host))
        assert result.reason == "fast hosts done"
        seconds.append(log[-1] - log[0])
    assert seconds[1] <= 1.6 * seconds[0] + 1.0


def peak_mb(folder: Path, *words: str) -> float:
    """Peak resident set of a `scrapy crawl` that ends after 500 pages, in 10^6 bytes."""
    folder.mkdir()
    settings = ["CLOSESPIDER_PAGECOUNT=500", "CONCURRENT_REQUESTS_PER_DOMAIN=16", "LOG_LEVEL=ERROR"]
    options = [word for setting in settings for word in ("-s", setting)]
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", *words, *options],
        cwd=folder,
        env=scrapy_environment(),
        stdout=subprocess.DEVNULL,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_bytes(process.pid))
        time.sleep(0.02)
    return peak / 1e6


@pytest.mark.parametrize("kind", ["seeds", "links"])
@pytest_twisted.ensureDeferred
async def test_memory_does_not_grow_with_what_waits(tmp_path: Path, kind: str) -> None:
    """Many times as many seeds, or links on one page, take no more than 15 MB more."""
    peaks = []
    with Site() as site:
        for count in (2_000, 100_000 if kind == "seeds" else 30_000):
            if kind == "seeds":
                file = tmp_path / f"{count}.txt"
                file.write_text("".join(f"{url}\n" for url in site.urls(count)), encoding="utf-8")
                words = ["pages", "-a", f"seeds={file}"]
            else:
                words = ["site", "-a", f"url={site.url(f'/links/{count}')}"]
            peaks.append(await deferToThread(peak_mb, tmp_path / str(count), *words))
            assert site.stats().received >= 500
            site.forget()
    body_mb = 0.0 if kind == "seeds" else 2.0  # the page itself
    assert peaks[1] <= peaks[0] + 15.0 + body_mb
