"""What `crawl` and `runspider` share: arguments are checked first, and the exit code tells the end.

What a user got wrong is one line without a traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Never

from scrapy import signals
from scrapy.commands import BaseRunSpiderCommand
from scrapy.exceptions import UsageError
from scrapy.utils.log import get_scrapy_root_handler
from twisted.internet.defer import Deferred

from .arguments import REASON, BadArgument, refuse_unknown, require
from .config import BadSetting
from .control import Control
from .overview import Overview, follow_exit
from .policy.ending import Exit, worst
from .wrongvalues import refuse_before_logging

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

logger = logging.getLogger(__name__)


class TellsTheEnd(BaseRunSpiderCommand):
    """A command that crawls. Its subclasses find the spider and say `crawl`."""

    _was_told = False  # by the crawl, how it ended

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options; what Scrapy reads before it can log is refused here.

        Raises:
            UsageError: names the setting.
        """
        super().process_options(args, opts)
        assert self.settings is not None
        try:
            refuse_before_logging(self.settings)
        except BadSetting as error:
            raise UsageError(str(error), print_help=False) from None

    def crawl(self, spidercls: type[Spider], opts: argparse.Namespace) -> None:
        """Crawl with *spidercls* until it has ended, and set the exit code."""
        assert self.crawler_process is not None
        try:
            self._check_arguments(spidercls, opts.spargs)
        except BadArgument as error:
            self.refuse(error)
            return
        crawler = self._create_crawler(spidercls)
        self._watch(self.crawler_process.crawl(crawler, **opts.spargs), crawler)
        try:
            self.crawler_process.start()
        except (SystemExit, KeyboardInterrupt):
            _leave()
        if self.exitcode == 0 and self.crawler_process.bootstrap_failed:
            self.exitcode = Exit.FAILED
        if self.exitcode == 0 and not self._was_told and _is_ours(crawler):
            # Stopped before it had begun, or a second time before it had ended: nobody has looked at what is left.
            logger.warning("The crawl was stopped before its end; run it again to go on")
            self.exitcode = Exit.STOPPED

    def refuse(self, error: BadArgument | BadSetting) -> None:
        """Say in one line what cannot work, before anything was crawled."""
        assert self.crawler_process is not None
        self._say(error)
        self.crawler_process.start()  # a loop that never ran complains at the end of the process
        gc.freeze()  # and so may the one that Scrapy replaced, when it is taken apart there

    def _check_arguments(self, spidercls: type[Spider], arguments: dict[str, str]) -> None:
        assert self.settings is not None
        refuse_unknown(spidercls, arguments)
        if not self.settings.getbool("SLUICE_REPLAY_ONLY"):
            require(spidercls, arguments)

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        crawler = super()._create_crawler(spidercls)
        crawler.signals.connect(self._note_reason, signals.spider_closed)
        follow_exit(crawler, self._note_exit)
        return crawler

    def _note_exit(self, code: int) -> None:
        self._was_told = True
        self.exitcode = worst([self.exitcode, code])

    def _note_reason(self, reason: str) -> None:
        if reason == REASON:
            self.exitcode = Exit.USAGE

    def _watch(self, crawl: Awaitable[None], crawler: Crawler) -> None:
        """See to it that the end of *crawl* is told, and an error that ends it in the way that suits it."""
        if isinstance(crawl, asyncio.Future):
            crawl.add_done_callback(lambda ended: self._ended(ended, crawler))
        elif isinstance(crawl, Deferred):
            crawl.addErrback(self._failed)
            crawl.addCallback(lambda _: _tell_verdict(crawler))

    def _ended(self, crawl: asyncio.Future[Any], crawler: Crawler) -> None:
        error = None if crawl.cancelled() else crawl.exception()
        if error is not None:
            self._explain(error)
        _tell_verdict(crawler)

    def _failed(self, failure: Failure) -> None:
        if failure.value is not None:
            self._explain(failure.value)

    def _explain(self, error: BaseException) -> None:
        if isinstance(error, BadArgument | BadSetting):
            self._say(error)
        else:
            self.exitcode = Exit.FAILED
            logger.error("The crawl could not start: %s", error, exc_info=error)

    def _say(self, error: BadArgument | BadSetting) -> None:
        self.exitcode = Exit.USAGE
        logger.error("%s", error)
        if isinstance(get_scrapy_root_handler(), logging.NullHandler | None):
            sys.stderr.write(f"scrapy: {error}\n")


def _leave() -> Never:
    """End the process now, as a kill would: the loop is dead, and its threads would be waited for in vain.

    Only what runs in a task or a timer of its own, or in a handler of a signal, gets past `containment`.
    """
    logger.error(
        "The process was told to exit in a task, a timer or a signal's handler, which ends the process at once; "
        "raise scrapy.exceptions.CloseSpider in a callback instead. "
        "With JOBDIR, run the crawl again to go on"
    )
    logging.shutdown()
    sys.stderr.flush()
    sys.stdout.flush()
    os._exit(Exit.STOPPED)


def _tell_verdict(crawler: Crawler) -> None:
    """The last line of the log, unless it was said, or the crawl was refused before it had any extension."""
    with contextlib.suppress(RuntimeError):
        overview = crawler.get_extension(Overview)
        if overview is not None:
            overview.engine_stopped()


def _is_ours(crawler: Crawler) -> bool:
    """Does *crawler* run with Sluice?"""
    control: Control | None = None
    if crawler.extensions is not None:
        control = crawler.get_extension(Control)
    return control is not None
