"""The fixtures themselves: a real crawl in this process, with Scrapy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest_twisted
from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.sites import Site


class Pages(Spider):
    """Fetches 20 pages of one site."""

    name = "pages-of-a-test"

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}


@pytest_twisted.ensureDeferred
async def test_a_crawl_gives_stats_items_and_reason(crawl: Callable[..., Any], site: Site) -> None:
    """Twenty pages are fetched once each."""
    result = await crawl(Pages, {"ADDONS": {}}, urls=site.urls(20))
    assert result.reason == "finished"
    assert len(result.items) == 20
    assert result.stats["item_scraped_count"] == 20
    assert all(count == 1 for count in site.stats().hits.values())
