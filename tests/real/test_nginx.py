"""The HTML of Python's documentation behind nginx's own rate limit: every page, once, and politely.

Both are Debian's: `nginx-light` and `python3-doc`. With CI set they must be there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_twisted
from twisted.internet.threads import deferToThread

from tests.cases.tools import letters, results
from tests.needs import needs
from tests.sites import Host, Site

from .nginx import Nginx, executable
from .walk import reachable

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path("/usr/share/doc/python3.11/html")
RATE = 40
BURST = 10

needs_both = needs("nginx-light or python3-doc", found=executable() and ROOT.is_dir())


def check_politeness(nginx: Nginx) -> None:
    """At most one answer in twenty was a refusal."""
    statuses = [status for _, status in nginx.log()]
    assert statuses.count(429) <= 0.05 * len(statuses)


@needs_both
@pytest_twisted.ensureDeferred
async def test_a_site_is_crawled_whole(scrapy_cli: Callable[..., Any], tmp_path: Path) -> None:
    """`site` finds every page that links reach, as an own walk over the files finds them."""
    expected = reachable(ROOT, "index.html")
    assert len(expected) > 400
    with Nginx(ROOT, folder=tmp_path, rate=RATE, burst=BURST) as nginx:
        url = nginx.url("index.html")
        done = await deferToThread(scrapy_cli, "crawl", "site", "-a", f"url={url}")
        base = nginx.url("")
        log = nginx.log()
    pages = [row["url"].removeprefix(base) for row in results(tmp_path) if row["status"] == 200]
    assert set(filter(lambda page: page.endswith(".html"), pages)) == expected
    assert len(pages) == len(set(pages))
    got = [path for path, status in log if status == 200 and path.endswith(".html")]
    assert sorted(got) == sorted(f"/{page}" for page in expected)
    check_politeness(nginx)
    assert all(row["reason"] == "http 404" for row in letters(tmp_path))
    assert done.code in {0, 3}


@needs_both
@pytest_twisted.ensureDeferred
async def test_a_list_of_pages_is_fetched_whole(
    scrapy_cli: Callable[..., Any], tmp_path: Path
) -> None:
    """`pages` gets each URL of a file."""
    expected = sorted(reachable(ROOT, "index.html"))
    with Nginx(ROOT, folder=tmp_path, rate=RATE, burst=BURST) as nginx:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("".join(nginx.url(page) + "\n" for page in expected), encoding="utf-8")
        done = await deferToThread(scrapy_cli, "crawl", "pages", "-a", f"seeds={seeds}")
        base = nginx.url("")
    assert sorted(row["url"].removeprefix(base) for row in results(tmp_path)) == expected
    assert letters(tmp_path) == []
    assert done.code == 0
    check_politeness(nginx)


@needs("nginx-light", found=executable())
@pytest_twisted.ensureDeferred
async def test_a_limit_of_connections_costs_no_page(
    scrapy_cli: Callable[..., Any], tmp_path: Path
) -> None:
    """`limit_conn` answers 503 to what is over it; every page is got, and 503s stay the exception."""
    with (
        Site(Host(latency_s=0.1)) as site,
        Nginx(f"http://{site.domain()}", folder=tmp_path, connections=4) as nginx,
    ):
        urls = [nginx.url(f"page/{number}") for number in range(150)]
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("".join(f"{url}\n" for url in urls), encoding="utf-8")
        done = await deferToThread(scrapy_cli, "crawl", "pages", "-a", f"seeds={seeds}")
        statuses = [status for _, status in nginx.log()]
        at_once = site.stats().max_in_flight
    assert sorted(row["url"] for row in results(tmp_path)) == sorted(urls)
    assert done.code == 0
    assert at_once <= 4
    assert 0 < statuses.count(503) <= 0.2 * len(statuses)
