"""The Lua scripts and the one way to run them; and what a failure of Redis means.

The rule it keeps: a failure is either worth waiting out (`RedisAway`, `RedisFull`) or it is not (`RedisRefused`), and which
it is is decided here, once.
"""

from __future__ import annotations

import hashlib
import time
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from redis import exceptions as errors

from .base import StoreBroken, StoreBusy, StoreFull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    Argument = bytes | str | int | float

_FLAGS: Final = {"apply": "", "relief": "flags=allow-oom", "open": ""}
_SOURCE: Final = {"relief": "apply"}
"""`relief` is `apply` for a server that is full: it may run there, and is sent what frees memory only."""
_USUAL_FLAGS: Final = "flags=allow-oom"
_AT_ONCE: Final = 1000
NAMES: Final = ("open", "apply", "relief", "fetch", "leave")

_NOT_MENDED_BY_WAITING: Final = ("NOAUTH", "WRONGPASS", "NOPERM", "invalid username-password")


class RedisAway(StoreBusy):
    """It does not answer, is loading, fails over, or refuses writes for now: try the same again."""


class RedisFull(StoreFull):
    """`maxmemory` is reached: only what frees memory may go."""


class RedisRefused(StoreBroken):
    """The password is wrong, or a right is missing: no retry will mend it."""


class Scripts:
    """The scripts of one server, loaded once."""

    def __init__(self, client: Redis, *, requests_key: str, dupefilter_key: str) -> None:
        """No I/O but for reading the package's own files."""
        self._client = client
        self._keys = (requests_key, dupefilter_key)
        self._texts = {name: _text(name) for name in NAMES}
        self._digests = {
            name: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
            for name, text in self._texts.items()
        }

    async def load(self) -> None:
        """Have the server keep them."""
        try:
            pipeline = self._client.pipeline(transaction=False)
            for text in self._texts.values():
                pipeline.script_load(text)
            await pipeline.execute()
        except (errors.RedisError, OSError, TimeoutError) as error:
            raise judge(error) from error

    async def run(self, *calls: tuple[str, Sequence[Argument]]) -> list[Any]:
        """Run some in one round trip. A failed one is an exception in the list, so that the others still count.

        Raises:
            RedisAway: nothing is known of what has run: run the same again.
        """
        try:
            replies = await self._send(calls)
            if any(isinstance(reply, errors.NoScriptError) for reply in replies):
                await self.load()  # the server was started again
                replies = await self._send(calls)
        except (errors.RedisError, OSError, TimeoutError) as error:
            raise judge(error) from error
        return [judge(reply) if isinstance(reply, Exception) else reply for reply in replies]

    async def _send(self, calls: Sequence[tuple[str, Sequence[Argument]]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for name, arguments in calls:
            pipeline.evalsha(self._digests[name], 2, *self._keys, *arguments)
        return await pipeline.execute(raise_on_error=False)


async def wipe(client: Redis, *, requests_key: str, dupefilter_key: str) -> bool:
    """Delete a job's keys, whoever wrote them. False: not while workers are at work.

    Raises:
        RedisAway, RedisRefused: as Redis says.
    """
    pattern = "".join(f"\\{c}" if c in "*?[]\\^" else c for c in requests_key)
    try:
        if await client.zcount(f"{requests_key}:workers", time.time() * 1000, "+inf"):
            return False
        await client.delete(requests_key, dupefilter_key)
        keys = [key async for key in client.scan_iter(match=f"{pattern}:*", count=_AT_ONCE)]
        for start in range(0, len(keys), _AT_ONCE):
            await client.delete(*keys[start : start + _AT_ONCE])
    except (errors.RedisError, OSError, TimeoutError) as error:
        raise judge(error) from error
    return True


def judge(error: Exception) -> Exception:
    """What *error* of redis-py's means here."""
    text = str(error) or type(error).__name__
    if isinstance(error, (errors.AuthenticationError, errors.NoPermissionError)) or any(
        word in text for word in _NOT_MENDED_BY_WAITING
    ):
        return RedisRefused(
            f"Redis refuses this worker ({text}): look at REDIS_URL, REDIS_PARAMS and the server's ACL."
        )
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return RedisRefused(
            f"Redis's certificate is not trusted ({text}): give ssl_ca_certs in REDIS_PARAMS or in the URL."
        )
    if isinstance(error, errors.OutOfMemoryError) or text.startswith("OOM") or "allow-oom" in text:
        return RedisFull("Redis is full (maxmemory is reached).")
    if text.startswith("MISCONF"):
        return RedisAway("Redis takes no writes, since it cannot save to its disk (MISCONF).")
    if text.startswith("NOREPLICAS"):
        return RedisAway("Redis takes no writes, since its replicas are away (NOREPLICAS).")
    if isinstance(error, errors.ReadOnlyError) or text.startswith("READONLY"):
        return RedisAway("Redis is a read-only replica now (a failover?).")
    if isinstance(error, errors.ResponseError) and text.startswith(("ERR", "WRONGTYPE")):
        return StoreBroken(f"Redis does not run a script: {text}")
    return RedisAway(f"Redis does not answer ({text}).")


def _text(name: str) -> str:
    folder = resources.files(__package__ or "").joinpath("lua")
    body = folder.joinpath(_SOURCE.get(name, name) + ".lua").read_text(encoding="utf-8")
    common = folder.joinpath("common.lua").read_text(encoding="utf-8")
    flags = _FLAGS.get(name, _USUAL_FLAGS)
    return f"#!lua {flags}".rstrip() + f"\n-- {name}\n{common}\n{body}"
