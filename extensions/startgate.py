"""Holds seeds back while enough is pending; links never wait.

The rule it keeps: the next seed is drawn from `start()` only when there is room for it, so that what it carries (a
time-limited token, a timestamp) is fresh when it is sent. Holding back callback output instead would deadlock the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Self

from scrapy.exceptions import CloseSpider

from . import compat, names
from .containment import contained, task_at_work
from .control import Control

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler

LOOK_AGAIN_S = 0.05
"""How often a closed gate looks: what opens it (a page parsed, a writer that caught up) sends no signal."""


class StartGate:
    """Spider middleware around `start()`."""

    def __init__(self, *, control: Control) -> None:
        self._control = control

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Find the crawl's control room."""
        return cls(control=Control.of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield what *start* yields, each when there is room for it."""
        if self._control.config.replay_only:
            return
        try:
            while await self._room():
                try:
                    seed = await self._draw(start)
                except StopAsyncIteration:
                    return
                yield seed
        finally:
            # The spider's own `finally` runs now, not when the garbage is collected.
            if isinstance(start, AsyncGenerator):
                await start.aclose()

    async def _draw(self, start: AsyncIterator[Any]) -> Any:
        control = self._control
        control.awaits_seed = True
        task = task_at_work()
        try:
            return await anext(start)
        except (StopAsyncIteration, CloseSpider):
            raise
        except BaseException as error:  # noqa: BLE001 - told as what it is
            told = contained(error, task)
            if isinstance(told, CloseSpider):
                control.close_spider(told.reason, f"{error!r} was raised by start()")
            elif isinstance(told, Exception):
                control.source_failed = True  # the crawl must not end as complete
            raise told  # noqa: B904 - it names its cause
        finally:
            control.awaits_seed = False

    async def _room(self) -> bool:
        """Wait until there is room. False: the crawl is ending, no more seeds are wanted.

        While a spider closes, the engine draws seeds without any pause; drawn then, they would be lost.
        """
        control = self._control
        if compat.is_closing(control.engine):
            return False
        if self._is_open():
            return True
        control.stats.inc_value(names.STAT_GATE_CLOSED)
        while not self._is_open():
            await asyncio.sleep(LOOK_AGAIN_S)
            if compat.is_closing(control.engine):
                return False
        return True

    def _is_open(self) -> bool:
        control = self._control
        if control.paused_since_at is not None or control.store_waits:
            return False
        return control.seeds_may_come() and not control.results_too_deep()
