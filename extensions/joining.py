"""How a worker joins a crawl that is in Redis.

The rule it keeps: what is under the keys is looked at before it is touched, and what is not this program's stays.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from .distributed import Distributed
from .opened import Opened
from .redissettings import RedisSettings
from .stores.redis import RedisJobStore
from .stores.redisscripts import RedisAway
from .stores.redisvalues import Terms
from .stores.sqlite import SqliteJobStore

if TYPE_CHECKING:
    from .control import Control

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
"""A Redis that is not there yet (it starts beside the worker) is waited for so long."""
BETWEEN_TRIES_S = 1.0


async def open_shared(control: Control) -> Opened:
    """Join the crawl in Redis as a new worker.

    Raises:
        StoreError: Redis does not answer, refuses, or holds something else under the keys.
        BadSetting: a setting of scrapy-redis's that cannot be meant.
    """
    config = control.config
    where = RedisSettings.from_settings(
        control.crawler.settings, spider=control.spider.name, frontier=config.frontier
    )
    store = RedisJobStore(
        client=where.client(),
        local=SqliteJobStore(path=None, durable=False, spider=control.spider.name),
        requests_key=where.requests_key,
        dupefilter_key=where.dupefilter_key,
        terms=Terms(lease_s=config.lease_s, workers_per_domain=config.workers_per_domain),
        window=config.memory_window,
        first_domains=control.crawler.settings.getint("CONCURRENT_REQUESTS"),
    )
    shared = Distributed(control=control, store=store, persist=where.persist)
    await _connect(store, flush=where.flush_on_start)
    logger.info(
        "Joined the job in Redis (%s) as worker %d of %d: %d requests are known",
        where.requests_key,
        store.number,
        store.totals.workers,
        store.totals.rows,
    )
    if store.memory.evicts:
        logger.warning(
            "Redis throws keys away when it is full (maxmemory-policy %s): requests would be lost."
            " Set it to noeviction",
            store.memory.policy,
        )
    return Opened(store=store, durable=True, recovered=store.open(), shared=shared)


async def _connect(store: RedisJobStore, *, flush: bool) -> None:
    for tries_left in range(int(PATIENCE_S / BETWEEN_TRIES_S), -1, -1):
        try:
            if flush and not await store.flush():
                logger.warning("SCHEDULER_FLUSH_ON_START was ignored: other workers are at work")
            await store.connect()
        except RedisAway as error:
            if not tries_left:
                raise
            if tries_left == int(PATIENCE_S / BETWEEN_TRIES_S):
                logger.warning("%s It is tried again for %g s", error, PATIENCE_S)
            await asyncio.sleep(BETWEEN_TRIES_S)
        else:
            return
