"""Several workers share what there is, and one that has nothing to do hardly speaks."""

from __future__ import annotations

import asyncio
import time

import pytest
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
        assert "Resumed the job in Redis with" in second.text()
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


COUNTED = 8.0


PUSHES = {
    "list": lambda client, key, url: client.rpush(key, url),
    "set": lambda client, key, url: client.sadd(key, url),
    "zset": lambda client, key, url: client.zadd(key, {url: 1.0}),
}


@pytest.mark.parametrize("kind", PUSHES)
@pytest_twisted.ensureDeferred
async def test_an_idle_worker_says_one_thing_a_second_and_is_awake_at_once(
    crawl, site, server, shared, kind
):
    pushed = []
    counts = []

    def commands() -> int:
        """What clients sent; what their scripts did is counted by the server under other names."""
        stats = server.client.info("commandstats")
        sent = ("evalsha", "eval", "ping", "hgetall", "auth", "hello")
        return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in sent)

    async def feed():
        await asyncio.sleep(2.5)
        counts.append(await asyncio.to_thread(commands))
        await asyncio.sleep(COUNTED)
        counts.append(await asyncio.to_thread(commands))
        for n in range(3):
            await asyncio.sleep(1.3)
            pushed.append(time.time())
            url = site.url(f"/page/{n}")
            await asyncio.to_thread(PUSHES[kind], server.client, "queue:start_urls", url)

    feeding = asyncio.ensure_future(feed())
    settings = {**shared, "CLOSESPIDER_ITEMCOUNT": 3, "ROBOTSTXT_OBEY": False}
    result = await crawl(QueueSpider, settings)
    await feeding
    waits = [hit.at - at for hit, at in zip(site.log(), pushed, strict=True)]
    print(f"{counts[1] - counts[0]} commands in {COUNTED} s; seen after", waits)
    assert counts[1] - counts[0] <= COUNTED + 1
    assert max(waits) < 1.3
    assert result.stats["sluice/bottleneck_seconds/idle"] > COUNTED
