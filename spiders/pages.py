"""`scrapy crawl pages -a seeds=FILE [-a fields=FILE]`: fetch a list of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider

from extensions.arguments import REASON, refuse_unknown, require
from extensions.fields import FieldRules
from extensions.seeds import BadLine, BadLines, SeedFile
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class PagesSpider(Spider):
    """Fetches each URL of a file, or of standard input, and yields its `Page`; no links."""

    name = "pages"
    required_arguments: ClassVar[dict[str, str]] = {"seeds": "FILE"}
    optional_arguments: ClassVar[dict[str, str]] = {"fields": "FILE"}

    def __init__(
        self, name: str | None = None, *, seeds: str = "", fields: str = "", **other: Any
    ) -> None:
        super().__init__(name, **other)
        refuse_unknown(type(self), other)
        self.seeds = seeds
        self.file = SeedFile(seeds) if seeds else None
        self._drawn = 0
        self._rules = FieldRules.load(fields) if fields else None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> PagesSpider:
        """Refuse a useless file at once; a replay of dead letters reads none."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        if spider.file and not crawler.settings.getbool("SLUICE_REPLAY_ONLY"):
            spider.file.check()
        return spider

    @property
    def seeds_left(self) -> int | None:
        """About how many lines of the seeds were not drawn yet; None if nothing tells."""
        left = self.file.left if self.file else 0
        return None if left is None or not self.file else left + self.file.records - self._drawn

    async def start(self) -> AsyncIterator[Request]:
        """One request a seed, in the order of the file."""
        require(type(self), {"seeds": self.seeds})
        assert self.file is not None
        bad, good, stats = BadLines(source=self.seeds, log=self.logger), 0, self.crawler.stats
        async for block in self.file.blocks():
            for record in block:
                self._drawn += 1
                if isinstance(record, BadLine):
                    bad.add(record)
                else:
                    good += 1
                    yield Request(record.url, self.parse)
            stats.set_value("sluice/seeds/read", good)
            stats.set_value("sluice/seeds/skipped", bad.count)
        bad.sum_up(good)
        if not good:
            self.logger.error("seeds=%s: no URL in it (%s)", self.seeds, bad.skipped)
            raise CloseSpider(REASON)

    def parse(self, response: Response) -> Iterator[Page]:
        """Yield the page.

        @url https://harbor.example/guide/tides.html
        @fixture guide.html
        @returns items 1 1
        @returns requests 0 0
        @fields url status title fetched_at
        @accounted
        """
        yield Page.of(response, self._rules.extract(response) if self._rules else None)
