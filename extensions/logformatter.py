"""Scrapy's log lines, minus those that no handler would print.

Scrapy logs two DEBUG lines a page, "Crawled" and "Scraped from". Its root logger lets everything
through and leaves the choice to the handlers, so both records are built in full at every
``LOG_LEVEL``, for 30 to 50 microseconds a page. Here a line is left out only if no handler that it
would reach takes DEBUG records: whoever listens, listens as before.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

_CRAWLED_LOGGER = logging.getLogger("scrapy.core.engine")
_SCRAPED_LOGGER = logging.getLogger("scrapy.core.scraper")


class LeanLogFormatter(LogFormatter):
    """A ``LOG_FORMATTER`` that answers as Scrapy's, or None where nobody would read the line."""

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
