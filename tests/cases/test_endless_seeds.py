"""Seeds by the million do not pile up: they are drawn as pages are done, and the job stays small.

Source: scrapy/scrapy#6085 (a `start()` over 100 million ids filled the disk).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_twisted
from scrapy import Request

from tests.sites import Host, Site

from .tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CAP = 200
CONCURRENT = 16


class Enumerating(ListSpider):
    """200,000 ids with four kilobytes each, of which the crawl takes 1,500."""

    async def start(self) -> AsyncIterator[Any]:
        self.most_ahead = 0
        self.sizes: list[int] = []
        for number in range(200_000):
            self.drawn += 1
            self.most_ahead = max(self.most_ahead, self.drawn - len(self.parsed))
            yield Request(
                f"{self.base}/page/{number}", dont_filter=True, cb_kwargs={"blob": "x" * 4096}
            )

    def parse(self, response: Any, blob: str) -> Any:
        if len(self.parsed) % 100 == 99:
            job = Path("job")
            self.sizes.append(sum(file.stat().st_size for file in job.glob("*")))
        yield from super().parse(response)


@pytest.mark.parametrize("jobdir", [None, "job"])
@pytest_twisted.ensureDeferred
async def test_seeds_wait_for_room(crawl: Callable[..., Any], jobdir: str | None) -> None:
    """Never more than the cap and what is in flight ahead, and the job file stops growing."""
    with Site(Host(latency_s=0.01)) as site:
        result = await crawl(
            Enumerating,
            {
                "SLUICE_MAX_PENDING": CAP,
                "CONCURRENT_REQUESTS": CONCURRENT,
                "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,
                "CLOSESPIDER_PAGECOUNT": 1500,
                "JOBDIR": jobdir,
            },
            base=site.url(""),
        )
    spider = result.crawler.spider
    assert result.reason == "closespider_pagecount"
    assert len(spider.parsed) >= 1500
    assert spider.most_ahead <= CAP + 2 * CONCURRENT
    if jobdir:
        assert max(spider.sizes) <= 25_000_000  # a log that is never folded back passes 45 MB
