"""Cuts the output of callbacks that would keep a stopping crawl waiting.

The rule it keeps: a crawl that is asked to stop stops within its bound, and a page whose output was cut is not done: its
items and links are given up together, and it is fetched again at the next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .control import Control

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

CUT_AFTER = 1000
"""Outputs of one page that a stopping crawl still takes: an honest page has fewer, and they cost some 0.1 s."""


class OutputCut:
    """Spider middleware around what callbacks yield."""

    def __init__(self, *, control: Control) -> None:
        self._control = control

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Find the crawl's control room."""
        return cls(control=Control.of(crawler))

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        """Pass on *result*, until it must be cut."""
        for number, output in enumerate(result):
            if self._control.stopping and self._cuts(response, number):
                return
            yield output

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """The same for asynchronous callbacks."""
        number = 0
        async for output in result:
            if self._control.stopping and self._cuts(response, number):
                return
            number += 1
            yield output

    def _cuts(self, response: Response, number: int) -> bool:
        control = self._control
        if number < CUT_AFTER and not control.waits_no_longer:
            return False
        lease = None if response.request is None else control.lease_of(response.request)
        if lease is not None:
            lease.cut = True
        return True
