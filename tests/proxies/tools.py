"""What the tests of proxies share: a row of trial proxies, and a look at a crawl while it runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import pytest_twisted
from twisted.internet.defer import Deferred

from extensions.trial.proxies import TrialProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., Any]:
    """Run an async test that mixes asyncio with crawls."""
    return pytest_twisted.ensureDeferred(test)


def later(awaitable: Any) -> Deferred[Any]:
    """*awaitable* as what a test may wait for."""
    return Deferred.fromFuture(asyncio.ensure_future(awaitable))


@asynccontextmanager
async def trial(count: int, **what: Any) -> AsyncIterator[list[TrialProxy]]:
    """*count* proxies that listen."""
    proxies = [TrialProxy(**what) for _ in range(count)]
    for proxy in proxies:
        await later(proxy.open())
    try:
        yield proxies
    finally:
        for proxy in proxies:
            await later(proxy.close())


def listed(proxies: list[TrialProxy]) -> list[str]:
    """They as the setting takes them."""
    return [f"http://{proxy.place}" for proxy in proxies]


class Watch:
    """Looks at numbers every few milliseconds while a crawl runs."""

    def __init__(self, **looks: Callable[[], float]) -> None:
        self._looks = looks
        self.seen: list[tuple[float, dict[str, float]]] = []
        self._task: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        while True:
            self.seen.append((time.monotonic(), {n: look() for n, look in self._looks.items()}))
            await asyncio.sleep(0.01)

    def __enter__(self) -> Self:
        self._task = asyncio.ensure_future(self._run())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    def between(self, name: str, start: float, end: float) -> list[float]:
        """The values of *name* in that time."""
        return [values[name] for at, values in self.seen if start <= at <= end]
