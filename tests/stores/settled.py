"""The shared store as one that answers at once: after each call the exchange with Redis is run to its end.

So one contract suite says what both stores promise. Its loop runs in a thread of its own, since the tests run inside one.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from extensions.stores.redis import RedisJobStore
from extensions.stores.redisvalues import Terms
from extensions.stores.sqlite import SqliteJobStore

if TYPE_CHECKING:
    from pathlib import Path

    from extensions.stores.base import Batch, Recovered, StoredRequest


class SettledRedisStore:
    shared = True

    def __init__(self, url: str, folder: Path, *, max_crashes: int) -> None:
        self._url = url
        self._folder = folder
        self._max_crashes = max_crashes
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._store: RedisJobStore | None = None

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def open(self) -> Recovered:
        return self._run(self._open())

    async def _open(self) -> Recovered:
        self._store = RedisJobStore(
            client=Redis.from_url(self._url, protocol=2),
            local=SqliteJobStore(path=self._folder / "local.sqlite"),
            requests_key="s:requests",
            dupefilter_key="s:dupefilter",
            terms=Terms(max_crashes=self._max_crashes),
        )
        self._store.delivers(items=False, letters=False)
        self._store.wishes.due_by = 0.0
        await self._store.connect()
        await self._settle()
        return self._store.open()

    async def _settle(self) -> None:
        assert self._store is not None
        await self._store.exchange()
        while self._store.has_news:
            await self._store.exchange()

    def commit(self, batch: Batch) -> None:
        assert self._store is not None
        if self._loop.is_closed():
            self._store.commit(batch)
        self._run(self._commit(batch))

    async def _commit(self, batch: Batch) -> None:
        assert self._store is not None
        self._store.commit(batch)
        await self._settle()

    def refill_due(self, now_at: float, limit: int) -> tuple[list[StoredRequest], float | None]:
        """What is due comes by `refill`, since it joins its domain's line."""
        return self._run(self._refill_due(now_at, limit))

    async def _refill_due(
        self, now_at: float, limit: int
    ) -> tuple[list[StoredRequest], float | None]:
        store = self._store
        assert store is not None
        store.wishes.due_by, store.wishes.due_limit = now_at, limit
        await store.exchange()
        store.wishes.due_by = 0.0
        await self._settle()
        rows = [
            row for domain in store._hand.shelf.domains() for row in store.refill(domain, limit)
        ]
        return rows, store.refill_due(now_at, limit)[1]

    def seen(self, fingerprint: bytes) -> bool:
        """What this process does not know, Redis does: there it would be a duplicate."""
        return self._run(self._seen(fingerprint))

    async def _seen(self, fingerprint: bytes) -> bool:
        assert self._store is not None
        return self._store.seen(fingerprint) or bool(
            await self._store._client.sismember("s:dupefilter", fingerprint)
        )

    def close(self) -> None:
        if self._store is not None and self._thread.is_alive():
            self._run(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _close(self) -> None:
        assert self._store is not None
        await self._store.leave(crashed=True)
        self._store.close()
