"""`scrapy crawl sitemap -a url=URL`: fetch the pages that a site's sitemaps list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.utils.sitemap import sitemap_urls_from_robots

from extensions.arguments import refuse_unknown, require, url_fault, web_url
from extensions.sitemaps import NoSitemap, entries
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

_NO_ROBOTS = [400, 401, 403, 404, 410]


class SitemapSpider(Spider):
    """Fetches the pages that sitemaps list and yields one `Page` for each answer; no links.

    The URL is a sitemap, a sitemap index, a robots.txt, or a site: then its robots.txt is asked,
    and without one `/sitemap.xml`.
    """

    name = "sitemap"
    required_arguments: ClassVar[dict[str, str]] = {"url": "URL"}

    def __init__(self, name: str | None = None, *, url: str = "", **other: Any) -> None:
        super().__init__(name, **other)
        refuse_unknown(type(self), other)
        self.url = web_url("url", url) if url else ""

    async def start(self) -> AsyncIterator[Request]:
        """Robots.txt for a site, else the sitemap itself."""
        require(type(self), {"url": self.url})
        path = urlsplit(self.url).path
        if path in {"", "/"} or path.endswith("/robots.txt"):
            robots = self.url if path.endswith("/robots.txt") else urljoin(self.url, "/robots.txt")
            yield Request(robots, self.parse_robots, meta={"handle_httpstatus_list": _NO_ROBOTS})
        else:
            yield Request(self.url, self.parse_sitemap)

    def parse_robots(self, response: Response) -> Iterator[Request]:
        """Ask for the sitemaps that robots.txt names, or for the usual place if it names none.

        @url https://harbor.example/robots.txt
        @fixture robots.txt
        @returns items 0 0
        @follows 2 2 harbor.example
        @accounted
        """
        found = False
        if response.status not in _NO_ROBOTS:
            for url in sitemap_urls_from_robots(response.body, base_url=response.url):
                if not url_fault(url):
                    found = True
                    yield Request(url, self.parse_sitemap)
        if not found:
            yield Request(urljoin(response.url, "/sitemap.xml"), self.parse_sitemap)

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Ask for each page, and for each sitemap of an index.

        @url https://harbor.example/sitemap.xml
        @fixture sitemap.xml
        @returns items 0 0
        @follows 3 3 harbor.example
        @accounted
        """
        stats = self.crawler.stats
        try:
            for entry in entries(response.body, max_bytes=self.settings.getint("DOWNLOAD_MAXSIZE")):
                if url_fault(entry.url):
                    stats.inc_value("sluice/sitemap/skipped")
                elif entry.kind == "sitemap":
                    yield Request(entry.url, self.parse_sitemap)
                else:
                    yield Request(entry.url, self.parse)
        except NoSitemap as error:
            stats.inc_value("sluice/sitemap/broken")
            self.logger.warning("%s is no whole sitemap: %s", response.url, error)

    def parse(self, response: Response) -> Iterator[Page]:
        """Yield the page.

        @url https://harbor.example/guide/tides.html
        @fixture guide.html
        @returns items 1 1
        @returns requests 0 0
        @fields url status title fetched_at
        @accounted
        """
        yield Page.of(response)
