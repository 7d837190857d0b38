"""The account adds up at every sample of a hostile crawl, and in every view of its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request, Spider, signals

from extensions.overview import Overview
from extensions.policy.bottleneck import Code
from tests.sites import Answer, Bucket, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from scrapy.http import Response

    from extensions.snapshot import Snapshot

HOSTS = (
    Host(
        limit=Bucket(rate=40, burst=10),
        robots="User-agent: *\nDisallow: /secret\n",
        routes=(
            Route("/lost/*", (Answer(status=404),)),
            Route("/moved/*", (Answer(status=302, headers=(("Location", "/page/900"),)),)),
            Route("/flaky/*", (Answer(status=500), Answer())),
            Route("/broken/*", (Answer(status=500),)),
        ),
    ),
    Host(latency_s=0.05),
)


class Mixed(Spider):
    """Pages, links, redirects, retries, losses, duplicates, errors, forbidden ones."""

    name = "mixed"
    urls: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, dont_filter="again" in url)
        samplers = self.crawler.get_extension(Overview)
        assert samplers is not None
        assert samplers.sampler is not None

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if "/page/1" in response.url:
            for number in range(3):
                yield response.follow(f"/link/{response.url[-1]}{number}", callback=self.leaf)
        if response.url.endswith("/page/7"):
            raise KeyError("a bug in the spider")

    def leaf(self, response: Response) -> dict[str, str]:
        return {"url": response.url}


@pytest_twisted.ensureDeferred
async def test_the_sum_comes_out_at_every_sample(crawl: Callable[..., Any], tmp_path: Any) -> None:
    """Asked = got + dead letters + skipped + pending + delayed + in flight, all the time."""
    seen: list[Snapshot] = []

    class Watched(Mixed):
        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            spider = super().from_crawler(crawler, *args, **kwargs)

            def watch() -> None:
                crawler.get_extension(Overview).sampler.listeners.append(seen.append)

            crawler.signals.connect(watch, signals.engine_started, weak=False)
            return spider

    with Site(*HOSTS) as site:
        urls = [*site.urls(60, 0), *site.urls(60, 1)]
        for path in ("/lost/{}", "/moved/{}", "/flaky/{}", "/broken/{}", "/secret/{}", "/page/{}"):
            urls += site.urls(4, 0, path)
        done = await crawl(
            Watched,
            {"JOBDIR": "job", "RETRY_TIMES": 1, "SLUICE_RETRY_BASE_S": 0.2, "LOG_LEVEL": "DEBUG"},
            urls=tuple(urls),
        )
    assert len(seen) > 3
    assert [snapshot.account.difference for snapshot in seen] == [0] * len(seen)
    last = seen[-1]
    account = last.account
    assert account.left == 0
    assert account.got == done.stats["sluice/parsed"]
    assert account.dead == 4 + 4 + 2  # lost, broken, and the spider's bug on both hosts
    assert account.skipped == 4
    assert done.stats["sluice/account_off"] == 0
    assert done.stats["sluice/exit_code"] == 3
    assert last.code == Code.INCOMPLETE
    kept = json.loads((tmp_path / "job/report.json").read_text())
    assert kept["status"]["account"] == last.as_json()["account"]
    assert list(kept["bugs"]) == [next(iter(kept["bugs"]))]
    assert next(iter(kept["bugs"])).startswith("KeyError at real/test_account.py:")
