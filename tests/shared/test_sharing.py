"""Several workers share what there is, and one that has nothing to do hardly speaks."""

from __future__ import annotations

import asyncio
import time

import pytest_twisted

from spiders.queue import QueueSpider
from tests.shared.workers import Worker
from tests.sites import Host, Site


def claims(server):
    return {
        domain: holders.decode().split()
        for domain, holders in server.client.hgetall("pages:requests:claims").items()
    }


def test_a_worker_that_comes_later_gets_its_share_of_the_domains(server, tmp_path):
    with Site(*[Host(latency_s=0.4) for _ in range(16)]) as site:
        urls = [site.url(f"/page/{n}", host) for n in range(45) for host in range(16)]
        (tmp_path / "s").write_text("\n".join(urls))
        settings = {
            "SLUICE_FRONTIER": server.url,
            "SLUICE_LEASE_S": "5",
            "SCHEDULER_PERSIST": "True",
            "CONCURRENT_REQUESTS_PER_DOMAIN": "1",
        }
        first = Worker(tmp_path / "a", "pages", f"seeds={tmp_path / 's'}", **settings)
        deadline = time.monotonic() + 30
        while server.client.hlen("pages:requests:claims") < 16:
            assert time.monotonic() < deadline, first.text()[-2000:]
            time.sleep(0.05)
        second = Worker(tmp_path / "b", "pages", f"seeds={tmp_path / 's'}", **settings)
        joined = shared = None
        while (joined is None or shared is None) and time.monotonic() < deadline + 20:
            now, holders = time.monotonic(), claims(server)
            assert all(len(holding) == 1 for holding in holders.values())
            if joined is None and server.client.zcard("pages:requests:workers") == 2:
                joined = now
            if sum("2" in holding for holding in holders.values()) >= 8:
                shared = now
            time.sleep(0.02)
        assert [first.wait(90), second.wait(90)] == [0, 0]
        assert joined is not None
        assert shared is not None
        print(f"its share after {shared - joined:.1f} s")
        assert shared - joined < 10
        pages = [
            len((tmp_path / name / "results/pages.jsonl").read_text().splitlines()) for name in "ab"
        ]
        print(f"pages of the first and the second: {pages}")
        assert sum(pages) == len(urls)
        assert min(pages) > len(urls) / 5
        assert max(stats.max_in_flight for stats in site.all_stats()) == 1


@pytest_twisted.ensureDeferred
async def test_an_idle_worker_hardly_speaks_and_is_awake_at_once(crawl, site, server, shared):
    seen = {}

    async def feed():
        loop = asyncio.get_running_loop()

        def rounds() -> int:
            stats = server.client.info("commandstats")
            return stats.get("cmdstat_evalsha", {"calls": 0})["calls"]

        await asyncio.sleep(2.0)
        before = await loop.run_in_executor(None, rounds)
        await asyncio.sleep(4.0)
        seen["commands"] = await loop.run_in_executor(None, rounds) - before
        seen["pushed"] = time.time()
        await loop.run_in_executor(
            None, lambda: server.client.rpush("queue:start_urls", site.url("/page/1"))
        )

    feeding = asyncio.ensure_future(feed())
    await crawl(QueueSpider, {**shared, "MAX_IDLE_TIME_BEFORE_CLOSE": 9, "ROBOTSTXT_OBEY": False})
    await feeding
    (received,) = site.log()
    assert received.at - seen["pushed"] < 1.3
    assert seen["commands"] <= 2 * 5  # one for the frontier, one for the queue, each second
