"""What else goes through the pool, sessions, and lists that change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import pytest_twisted
from scrapy import Request

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.proxies.tools import later, listed, trial
from tests.sites import Answer, Host, Route, Site


@pytest.mark.parametrize("limit", [1, 8])
@pytest_twisted.ensureDeferred
async def test_robots_and_files_go_through_it_and_their_failures_cost_nothing(crawl, limit):
    with Site(Host(latency_s=0.02)) as site:
        async with trial(2) as pool:
            await later(pool[0].turn(Mood.REFUSE))

            class Spider(ListSpider):
                urls = tuple(site.urls(12))

                async def parse(self, response):
                    file = await self.crawler.engine.download_async(
                        Request(f"{response.url}/file", meta={"dont_obey_robotstxt": False})
                    )
                    assert file.status == 200
                    yield {"url": response.url}

            result = await crawl(
                Spider, {"SLUICE_PROXIES": listed(pool), "SLUICE_PROXY_CONCURRENCY": limit}
            )
            assert site.stats().received == len(pool[1].carried.paths)
            assert "/robots.txt" in pool[1].carried.paths
    assert len(result.items) == 12
    assert letters() == []


@pytest_twisted.ensureDeferred
async def test_a_session_has_one_proxy_and_its_cookies(crawl):
    cookie = (("Set-Cookie", "who=me; Path=/"),)
    with Site(Host(routes=(Route("/*", (Answer(headers=cookie),)),), latency_s=0.05)) as site:
        async with trial(4) as pool:

            class Spider(ListSpider):
                seen: dict[str, set[tuple[str, str]]] = {}
                died = False

                async def start(self):
                    for number in range(60):
                        name = f"s{number % 3}"
                        yield Request(site.url(f"/{number}"), meta={"sluice_session": name})

                def parse(self, response):
                    meta = response.meta
                    pair = (meta["sluice_proxy"], meta["cookiejar"])
                    self.seen.setdefault(meta["sluice_session"], set()).add(pair)
                    yield {"url": response.url}

            result = await crawl(Spider, {"SLUICE_PROXIES": listed(pool), "ROBOTSTXT_OBEY": False})
            assert sum(bool(proxy.carried.cookies) for proxy in pool) <= 3
    assert len(result.items) == 60
    seen = result.crawler.spider.seen
    assert all(len(pairs) == 1 for pairs in seen.values())
    assert len({jar for pairs in seen.values() for _, jar in pairs}) == 3


@pytest_twisted.ensureDeferred
async def test_a_session_whose_proxy_dies_goes_on_with_another_and_new_cookies(crawl):
    cookie = (("Set-Cookie", "who=me; Path=/"),)
    with Site(Host(routes=(Route("/*", (Answer(headers=cookie),)),), latency_s=0.05)) as site:
        async with trial(2) as pool:

            class Spider(ListSpider):
                seen: list[str] = []

                async def start(self):
                    yield Request(site.url("/0"), meta={"sluice_session": "s"})

                async def parse(self, response):
                    number = len(self.seen)
                    self.seen.append(response.meta["sluice_proxy"])
                    if number == 5:
                        for proxy in pool:
                            if proxy.place == self.seen[-1]:
                                await proxy.turn(Mood.REFUSE)
                    if number < 10:
                        # As people do it: with all of the answer's meta.
                        yield Request(site.url(f"/{number + 1}"), meta=response.meta)
                    yield {"url": response.url}

            result = await crawl(Spider, {"SLUICE_PROXIES": listed(pool), "ROBOTSTXT_OBEY": False})
            counts = sorted(len(proxy.carried.cookies) for proxy in pool)
    assert len(result.items) == 11
    assert len(set(result.crawler.spider.seen)) == 2
    assert counts == [4, 5]  # the first request of each had no cookie yet


@pytest_twisted.ensureDeferred
async def test_a_file_is_read_again_when_it_changes(crawl):
    with Site(Host(latency_s=0.05)) as site:
        async with trial(2) as pool:
            await later(pool[0].turn(Mood.REFUSE))
            Path("proxies.txt").write_text(f"# first\n{pool[0].place}\n", encoding="utf-8")

            async def script() -> None:
                await asyncio.sleep(2.5)
                text = f"{pool[1].place}\nhttp://u:geheim@nowhere\n"
                Path("proxies.txt").write_text(text, encoding="utf-8")

            scripted = later(script())
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(20))}),
                {"SLUICE_PROXIES": "./proxies.txt"},
            )
            await scripted
    assert len(result.items) == 20
    said = " ".join(record.getMessage() for record in result.logs)
    assert "Left out of ./proxies.txt: line 2" in said
    assert "1 new, 1 gone, 1 now" in said
    assert "geheim" not in said


@pytest_twisted.ensureDeferred
async def test_an_address_gives_the_list_and_one_that_fails_changes_nothing(crawl):
    async with trial(1) as pool:
        once = (Answer(body=pool[0].place), Answer(500, body="broken"))
        with Site(Host(latency_s=0.3, routes=(Route("/list", once),))) as site:
            result = await crawl(
                type("S", (ListSpider,), {"urls": tuple(site.urls(60))}),
                {"SLUICE_PROXIES": site.url("/list?token=geheim"), "SLUICE_PROXY_REFRESH_S": 1},
            )
            assert site.stats().hits["/list?token=geheim"] >= 2
    assert len(result.items) == 60
    said = " ".join(record.getMessage() for record in result.logs)
    assert "cannot be read" in said
    assert "The 1 known so far go on" in said
    assert "geheim" not in said


@pytest_twisted.ensureDeferred
async def test_a_list_that_is_not_there_ends_the_crawl_before_its_first_request(crawl, site):
    result = await crawl(
        type("S", (ListSpider,), {"urls": tuple(site.urls(3))}), {"SLUICE_PROXIES": "gone.txt"}
    )
    assert result.reason == "no_proxies"
    assert result.stats["sluice/exit_code"] == 75
    assert site.stats().received == 0
    assert "The proxy list gone.txt cannot be read: No such file or directory" in result.messages()
