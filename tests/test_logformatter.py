"""Log lines are Scrapy's own, or are not built where no handler takes them."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter

from extensions.logformatter import LeanLogFormatter, reaches_a_handler

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = Request("http://a.test/", headers={"Referer": "http://b.test/"}, flags=["f"])
RESPONSE = Response("http://a.test/", flags=["cached"])
SPIDER = Spider("s")


@pytest.fixture
def top() -> Iterator[logging.Logger]:
    """The topmost logger of Scrapy's records, open for all; it stands for the root."""
    logger = logging.getLogger("scrapy")
    before, level = logger.handlers[:], logger.level
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger
    logger.handlers[:] = before
    logger.setLevel(level)
    logger.propagate = True


def listen(logger: logging.Logger, level: int) -> logging.Handler:
    """Make a handler of *level* the only one on *logger*; pytest brings some of its own."""
    handler = logging.NullHandler(level)
    logger.handlers[:] = [handler]
    return handler


def test_with_a_debug_handler_the_lines_are_scrapys_own(top: logging.Logger):
    """Nothing changes for whoever reads them."""
    listen(top, logging.DEBUG)
    ours, theirs = LeanLogFormatter(), LogFormatter()
    assert ours.crawled(REQUEST, RESPONSE, SPIDER) == theirs.crawled(REQUEST, RESPONSE, SPIDER)
    item = {"a": 1}
    assert ours.scraped(item, RESPONSE, SPIDER) == theirs.scraped(item, RESPONSE, SPIDER)


def test_without_one_they_are_not_built(top: logging.Logger):
    """LOG_LEVEL=INFO is a level of Scrapy's handler, not of its logger."""
    listen(top, logging.INFO)
    assert LeanLogFormatter().crawled(REQUEST, RESPONSE, SPIDER) is None
    assert LeanLogFormatter().scraped({}, RESPONSE, SPIDER) is None


def test_a_handler_anywhere_on_the_way_counts(top: logging.Logger):
    """One on a logger in between is enough, unless the records stop before it."""
    middle, leaf = logging.getLogger("scrapy.x"), logging.getLogger("scrapy.x.leaf")
    handler = listen(middle, logging.DEBUG)
    try:
        assert reaches_a_handler(leaf, logging.DEBUG)
        leaf.propagate = False
        assert not reaches_a_handler(leaf, logging.DEBUG)
    finally:
        leaf.propagate = True
        middle.removeHandler(handler)


def test_a_logger_that_is_closed_for_debug_needs_no_line(top: logging.Logger):
    """Its own level goes first."""
    listen(top, logging.DEBUG)
    leaf = logging.getLogger("scrapy.x.leaf")
    leaf.setLevel(logging.INFO)
    try:
        assert not reaches_a_handler(leaf, logging.DEBUG)
    finally:
        leaf.setLevel(logging.NOTSET)


def test_the_other_lines_are_always_there(top: logging.Logger):
    """Errors and drops are never left out."""
    listen(top, logging.CRITICAL)
    assert LeanLogFormatter().item_error({}, ValueError(), RESPONSE, SPIDER)["level"] == 40


class Unreachable(Spider):
    """Asks a host where nobody listens, with and without robots.txt."""

    name = "unreachable"

    async def start(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        for page in range(2):
            yield Request(f"http://127.0.0.1:{self.port}/{page}")


@ensureDeferred
async def test_a_host_that_does_not_answer_is_no_error_of_the_crawl(crawl):
    """A line for each page, at INFO, with the reason and without a traceback; a warning for robots.txt."""
    settings = {"RETRY_TIMES": 0, "ROBOTSTXT_OBEY": True, "LOG_LEVEL": "INFO"}
    result = await crawl(Unreachable, settings)
    told = [record for record in result.logs if "Error downloading" in record.getMessage()]
    pages = [record for record in told if record.name == "scrapy.core.scraper"]
    assert [record.levelname for record in pages] == ["INFO", "INFO"]
    assert {record.levelname for record in told if record not in pages} == {"WARNING"}
    assert all("refused" in record.getMessage() and not record.exc_info for record in told)
    assert result.stats.get("log_count/ERROR", 0) == 0


@ensureDeferred
async def test_with_scrapys_formatter_it_is_told_as_scrapy_does(crawl):
    """Who sets LOG_FORMATTER gets Scrapy's error and its traceback, beside crawls that do not."""
    settings = {"RETRY_TIMES": 0, "LOG_FORMATTER": "scrapy.logformatter.LogFormatter"}
    result = await crawl(Unreachable, settings)
    told = [record for record in result.logs if record.name == "scrapy.core.scraper"]
    assert [record.levelname for record in told] == ["ERROR", "ERROR"]
    assert all(record.exc_info for record in told)
