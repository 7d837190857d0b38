"""No proxy is healthy: nothing is sent, nothing is lost, and it goes on at once when one is back."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

import pytest
import pytest_twisted
from scrapy import Request
from twisted.internet.threads import deferToThread

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.conftest import scrapy_environment
from tests.proxies.tools import later, listed, trial
from tests.sites import Host, Site


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.HANG, Mood.BAD_GATEWAY])
@pytest_twisted.ensureDeferred
async def test_twenty_seconds_without_a_proxy_cost_nothing(crawl, mood):
    moments = {}
    with Site(Host(latency_s=0.2)) as site:
        async with trial(6) as pool:

            async def script() -> None:
                await asyncio.sleep(5.0)
                moments["dead"] = time.monotonic()
                for proxy in pool:
                    await proxy.turn(mood)
                await asyncio.sleep(20.0)
                moments["back"] = time.monotonic()
                for proxy in pool:
                    await proxy.turn(Mood.GOOD)

            class Spider(ListSpider):
                urls = tuple(site.urls(500))

            scripted = later(script())
            result = await crawl(
                Spider,
                {
                    "SLUICE_PROXIES": listed(pool),
                    "SLUICE_PROXY_CONCURRENCY": 2,
                    "DOWNLOAD_TIMEOUT": 2,
                    "RETRY_TIMES": 0,
                },
            )
            await scripted
    parsed = result.crawler.spider.parsed_due
    assert len(parsed) == 500
    assert letters() == []
    assert "retry/count" not in result.stats
    assert result.stats["sluice/complete"] is True
    assert not [due for due in parsed if moments["dead"] + 2.5 < due < moments["back"]]
    first = min(due for due in parsed if due > moments["back"])
    assert first - moments["back"] < (7.0 if mood is Mood.HANG else 5.0)
    said = " ".join(result.messages())
    assert "No healthy proxy: 0 of 6" in said
    assert result.stats["sluice/bottleneck_seconds/no_proxy"] > 10


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.HANG])
@pytest_twisted.ensureDeferred
async def test_a_crawl_without_proxies_ends_at_a_signal(tmp_path, mood):
    seeds = tmp_path / "seeds.txt"
    with Site() as site:
        seeds.write_text("\n".join(site.urls(50)))
        async with trial(3) as pool:
            for proxy in pool:
                await later(proxy.turn(mood))

            def run() -> tuple[int, float, str]:
                process = subprocess.Popen(
                    [
                        sys.executable, "-m", "scrapy", "crawl", "pages", "-a", f"seeds={seeds}",
                        "-s", "SLUICE_PROXIES=" + ",".join(listed(pool)),
                        "-s", f"JOBDIR={tmp_path / 'job'}",
                    ],
                    cwd=tmp_path,
                    env=scrapy_environment(),
                    stderr=subprocess.PIPE,
                    text=True,
                )  # fmt: skip
                time.sleep(6.0)
                process.send_signal(signal.SIGINT)
                asked = time.monotonic()
                _, err = process.communicate(timeout=40)
                return process.returncode, time.monotonic() - asked, err

            code, took_s, err = await deferToThread(run)
        assert site.stats().received == 0  # never directly
    assert took_s < 5.0
    assert code == 4, err
    assert "50 of 50 pages left" in err
    assert "Traceback" not in err


@pytest_twisted.ensureDeferred
async def test_only_who_is_told_to_goes_directly(crawl):
    with Site() as site:
        async with trial(2) as pool:
            for proxy in pool:
                await later(proxy.turn(Mood.REFUSE))
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(20))}),
                {"SLUICE_PROXIES": listed(pool), "SLUICE_PROXY_DIRECT": True},
            )
        assert site.stats().received == 21  # robots.txt too
    assert len(result.items) == 20


@pytest_twisted.ensureDeferred
async def test_requests_without_a_proxy_of_the_pool_do_not_wait_for_it(crawl):
    with Site(Host(), Host()) as site:
        async with trial(3) as pool:
            for proxy in pool[:2]:
                await later(proxy.turn(Mood.REFUSE))

            class Spider(ListSpider):
                async def start(self):
                    for url in site.urls(10):
                        yield Request(url, meta={"proxy": None})
                    for url in site.urls(10, host=1):
                        yield Request(url, meta={"proxy": f"http://{pool[2].place}"})

            result = await crawl(
                Spider, {"SLUICE_PROXIES": listed(pool[:2]), "ROBOTSTXT_OBEY": False}
            )
    assert len(result.items) == 20
    assert pool[2].carried.requests == 10
