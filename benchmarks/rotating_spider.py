"""The least spider that does the same with scrapy-rotating-proxies. Run with ``scrapy runspider``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.stock_spider import StockSpider

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class RotatingSpider(StockSpider):
    """Knows a ban page as its documentation shows it."""

    name = "rotating"

    def response_is_ban(self, request: Request, response: Response) -> bool:  # noqa: ARG002
        """Is it the wall?"""
        return response.status != 200 or b"Just a moment" in response.body

    def exception_is_ban(self, request: Request, exception: Exception) -> bool:  # noqa: ARG002
        """A failure is a dead proxy."""
        return True

    def parse(self, response: Response) -> Any:
        """The item, and never one of a ban page."""
        if b"Just a moment" in response.body:
            self.crawler.stats.inc_value("bans_parsed")
        return super().parse(response)
