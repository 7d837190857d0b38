"""Seeds from Redis: for spiders that run on and on and are fed from outside.

The rule it keeps: no more is taken than there is room for, and what was taken is in the queue again if this process dies
before the crawl has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request

from .control import Control
from .seedentries import BadEntry, mark, poison, request_of
from .stores.base import StoreBroken, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from .stores.redisseeds import SeedQueue

    _Base = Spider
else:
    _Base = object

IDLE_S = 1.0
BATCH = 100


class QueueMixin(_Base):
    """Put it before `Spider`: the spider's seeds come from a list, set or sorted set in Redis.

    Attributes:
        redis_key: ``%(name)s:start_urls`` unless it, or REDIS_START_URLS_KEY, says otherwise.
        redis_batch_size: Most entries taken at once; CONCURRENT_REQUESTS by default.
        redis_encoding: Of the entries.
        max_idle_time: Seconds without work after which the spider ends; 0: never. MAX_IDLE_TIME_BEFORE_CLOSE.
        seed_queue, idle_until_at: For those who show the crawl: where its seeds come from, and when (wall clock) it ends if
            none come.
    """

    redis_key: str | None = None
    redis_batch_size: int | None = None
    redis_encoding: str | None = None
    max_idle_time: float | None = None
    seed_queue = ""
    idle_until_at: float | None = None
    _said = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Read scrapy-redis's settings."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        settings = crawler.settings
        key = spider.redis_key or settings.get("REDIS_START_URLS_KEY") or "%(name)s:start_urls"
        spider.redis_key = key % {"name": spider.name, "spider": spider.name}
        if spider.redis_batch_size is None:
            spider.redis_batch_size = settings.getint("CONCURRENT_REQUESTS") or BATCH
        if spider.redis_encoding is None:
            spider.redis_encoding = settings.get("REDIS_ENCODING", "utf-8")
        if spider.max_idle_time is None:
            spider.max_idle_time = settings.getfloat("MAX_IDLE_TIME_BEFORE_CLOSE")
        return spider

    def make_request_from_data(self, data: bytes) -> Request | Iterable[Request]:
        """The request of one entry, or several; override it for entries of your own.

        Raises:
            BadEntry (or anything else): the entry goes to the poison list with the message.
        """
        return request_of(data, encoding=self.redis_encoding or "utf-8")

    async def start(self) -> AsyncIterator[Any]:
        """Take seeds as there is room, until nothing has come for `max_idle_time`."""
        # Every `scrapy` command loads every spider; Redis's client is for those that run this one.
        from .redissettings import RedisSettings  # noqa: PLC0415
        from .stores.redisseeds import SeedQueue  # noqa: PLC0415

        control = self.crawler.get_extension(Control)
        if control is None:
            raise RuntimeError("a queue needs Sluice: set SLUICE_ENABLED=True")
        where = RedisSettings.from_settings(
            self.crawler.settings, spider=self.name, frontier=control.config.frontier
        )
        queue = SeedQueue(
            client=where.client(), key=self.redis_key or "", lease_s=control.config.lease_s
        )
        control.entry_stored = queue.stored
        self.seed_queue = queue.key
        news = asyncio.Event()
        if control.shared is not None:
            control.shared.watches.queue(queue.key, queue.taker, news.set)
        self.logger.info("Reading seeds from %s", queue.key)
        try:
            async for request in self._seeds(control, queue, news):
                yield request
        finally:
            control.entry_stored = None
            self.seed_queue, self.idle_until_at = "", None
            if control.shared is not None:
                control.shared.watches.no_more(queue.key)
            await self._close(queue)

    async def _seeds(
        self, control: Control, queue: SeedQueue, news: asyncio.Event
    ) -> AsyncIterator[Request]:
        idle_since = time.monotonic()
        while True:
            taken = await self._take(control, queue)
            for entry, data in taken:
                for request in self._requests(queue, entry, data):
                    yield request
            idle_since = time.monotonic() if taken else idle_since
            while not taken:
                now = time.monotonic()
                if self._said or queue.left or control.everywhere or control.ledger.leases:
                    idle_since = now
                if self.max_idle_time:
                    left_s = idle_since + self.max_idle_time - now
                    self.idle_until_at = time.time() + left_s
                    if left_s <= 0:
                        return
                if await self._has_news(control, queue, news):
                    break

    async def _close(self, queue: SeedQueue) -> None:
        """Give back what was taken; if Redis is away, the next to ask takes it when its lease is over."""
        try:
            await queue.close()
        except StoreError as error:
            self.logger.warning("Seeds of %s that were taken go back later: %s", queue.key, error)

    async def _take(self, control: Control, queue: SeedQueue) -> list[tuple[int, bytes]]:
        """Some entries; none where there are none, or Redis does not answer now."""
        try:
            taken = await queue.take(min(self.redis_batch_size or BATCH, control.room_for_seeds()))
        except StoreBroken:
            raise
        except StoreError as error:
            if str(error) != self._said:
                self._said = str(error)
                self.seed_queue = f"{queue.key} (Redis is away)"
                self.logger.warning("Seeds wait: %s", error)
            return []
        self._said, self.seed_queue = "", queue.key
        return taken

    async def _has_news(self, control: Control, queue: SeedQueue, news: asyncio.Event) -> bool:
        """Rest a second, or until there are seeds. Is it worth asking the queue?

        A worker of a shared frontier speaks to Redis once a second as it is, and hears of the queue then.
        """
        if control.shared is None or queue.unsettled or queue.left or self._said:
            await asyncio.sleep(IDLE_S)
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await news.wait()
        came = news.is_set()
        news.clear()
        return came or queue.unsettled

    def _requests(self, queue: SeedQueue, entry: int, data: bytes) -> list[Request]:
        try:
            made = self.make_request_from_data(data)
            requests = [made] if isinstance(made, Request) else list(made or ())
            if not requests:
                raise BadEntry("no request was made of it")  # noqa: TRY301 - one way out for all
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this entry's alone
            reason = (
                str(error) if isinstance(error, BadEntry) else f"{type(error).__name__}: {error}"
            )
            self.logger.warning(
                "A bad entry of %s went to %s:poison: %s", queue.key, queue.key, reason
            )
            self.crawler.stats.inc_value("sluice/seeds/poisoned")
            queue.poisoned(entry, poison(data, reason, at=time.time()))
            return []
        self.crawler.stats.inc_value("sluice/seeds/read")
        mark(requests[-1], entry)
        return requests
