"""A queue of seeds in Redis, taken so that none is lost: taken, then stored or poisoned, and back again if neither comes.

The rule it keeps: an entry is in the queue, taken by a living worker, in the crawl, or in the poison list.
"""

from __future__ import annotations

import hashlib
import uuid
from importlib import resources
from typing import TYPE_CHECKING, Any

from redis import exceptions as errors

from .redisscripts import judge

if TYPE_CHECKING:
    from redis.asyncio import Redis


class SeedQueue:
    """One worker's end of a queue.

    Args:
        client: From redis-py; closed by `close`.
        key: Of a list, a set or a sorted set.
        lease_s: A taker that is silent for so long loses what it took.
    """

    def __init__(self, *, client: Redis, key: str, lease_s: float) -> None:
        self.key = key
        self.left = 0  # entries in the queue, as of the last answer
        self._client = client
        self._lease_ms = int(lease_s * 1000)
        self.taker = uuid.uuid4().hex
        self._known = 0
        self._stored: dict[int, None] = {}
        self._poison: dict[int, str] = {}
        text = resources.files(__package__ or "").joinpath("lua", "seeds.lua")
        self._text = "#!lua flags=allow-oom\n" + text.read_text(encoding="utf-8")
        self._digest = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    def stored(self, entry: int) -> None:
        """The request of *entry* would survive a crash."""
        self._stored[entry] = None

    def poisoned(self, entry: int, why: str) -> None:
        """*entry* cannot be used; *why* goes to the poison list."""
        self._poison[entry] = why

    @property
    def unsettled(self) -> bool:
        """Is there something to tell?"""
        return bool(self._stored or self._poison)

    async def take(self, wanted: int) -> list[tuple[int, bytes]]:
        """Settle what was said, and take up to *wanted* entries.

        Raises:
            StoreBusy: Redis does not answer; call again.
            StoreBroken: it refuses, or the key is of another kind.
        """
        return await self._run(wanted, self._lease_ms)

    async def close(self) -> None:
        """Settle what was said, and give back the rest."""
        try:
            await self._run(0, 0)
        finally:
            await self._client.aclose()

    async def _run(self, wanted: int, lease_ms: int) -> list[tuple[int, bytes]]:
        stored, poison = dict(self._stored), dict(self._poison)
        arguments: list[Any] = [self.taker, lease_ms, wanted, self._known]
        arguments += [len(stored), *stored, len(poison)]
        for entry, why in poison.items():
            arguments += (entry, why)
        try:
            try:
                reply = await self._client.evalsha(self._digest, 1, self.key, *arguments)
            except errors.NoScriptError:
                reply = await self._client.eval(self._text, 1, self.key, *arguments)
        except (errors.RedisError, OSError, TimeoutError) as error:
            raise judge(error) from error
        for entry in stored:
            del self._stored[entry]
        for entry in poison:
            del self._poison[entry]
        flat, self.left = reply
        taken = [(int(flat[i]), bytes(flat[i + 1])) for i in range(0, len(flat), 2)]
        self._known = max([self._known, *(entry for entry, _ in taken)])
        return taken
