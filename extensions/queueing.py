"""Seeds from Redis: for spiders that run on and on and are fed from outside.

The rule it keeps: no more is taken than there is room for, and what was taken is in the queue again if this process dies
before the crawl has it.
"""

from __future__ import annotations

import asyncio
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
    """

    redis_key: str | None = None
    redis_batch_size: int | None = None
    redis_encoding: str | None = None
    max_idle_time: float | None = None

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
        self.logger.info("Reading seeds from %s", queue.key)
        try:
            async for request in self._seeds(control, queue):
                yield request
        finally:
            control.entry_stored = None
            await queue.close()

    async def _seeds(self, control: Control, queue: SeedQueue) -> AsyncIterator[Request]:
        idle_since = time.monotonic()
        said = ""
        while True:
            wanted = min(self.redis_batch_size or BATCH, control.room_for_seeds())
            try:
                taken = await queue.take(wanted)
            except StoreBroken:
                raise
            except StoreError as error:
                if str(error) != said:
                    said = str(error)
                    self.logger.warning("Seeds wait: %s", error)
                await asyncio.sleep(IDLE_S)
                continue
            said = ""
            for entry, data in taken:
                for request in self._requests(queue, entry, data):
                    yield request
            if taken or queue.left or control.everywhere or control.ledger.leases:
                idle_since = time.monotonic()
            elif self.max_idle_time and time.monotonic() - idle_since >= self.max_idle_time:
                return
            if not taken:
                await asyncio.sleep(IDLE_S)

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
