"""Scrapy's log lines, minus those that no handler would print.

Scrapy logs two DEBUG lines a page, "Crawled" and "Scraped from". Its root logger lets everything
through and leaves the choice to the handlers, so both records are built in full at every
``LOG_LEVEL``, for 30 to 50 microseconds a page. Here a line is left out only if no handler that it
would reach takes DEBUG records: whoever listens, listens as before.

And a host that does not answer is no error of the crawl's: Scrapy's two lines about it are told at a
lower level and without a traceback of sixty lines for each URL. A dead letter keeps the traceback.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from scrapy.logformatter import LogFormatter

from .failures import NETWORK_FAILURES

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

_CRAWLED_LOGGER = logging.getLogger("scrapy.core.engine")
_SCRAPED_LOGGER = logging.getLogger("scrapy.core.scraper")
_ROBOTS_LOGGER = logging.getLogger("scrapy.downloadermiddlewares.robotstxt")
_FAILED = "Error downloading "


class LeanLogFormatter(LogFormatter):
    """A ``LOG_FORMATTER`` that answers as Scrapy's, or None where nobody would read the line."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:  # noqa: ARG003 - Scrapy's signature
        """Have the lines about failed downloads told as what they are; for crawls with this formatter only."""
        for logger in (_SCRAPED_LOGGER, _ROBOTS_LOGGER):
            logger.addFilter(tell_failure)  # once, however many crawls there are
        return cls()

    def crawled(  # type: ignore[override]  # None is Scrapy's documented way to log nothing
        self, request: Request, response: Response, spider: Spider
    ) -> LogFormatterResult | None:
        """Describe a downloaded page, if some handler takes DEBUG records."""
        if not reaches_a_handler(_CRAWLED_LOGGER, logging.DEBUG):
            return None
        return super().crawled(request, response, spider)

    def scraped(  # type: ignore[override]  # as above
        self, item: Any, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        """Describe a scraped item, if some handler takes DEBUG records."""
        if not reaches_a_handler(_SCRAPED_LOGGER, logging.DEBUG):
            return None
        return super().scraped(item, response, spider)


def reaches_a_handler(logger: logging.Logger, level: int) -> bool:
    """Whether a record of *level* on *logger* would reach a handler that takes that level."""
    if not logger.isEnabledFor(level):
        return False
    current: logging.Logger | None = logger
    while current is not None:
        for handler in current.handlers:
            if handler.level <= level:
                return True
        current = current.parent if current.propagate else None
    return False


def tell_failure(record: logging.LogRecord) -> bool:
    """A filter that lets all pass: a download that failed by the network becomes a line without a traceback.

    INFO for a page, whose end the retry middleware and the dead letters tell; a WARNING for robots.txt.
    """
    error = record.exc_info[1] if record.exc_info else None
    crawler = getattr(getattr(record, "spider", None), "crawler", None)
    if (
        not str(record.msg).startswith(_FAILED)
        or not isinstance(error, NETWORK_FAILURES)
        or not isinstance(getattr(crawler, "logformatter", None), LeanLogFormatter)
    ):
        return True
    level = logging.WARNING if record.name == _ROBOTS_LOGGER.name else logging.INFO
    record.levelno, record.levelname = level, logging.getLevelName(level)
    record.exc_info = record.exc_text = None
    text, why = record.getMessage(), str(error) or type(error).__name__
    record.msg, record.args = text if why in text else f"{text}: {why}", ()
    return True
