"""`scrapy crawl`: Scrapy's own, with an exit code that can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands.crawl import Command as _CrawlCommand
from scrapy.exceptions import UsageError

from ..arguments import BadArgument
from ..exits import TellsTheEnd

if TYPE_CHECKING:
    import argparse


class Command(TellsTheEnd, _CrawlCommand):
    """Crawl; the exit code says whether anything is missing (see docs/seeing.md)."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider named in *args*."""
        if len(args) != 1:
            raise UsageError("give one spider: scrapy crawl SPIDER; scrapy list names them")
        assert self.crawler_process is not None
        try:
            spidercls = self.crawler_process.spider_loader.load(args[0])
        except KeyError:
            self.refuse(BadArgument(f"no spider {args[0]!r}; scrapy list names them"))
        else:
            self.crawl(spidercls, opts)
