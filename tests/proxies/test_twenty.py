"""Twenty proxies that carry two requests each, before a host that takes thirty: the ceiling moves with the pool."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.proxies.tools import Watch, later, listed, trial
from tests.sites import Host, Site

LATENCY_S = 0.4


class Many(ListSpider):
    """Asks until it is told that it is enough."""

    enough = False
    site: Any = None

    async def start(self):
        for number in range(100_000):
            if self.enough:
                return
            yield self.request(number)

    def request(self, number: int):
        return Request(self.site.url(f"/page/{number}"))


def spread(pool: list[Any]) -> int:
    return sum(proxy.carried.in_flight for proxy in pool)


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.BAD_GATEWAY])
@pytest_twisted.ensureDeferred
async def test_half_of_the_pool_dies_and_comes_back(crawl, mood):  # noqa: PLR0915 - one story
    with Site(Host(latency_s=LATENCY_S)) as site:
        async with trial(20) as pool:
            spider = type("Many", (Many,), {"site": site})
            moments: dict[str, float] = {}
            failures: dict[str, int] = {}
            crawler: list[Any] = []

            def note(name: str) -> None:
                moments[name] = time.monotonic()
                stats = crawler[0].stats
                failures[name] = stats.get_value("sluice/proxies/failures", 0)
                failures[name + " asked"] = stats.get_value("scheduler/dequeued", 0)

            async def script() -> None:
                grown = asyncio.get_running_loop().time() + 20.0
                while spread(pool) < 30 and asyncio.get_running_loop().time() < grown:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(1.0)
                note("full")
                await asyncio.sleep(4.0)
                note("dies")
                for proxy in pool[:10]:
                    await proxy.turn(mood)
                await asyncio.sleep(3.0)
                note("half")
                await asyncio.sleep(6.0)
                note("rises")
                for proxy in pool[:10]:
                    await proxy.turn(Mood.GOOD)
                await asyncio.sleep(4.5)  # a probe interval is four seconds
                note("again")
                await asyncio.sleep(4.0)
                note("ends")
                crawler[0].spider.enough = True
                await crawler[0].engine.close_spider_async(reason="enough")

            class Seen(spider):
                @classmethod
                def from_crawler(cls, given, *args, **kwargs):
                    crawler.append(given)
                    return super().from_crawler(given, *args, **kwargs)

            with Watch(all=lambda: spread(pool), alive=lambda: spread(pool[10:])) as watch:
                scripted = later(script())
                result = await crawl(
                    Seen,
                    {
                        "SLUICE_PROXIES": listed(pool),
                        "SLUICE_PROXY_CONCURRENCY": 2,
                        "CONCURRENT_REQUESTS": 64,
                        "CONCURRENT_REQUESTS_PER_DOMAIN": 30,
                        "DOWNLOAD_TIMEOUT": 3,
                        "SLUICE_MAX_PENDING": 500,
                        "RETRY_TIMES": 0,
                    },
                )
                await scripted
            stats = site.stats()
            most = max(proxy.carried.max_in_flight for proxy in pool)

    def held(name: str, start: str, end: str) -> float:
        """In the best second of that time: a busy machine makes the host look slow in others."""
        first, last = moments[start], moments[end]
        seconds = [first + n / 4 for n in range(max(1, round(4 * (last - first - 1))))]
        seen = [watch.between(name, at, at + 1.0) for at in seconds]
        return max(
            median(values) for values in seen if values
        )  # a stalled machine looks at nothing

    assert stats.max_in_flight <= 30
    assert most <= 2
    assert held("all", "full", "dies") >= 28
    assert held("alive", "half", "rises") >= 18
    lost = failures["rises"] - failures["half"]
    assert lost <= 0.01 * (failures["rises asked"] - failures["half asked"])
    assert held("all", "again", "ends") >= 28
    assert letters() == []
    assert result.stats["sluice/bottleneck_seconds/pool_limit"] >= 4
    assert result.stats.get("retry/count", 0) == 0
    assert not result.stats.get("sluice/dead_letters")
