"""Crawl a hostile site of its own, on this machine, without any network.

scrapy crawl demo [-a scale=SHARE] [-a proxies=1]
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request, Spider, signals

from extensions.arguments import BadArgument, refuse_unknown
from extensions.commandline import leaves_no_trace
from extensions.trial import HostResult, report, scaled
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from extensions.trial.pool import TrialPool

SHOW_EVERY_S = 5.0


class DemoSpider(Spider):
    """Starts seven hosts that limit, time out, fail and dawdle, crawls them, and shows a table.

    With `-a scale=0.2` each host has a fifth of its pages. With `-a proxies=1` all goes through eight proxies of its own, half
    of which die after a while and come back.
    """

    name = "demo"
    optional_arguments: ClassVar[dict[str, str]] = {"scale": "SHARE", "proxies": "1"}
    custom_settings = {  # noqa: RUF012 - as Scrapy types it
        "LOG_LEVEL": "ERROR",
        "RETRY_TIMES": 3,
        "STATS_DUMP": False,
        "SLUICE_FAIL_ON": "never",  # some of its pages are made to be lost
        "SLUICE_DEAD_LETTERS": "",  # a replay could only fail: its hosts end with it
    }

    def __init__(
        self, name: str | None = None, *, scale: str = "1", proxies: str = "0", **other: Any
    ) -> None:
        super().__init__(name, **other)
        refuse_unknown(type(self), other)
        if proxies not in {"0", "1"}:
            raise BadArgument(f"proxies={proxies}: give 1 to go through proxies, or 0")
        # All spiders are loaded at once, and only this one needs a web server.
        from extensions.trial.site import TrialSite  # noqa: PLC0415

        self._site = TrialSite(scaled(_share(scale)))
        self._results = [HostResult() for _ in self._site.hosts]
        self._began_s = 0.0
        self._ticker: asyncio.TimerHandle | None = None
        self._proxies: TrialPool | None = None
        if proxies == "1":
            from extensions.trial.pool import TrialPool  # noqa: PLC0415 - as above

            self._proxies = TrialPool(say=_say)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> DemoSpider:
        """Close the site and show the table when everything else has ended."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        if spider._proxies is not None:  # noqa: SLF001 - its own
            for setting, value in spider._proxies.settings().items():  # noqa: SLF001
                crawler.settings.set(setting, value, priority="spider")
        crawler.signals.connect(spider.introduce, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.engine_stopped)
        return spider

    async def introduce(self) -> None:
        """Say what will be crawled, and start the proxies through which."""
        if self._proxies is not None:
            await self._proxies.open()
        if leaves_no_trace():
            return
        total = sum(host.pages for host in self._site.hosts)
        _say(f"A hostile site on this machine: {len(self._site.hosts)} hosts, {total:,} pages.")
        for host in self._site.hosts:
            _say(f"  {host.name:14} {host.pages:4} pages, {host.story}")

    async def start(self) -> AsyncIterator[Request]:
        """Start the site, and ask for all its pages, host after host."""
        loop = asyncio.get_running_loop()
        await self._site.open()
        self._began_s = loop.time()
        if not sys.stderr.isatty():  # a terminal has a display of its own
            self._tick()
        for place, host in enumerate(self._site.hosts):
            for number in range(host.pages):
                yield Request(
                    self._site.url(place, number),
                    self.parse,
                    errback=self.note_loss,
                    cb_kwargs={"place": place},
                    meta={"download_timeout": host.timeout_s},
                )

    def parse(self, response: Response, place: int) -> Iterator[Page]:
        """Yield the page, and note what the crawler allows this host at this moment.

        @url http://harbor.example/page/1
        @cb_kwargs {"place": 1}
        @fixture guide.html
        @returns items 1 1
        @returns requests 0 0
        @fields url status title fetched_at
        """
        now_s = asyncio.get_running_loop().time()
        governor = self._governor(response)
        pace = getattr(governor, "pace", None)
        self._results[place].note_page(now_s, pace, getattr(governor, "concurrency", None))
        yield Page.of(response)

    def note_loss(self, failure: Failure) -> None:
        """One request was given up."""
        self._results[failure.request.cb_kwargs["place"]].dead += 1  # type: ignore[attr-defined]

    async def end(self) -> None:
        """Close the site and show the table."""
        if not self._began_s:
            return
        if self._ticker:
            self._ticker.cancel()
        if self._proxies is not None:
            await self._proxies.close()
        await self._site.close()
        places = range(len(self._site.hosts))
        took_s = asyncio.get_running_loop().time() - self._began_s
        seen = [self._site.seen(place) for place in places]
        _say("\n" + report(self._site.hosts, self._results, seen, took_s=took_s))

    def _governor(self, response: Response) -> Any:
        """What rules the host of *response*; None under a scheduler that has no such thing."""
        find = getattr(self.crawler.engine.scheduler, "governor", None)
        return find(response.url.split("/")[2]) if find else None

    def _tick(self) -> None:
        """Say how far it is, now and again."""
        loop = asyncio.get_running_loop()
        took_s = loop.time() - self._began_s
        if took_s >= SHOW_EVERY_S:
            got = sum(result.pages for result in self._results)
            dead = sum(result.dead for result in self._results)
            _say(f"{took_s:4.0f} s  {got:5,} pages, {dead} given up")
        self._ticker = loop.call_later(SHOW_EVERY_S, self._tick)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 10:  # noqa: PLR2004
        raise BadArgument(f"scale={text}: give a share of the pages, over 0 and up to 10")
    return share


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
