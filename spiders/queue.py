"""`scrapy crawl queue`: fetch what stands in `queue:start_urls` in Redis, as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Spider

from extensions.arguments import refuse_unknown
from extensions.queueing import QueueMixin
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class QueueSpider(QueueMixin, Spider):
    """Fetches each entry of a list, set or sorted set in Redis and yields its `Page`; no links."""

    name = "queue"
    optional_arguments: ClassVar[dict[str, str]] = {}

    def __init__(self, name: str | None = None, **other: Any) -> None:
        super().__init__(name, **other)
        refuse_unknown(type(self), other)

    def parse(self, response: Response) -> Iterator[Page]:
        """Yield the page.

        @url https://harbor.example/guide/tides.html
        @fixture guide.html
        @returns items 1 1
        @returns requests 0 0
        @fields url status title fetched_at
        """
        yield Page.of(response)
