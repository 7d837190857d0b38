"""A server that dawdles holds a place for as long as the request's own timeout says, and no longer."""

from __future__ import annotations

import socket
import time
from collections import defaultdict

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider, signals

from extensions.control import Control
from tests.cases.tools import letters
from tests.sites import Answer, Host, Route, Site

TIMEOUT_S = 0.8
BAD = 16
GOOD = 60
BODY = "x" * 1000


class Patient(Spider):
    """Bad URLs and good ones of one host, good ones of another; keeps the times of each attempt."""

    name = "patient"

    def __init__(self, bad, good, others, **kwargs):
        super().__init__(**kwargs)
        self.bad, self.good, self.others = bad, good, others
        self.sent_due: dict[Request, float] = {}
        self.took_s: dict[str, list[float]] = defaultdict(list)
        self.parsed_due: dict[str, float] = {}
        self.least = BAD
        self.last_bad_due = 0.0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin, signals.request_reached_downloader)
        crawler.signals.connect(spider.end, signals.request_left_downloader)
        return spider

    def begin(self, request):
        self.sent_due[request] = time.monotonic()

    def end(self, request):
        self.took_s[request.url].append(time.monotonic() - self.sent_due.pop(request))
        if request.url in self.bad:
            self.last_bad_due = time.monotonic()
        domain = self.crawler.get_extension(Control).domains.find(request.meta["download_slot"])
        if domain is not None and request.url in self.bad:
            self.least = min(self.least, domain.governor.concurrency)

    async def start(self):
        for number, url in enumerate((*self.good, *self.others)):
            yield Request(url)
            if number == len(self.good) // 4:
                for bad in self.bad:
                    yield Request(bad, meta={"download_timeout": TIMEOUT_S})

    def parse(self, response):
        self.parsed_due[response.url] = time.monotonic()
        yield {"url": response.url}


FAULTS = ("hang", "trickle", "stall")


@pytest.mark.parametrize("fast", [False, True])
@ensureDeferred
async def test_each_attempt_ends_at_its_own_timeout_and_good_pages_do_not_wait(crawl, fast):
    """Sixteen at once on one host: they end on time, the host gets fewer at once, all good pages come."""
    routes = tuple(
        Route(f"/{fault}/*", (Answer(fault=fault, body=BODY, every_s=0.4),)) for fault in FAULTS
    )
    # Nobody ever answers there: the TLS handshake hangs.
    with (
        Site(Host(routes=routes), Host(latency_s=0.02)) as site,
        socket.create_server(("127.0.0.1", 0)) as deaf,
    ):
        bad = [site.url(f"/{FAULTS[n % 3]}/{n}") for n in range(BAD - 1)]
        bad.append(f"https://127.0.0.1:{deaf.getsockname()[1]}/")
        settings = {
            "SLUICE_FAST_HANDLER": fast,
            "DOWNLOAD_TIMEOUT": 180,
            "RETRY_TIMES": 1,
            "SLUICE_RETRY_BASE_S": 0.2,
            "ROBOTSTXT_OBEY": False,
        }
        urls = {"good": site.urls(GOOD), "others": site.urls(GOOD, host=1)}
        done = await crawl(Patient, settings, bad=bad, **urls)
    spider = done.crawler.spider
    for url in bad:
        assert len(spider.took_s[url]) == 2
        for took_s in spider.took_s[url]:
            assert TIMEOUT_S - 0.1 <= took_s <= TIMEOUT_S + 0.5, (url, spider.took_s[url])
    assert spider.parsed_due.keys() == {*urls["good"], *urls["others"]}
    # The other host's pages did not stand behind those.
    assert max(spider.parsed_due[url] for url in urls["others"]) < spider.last_bad_due
    assert spider.least < BAD
    assert done.stats["sluice/delayed"] >= BAD
    dead = {row["url"]: row for row in letters()}
    assert dead.keys() == set(bad)
    assert {row["reason"] for row in dead.values()} == {"timeout"}
    said = {"hang": "0 bytes", "stall": "900 bytes"}
    for url, row in dead.items():
        fault = url.split("/")[3] if url.startswith("http:") else "hang"
        assert "of the body" in row["detail"]
        if fault in said:
            assert said[fault] in row["detail"], row["detail"]
    assert done.stats["sluice/account_off"] == 0


@ensureDeferred
async def test_no_timeout_at_all_does_not_hang_the_crawl(crawl):
    """Zero and None are no reason to wait for ever: Scrapy takes its ten seconds to connect for both."""

    class Timeless(Spider):
        name = "timeless"
        url = ""

        async def start(self):
            for number, timeout_s in enumerate((0, None)):
                meta = {"download_timeout": timeout_s, "dont_retry": True}
                yield Request(f"{self.url}/{number}", meta=meta)

    with Site(Host(routes=(Route("/hang/*", (Answer(fault="hang"),)),))) as site:
        began = time.monotonic()
        await crawl(Timeless, {"ROBOTSTXT_OBEY": False}, url=site.url("/hang"))
        assert time.monotonic() - began < 25
    assert [row["reason"] for row in letters()] == ["timeout", "timeout"]
