"""A ban is one proxy's at one host; no callback sees it, and it is not taken from a cache either."""

from __future__ import annotations

import pytest_twisted

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.proxies.tools import listed, trial
from tests.sites import Answer, Host, Route, Site

ODD = (
    Route("/moved", (Answer(302, (("Location", "/page/1000"),), body=""),)),
    Route("/missing", (Answer(404, body="no such page"),)),
    Route(
        "/busy",
        (Answer(503, (("X-Provider", "banned"),), body=""), Answer(body="<title>x</title>")),
    ),
)


class Strict(ListSpider):
    handle_httpstatus_list = [404]

    def is_ban(self, response):
        if "X-Provider" in response.headers:
            return True
        if response.url.endswith("/page/3"):
            raise RuntimeError("a rule that fails")
        return response.status == 200 and not response.body

    def parse(self, response):
        assert response.body
        assert b"Just a moment" not in response.body
        return super().parse(response)


@pytest_twisted.ensureDeferred
async def test_other_proxies_carry_on_and_no_ban_page_is_parsed(crawl):
    with Site(Host(routes=ODD, latency_s=0.02)) as site:
        async with trial(3) as pool:
            pool[0].mood, pool[1].mood = Mood.BAN, Mood.EMPTY
            urls = [*site.urls(60), *(site.url(p) for p in ("/moved", "/missing", "/busy"))]
            settings = {
                "SLUICE_PROXIES": listed(pool),
                "SLUICE_PROXY_BAN_S": 60,
                "HTTPCACHE_ENABLED": True,
                "ROBOTSTXT_OBEY": False,
                "RETRY_TIMES": 0,
            }
            result = await crawl(type("S", (Strict,), {"urls": tuple(urls)}), settings)
            again = await crawl(type("S", (Strict,), {"urls": tuple(urls)}), settings)
    assert len(result.crawler.spider.parsed) == len(urls)
    assert letters() == []
    bans = result.stats["sluice/proxies/bans"]
    assert 3 <= bans <= 20  # what was in flight when each was first banned
    assert pool[0].carried.requests + pool[1].carried.requests <= bans + 4
    assert not result.stats.get("sluice/proxies/rests")  # the proxies themselves are well
    assert result.stats["sluice/ban_rule_errors"] >= 1
    assert len(again.crawler.spider.parsed) == len(
        urls
    )  # from the cache, or fetched where a ban was in it


@pytest_twisted.ensureDeferred
async def test_with_all_banned_each_request_is_tried_as_often_as_allowed(crawl):
    with Site(Host()) as site:
        async with trial(3) as pool:
            for proxy in pool:
                proxy.mood = Mood.BAN
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(5))}),
                {
                    "SLUICE_PROXIES": listed(pool),
                    "SLUICE_PROXY_BAN_S": 0.05,
                    "SLUICE_MAX_REFUSALS": 2,
                    "ROBOTSTXT_OBEY": False,
                },
            )
        assert site.stats().received == 0
    assert result.crawler.spider.parsed == []
    rows = letters()
    assert [row["reason"] for row in rows] == ["ban"] * 5
    assert {row["attempts"] for row in rows} == {3}
    assert sum(proxy.carried.requests for proxy in pool) == 15
    places = [proxy.place for proxy in pool]
    assert all(any(place in row["detail"] for place in places) for row in rows)
    assert all(b"sluice_proxy" not in row["payload"] for row in rows)
