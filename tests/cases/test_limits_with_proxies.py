"""Twenty proxies are not twenty times the load on the host, unless somebody says so."""

from __future__ import annotations

import itertools

import pytest
import pytest_twisted

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.proxies.tools import listed, trial
from tests.sites import Host, Site

LIMITS = {
    "SLUICE_PROXY_CONCURRENCY": 1,
    "CONCURRENT_REQUESTS": 40,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
    "ROBOTSTXT_OBEY": False,
}


def gaps(site: Site) -> list[float]:
    at = [row.at for row in site.log()]
    return sorted(b - a for a, b in itertools.pairwise(at))


@pytest.mark.parametrize("by", ["both", "target"])
@pytest_twisted.ensureDeferred
async def test_the_hosts_own_limit_and_delay_hold_for_all_proxies_together(crawl, by):
    with Site(Host(latency_s=0.5)) as site:
        async with trial(20) as pool:
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(20))}),
                {
                    **LIMITS,
                    "SLUICE_PROXIES": listed(pool),
                    "SLUICE_LIMIT_BY": by,
                    "DOWNLOAD_DELAY": 0.2,
                    "DOWNLOAD_DELAY_JITTER": 0,
                },
            )
            used = sum(proxy.carried.requests > 0 for proxy in pool)
        assert site.stats().max_in_flight <= 2
        assert gaps(site)[1] >= 0.15
    assert len(result.items) == 20
    assert used >= 10  # they take turns
    assert result.crawler.engine is not None
    assert set(result.crawler.stats.get_stats()) & {"sluice/proxies"}


@pytest_twisted.ensureDeferred
async def test_by_proxy_the_limit_holds_for_each(crawl):
    with Site(Host(latency_s=0.5)) as site:
        async with trial(20) as pool:
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(100))}),
                {**LIMITS, "SLUICE_PROXIES": listed(pool), "SLUICE_LIMIT_BY": "proxy"},
            )
            assert max(proxy.carried.max_in_flight for proxy in pool) == 1
        assert 12 <= site.stats().max_in_flight <= 20
    assert len(result.items) == 100


@pytest.mark.parametrize(("by", "host_waits"), [("both", True), ("target", True), ("proxy", False)])
@pytest_twisted.ensureDeferred
async def test_a_429_holds_back_the_host_or_the_pair(crawl, by, host_waits):
    with Site(Host(latency_s=0.05)) as site:
        async with trial(20) as pool:

            class Spider(ListSpider):
                urls = tuple(site.urls(400))

                def parse(self, response):
                    # The queue is the host's, whatever proxies its requests go through.
                    assert response.meta["download_slot"] == site.domain()
                    turn = len(self.parsed) >= 150 and not pool[0].carried.turned_away
                    pool[0].mood = Mood.TOO_MANY if turn else Mood.GOOD
                    return super().parse(response)

            result = await crawl(
                Spider,
                {
                    **LIMITS,
                    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
                    "SLUICE_PROXIES": listed(pool),
                    "SLUICE_LIMIT_BY": by,
                },
            )
            assert pool[0].carried.turned_away >= 1
        still = gaps(site)[-1]
    assert len(result.items) == 400
    assert (still >= 1.5) is host_waits, still
    assert letters() == []
