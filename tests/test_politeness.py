"""The user's and the sites' own limits."""

from __future__ import annotations

from itertools import pairwise

import pytest
import scrapy
from protego import Protego
from pytest_twisted import ensureDeferred
from scrapy.settings import Settings

from extensions.policy.governor import DomainGovernor
from extensions.politeness import UNLIMITED, Politeness
from tests.sites import Host, Site


def politeness(draw: float = 0.5, **settings) -> Politeness:
    return Politeness(settings=Settings(settings), draw=lambda: draw)


class Robots:
    """What Scrapy's parser is to Politeness: the real Protego behind the same two names."""

    def __init__(self, text: str) -> None:
        self.rp = Protego.parse(text)

    def crawl_delay(self, agent: str) -> float | None:
        return self.rp.crawl_delay(agent)


def test_the_ceiling_of_a_domain_is_its_slots_or_the_settings_and_never_over_the_total():
    polite = politeness(
        CONCURRENT_REQUESTS=10,
        CONCURRENT_REQUESTS_PER_DOMAIN=6,
        DOWNLOAD_SLOTS={"one": {"concurrency": 1}, "many": {"concurrency": 50}},
    )
    assert [polite.ceiling(d) for d in ("other", "one", "many")] == [6, 1, 10]


def test_a_slot_is_named_by_host_and_port_or_as_in_scrapy_by_the_host():
    polite = politeness(DOWNLOAD_SLOTS={"a.example": {"delay": 3}, "a.example:81": {"delay": 5}})
    domains = ("a.example", "a.example:80", "a.example:81", "b.example:80", "example")
    assert [polite.min_delay_s(domain) for domain in domains] == [3, 3, 5, 0, 0]


def test_nought_means_no_limit():
    polite = politeness(CONCURRENT_REQUESTS=0, CONCURRENT_REQUESTS_PER_DOMAIN=0)
    assert polite.ceiling("any") == UNLIMITED


@pytest.mark.parametrize(("draw", "gap_s"), [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0)])
def test_the_users_delay_is_jittered_as_in_scrapy(draw, gap_s):
    polite = politeness(draw, DOWNLOAD_DELAY=2, DOWNLOAD_DELAY_JITTER=0.5)
    governor = DomainGovernor(max_concurrency=8, u=lambda: 0.5)
    governor.sent(100.0)
    polite.draw_gap("a", governor)
    assert governor.next_send_due(100.0, 0) == pytest.approx(100.0 + gap_s)


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("User-agent: *\nCrawl-delay: 3\n", 3.0),
        ("User-agent: *\nRequest-rate: 1/5\n", 5.0),
        ("User-agent: *\nCrawl-delay: 7\nRequest-rate: 1/5\n", 7.0),
        ("User-agent: *\nDisallow:\n", 0.0),
    ],
)
def test_robots_txt_asks_by_crawl_delay_or_request_rate(text, delay_s):
    polite = politeness()
    assert polite.note_robots("a", Robots(text), "Sluice") == delay_s
    fresh = DomainGovernor(max_concurrency=8, u=lambda: 0.5)
    polite.set_floors("a", fresh)
    fresh.sent(100.0)
    assert fresh.next_send_due(100.0, 0) == pytest.approx(100.0 + delay_s)


class Seeds(scrapy.Spider):
    name = "seeds"

    def __init__(self, urls, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = urls

    def parse(self, response):
        return None


@ensureDeferred
async def test_a_crawl_keeps_the_crawl_delay(crawl):
    with Site(Host(robots="User-agent: *\nCrawl-delay: 0.3\n")) as site:
        done = await crawl(Seeds, urls=site.urls(5))
        times = [r.at for r in site.log() if r.target != "/robots.txt"]
    assert done.stats["sluice/parsed"] == 5
    # The first page left before robots.txt was known to ask for more.
    gaps = [b - a for a, b in pairwise(times[1:])]
    assert min(gaps) > 0.25
