"""Keeps the pool what the list of proxies says, for as long as the crawl runs.

The rule it keeps: a list that cannot be read again is said once and changes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from .proxylist import FILE_LOOK_S, BadProxyList, mark_of, read_in_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from .policy.proxies import ProxyPool
    from .proxylist import ListPlace

logger = logging.getLogger("sluice.proxies")


class ProxyFeed:
    """From the list into the pool.

    Args:
        place: Where the list is.
        pool: What it fills.
        refresh_s: How often an address is asked again.
        changed: Called when the pool is another one than before.
        wanted: Is the list still of interest?
    """

    def __init__(
        self,
        *,
        place: ListPlace,
        pool: ProxyPool,
        refresh_s: float,
        changed: Callable[[], None],
        wanted: Callable[[], bool],
    ) -> None:
        self._place = place
        self._pool = pool
        self._refresh_s = refresh_s if place.kind == "url" else FILE_LOOK_S
        self._changed = changed
        self._wanted = wanted
        self._mark: object = None
        self._timer: Any = None
        self._told = ""

    async def open(self) -> None:
        """Read the list; from then on it is read again whenever it changes.

        Raises:
            BadProxyList: there is none.
        """
        self._mark = mark_of(self._place)
        found, wrong = await read_in_time(self._place)
        self._pool.replace(found)
        self._tell_wrong(wrong)
        logger.info("%d proxies from %s", len(self._pool), self._place.shown)
        if self._place.kind != "lines":
            self._look_later()

    def close(self) -> None:
        """Look at the list no more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look_later(self) -> None:
        self._timer = call_later(self._refresh_s, self._look)

    def _look(self) -> None:
        self._timer = None
        mark = mark_of(self._place)
        if self._place.kind == "file" and (mark is None or mark == self._mark):
            self._look_later()
            return
        self._mark = mark
        deferred_from_coro(self._read_again())

    async def _read_again(self) -> None:
        try:
            found, wrong = await read_in_time(self._place)
        except BadProxyList as error:
            if self._told != str(error):
                self._told = str(error)
                logger.warning("%s. The %d known so far go on", error, len(self._pool))
        except Exception:
            logger.exception("The proxy list could not be read again")
        else:
            self._told = ""
            came, went = self._pool.replace(found)
            if came or went:
                self._tell_wrong(wrong)
                logger.info(
                    "The proxy list has changed: %d new, %d gone, %d now",
                    came,
                    went,
                    len(self._pool),
                )
                self._changed()
        if self._wanted():
            self._look_later()

    def _tell_wrong(self, wrong: list[str]) -> None:
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            logger.warning("Left out of %s: %s%s", self._place.shown, wrong[0], more)
