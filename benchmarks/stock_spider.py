"""The least spider that does the same work with Scrapy alone. Run with ``scrapy runspider``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class StockSpider(Spider):
    """Fetches the URLs of a file, or one page and all that it links to."""

    name = "stock"

    def __init__(self, seeds: str | None = None, url: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds
        self.url = url

    async def start(self) -> AsyncIterator[Any]:
        """A request for each line of the file, read as it is needed."""
        if self.seeds is None:
            yield Request(self.url, callback=self.parse_links)
            return
        with Path(self.seeds).open(encoding="utf-8") as lines:
            for line in lines:
                yield Request(line.strip())

    def parse(self, response: Response) -> Iterator[Any]:
        """The item that Sluice's spiders make of a page, without its time."""
        yield {
            "url": response.url,
            "status": response.status,
            "title": response.css("title::text").get(),
        }

    def parse_links(self, response: Response) -> Iterator[Any]:
        """A request for each link."""
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
