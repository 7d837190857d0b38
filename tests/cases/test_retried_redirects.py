"""A retried page that redirects does not slip its target past the duplicate filter.

Source: scrapy/scrapy#6895 (the target inherits `dont_filter` from the retry).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest_twisted

from tests.sites import Answer, Host, Route, Site

from .tools import ListSpider, letters

if TYPE_CHECKING:
    from collections.abc import Callable

TO_T = Answer(status=302, headers=(("Location", "/t"),))
ROUTES = (Route("/a", (Answer(status=503), TO_T)), Route("/b", (Answer(status=503), TO_T)))


@pytest_twisted.ensureDeferred
async def test_the_target_of_two_retried_redirects_is_fetched_once(
    crawl: Callable[..., Any],
) -> None:
    """/a and /b fail once, then lead to /t: one request for it, one item."""
    with Site(Host(routes=ROUTES)) as site:
        urls = [site.url("/a"), site.url("/b")]
        result = await crawl(ListSpider, {"SLUICE_RETRY_BASE_S": 0.5}, urls=urls)
        hits = site.stats().hits
    assert hits == {"/robots.txt": 1, "/a": 2, "/b": 2, "/t": 1}
    assert [item["url"] for item in result.items] == [site_url(urls, "/t")]


def site_url(urls: list[str], path: str) -> str:
    """*path* on the host of *urls*."""
    return urls[0].rpartition("/")[0] + path


@pytest_twisted.ensureDeferred
async def test_the_same_over_a_restart(crawl: Callable[..., Any]) -> None:
    """The job stops while both retries wait; the next run sends them, unfiltered, and /t once."""
    settings = {"SLUICE_RETRY_BASE_S": 3, "JOBDIR": "job"}
    with Site(Host(routes=ROUTES)) as site:
        urls = [site.url("/a"), site.url("/b")]
        first = await crawl(ListSpider, {**settings, "CLOSESPIDER_TIMEOUT": 0.3}, urls=urls)
        second = await crawl(ListSpider, settings, urls=urls)
        hits = site.stats().hits
    assert hits["/a"] == 2
    assert hits["/b"] == 2
    assert hits["/t"] == 1
    assert len(first.items) + len(second.items) == 1


class Loop(ListSpider):
    """The callback asks for its own page again, for ever."""

    def parse(self, response: Any) -> Any:
        yield from super().parse(response)
        yield response.request.replace(dont_filter=True)


@pytest_twisted.ensureDeferred
async def test_a_callback_that_loops_is_stopped(crawl: Callable[..., Any], site: Site) -> None:
    """After a bounded number of repeats the request is a dead letter and the crawl ends."""
    result = await crawl(Loop, {"SLUICE_MAX_REPEATS": 30}, urls=site.urls(1))
    assert result.reason == "finished"
    assert site.stats().hits["/page/0"] == 31
    (letter,) = letters()
    assert letter["reason"] == "loop"
