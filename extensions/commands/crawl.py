"""`scrapy crawl`: Scrapy's own, with an exit code that can be trusted."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.commands.crawl import Command as _CrawlCommand
from scrapy.exceptions import UsageError
from scrapy.utils.log import get_scrapy_root_handler
from twisted.internet.defer import Deferred

from ..arguments import REASON, BadArgument, refuse_unknown, require
from ..config import BadSetting
from ..overview import follow_exit
from ..policy.ending import worst

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable

    from scrapy import Spider
    from twisted.python.failure import Failure

EXIT_FAILED = 1
EXIT_USAGE = 2

logger = logging.getLogger(__name__)


class Command(_CrawlCommand):
    """Crawl; the exit code says whether anything is missing (see docs/seeing.md)."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider named in *args*."""
        if len(args) != 1:
            raise UsageError("give one spider: scrapy crawl SPIDER; scrapy list names them")
        assert self.crawler_process is not None
        try:
            spidercls = self._usable(args[0], opts.spargs)
        except BadArgument as error:
            self._refuse(error)
        else:
            crawler = self._create_crawler(spidercls)
            crawler.signals.connect(self._note_reason, signals.spider_closed)
            follow_exit(crawler, self._note_exit)
            self._watch(self.crawler_process.crawl(crawler, **opts.spargs))
        self.crawler_process.start()  # also without a crawl: a loop that never ran complains
        if self.exitcode == 0 and self.crawler_process.bootstrap_failed:
            self.exitcode = EXIT_FAILED

    def _usable(self, name: str, arguments: dict[str, str]) -> type[Spider]:
        """The spider of that *name*, if it can be run with these *arguments*."""
        assert self.crawler_process is not None
        try:
            spidercls = self.crawler_process.spider_loader.load(name)
        except KeyError:
            raise BadArgument(f"no spider {name!r}; scrapy list names them") from None
        refuse_unknown(spidercls, arguments)
        if not self.crawler_process.settings.getbool("SLUICE_REPLAY_ONLY"):
            require(spidercls, arguments)
        return spidercls

    def _note_exit(self, code: int) -> None:
        self.exitcode = worst([self.exitcode, code])

    def _note_reason(self, reason: str) -> None:
        if reason == REASON:
            self.exitcode = EXIT_USAGE

    def _watch(self, crawl: Awaitable[None]) -> None:
        """See to it that an error that ends *crawl* is shown in the way that suits it."""
        if isinstance(crawl, asyncio.Future):
            crawl.add_done_callback(self._ended)
        elif isinstance(crawl, Deferred):
            crawl.addErrback(self._failed)

    def _ended(self, crawl: asyncio.Future[Any]) -> None:
        error = None if crawl.cancelled() else crawl.exception()
        if error is not None:
            self._explain(error)

    def _failed(self, failure: Failure) -> None:
        if failure.value is not None:
            self._explain(failure.value)

    def _explain(self, error: BaseException) -> None:
        if isinstance(error, BadArgument | BadSetting):
            self._refuse(error)
        else:
            self.exitcode = EXIT_FAILED
            logger.error("The crawl could not start: %s", error, exc_info=error)

    def _refuse(self, error: BadArgument | BadSetting) -> None:
        self.exitcode = EXIT_USAGE
        logger.error("%s", error)
        if isinstance(get_scrapy_root_handler(), logging.NullHandler | None):
            sys.stderr.write(f"scrapy crawl: {error}\n")
