"""`scrapy runspider`: Scrapy's own, with the exit code of `scrapy crawl`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands.runspider import Command as _RunSpiderCommand

from ..overview import follow_exit
from ..policy.ending import worst

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler


class Command(_RunSpiderCommand):
    """Run a spider from a file; the exit code says whether anything is missing."""

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        crawler = super()._create_crawler(spidercls)
        follow_exit(crawler, self._note_exit)
        return crawler

    def _note_exit(self, code: int) -> None:
        self.exitcode = worst([self.exitcode, code])
