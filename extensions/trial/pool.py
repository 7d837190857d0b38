"""The trial's pool: half of its proxies die while the crawl runs, and come back."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

from .proxies import Mood, TrialProxy

if TYPE_CHECKING:
    from collections.abc import Callable

PROXIES = 8
AT_ONCE = 4
DIES_AFTER_S = 5.0
BACK_AFTER_S = 7.0
SHOW_EVERY_S = 1.0


class TrialPool:
    """Eight proxies and what happens to them.

    Args:
        say: Told, in a line of text, what happens and how many requests are on the proxies.
    """

    def __init__(self, *, say: Callable[[str], None]) -> None:
        self._say = say
        self._proxies = [TrialProxy() for _ in range(PROXIES)]
        for proxy, port in zip(self._proxies, _free_ports(PROXIES), strict=True):
            proxy.port = port
        self._task: asyncio.Task[None] | None = None

    def settings(self) -> dict[str, Any]:
        """What a crawl needs to go through them."""
        return {
            "SLUICE_PROXIES": [proxy.place for proxy in self._proxies],
            "SLUICE_PROXY_CONCURRENCY": AT_ONCE,
        }

    async def open(self) -> None:
        """Listen, and let it begin."""
        for proxy in self._proxies:
            await proxy.open()
        self._say(f"All of it through {PROXIES} proxies, each good for {AT_ONCE} at once.")
        self._task = asyncio.create_task(self._live())

    async def close(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for proxy in self._proxies:
            await proxy.close()

    async def _live(self) -> None:
        half = self._proxies[: PROXIES // 2]
        await self._show(DIES_AFTER_S)
        self._say("Half of the proxies die: nobody listens there any more.")
        for proxy in half:
            await proxy.turn(Mood.REFUSE)
        await self._show(BACK_AFTER_S)
        self._say("They are back.")
        for proxy in half:
            await proxy.turn(Mood.GOOD)
        await self._show(BACK_AFTER_S)

    async def _show(self, for_s: float) -> None:
        """Say each second how much is on which half."""
        for _ in range(round(for_s / SHOW_EVERY_S)):
            await asyncio.sleep(SHOW_EVERY_S)
            first, second = (
                sum(proxy.carried.in_flight for proxy in half)
                for half in (self._proxies[: PROXIES // 2], self._proxies[PROXIES // 2 :])
            )
            self._say(
                f"  on the proxies: {first:3} and {second:3} requests  {'#' * first}{'=' * second}"
            )


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
