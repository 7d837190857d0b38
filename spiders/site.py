"""Fetch a site by its links.

scrapy crawl site -a url=URL [-a depth=N] [-a allow=REGEX] [-a deny=REGEX]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from extensions.arguments import pattern, refuse_unknown, require, web_url, whole_number
from extensions.htmlscan import links
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class SiteSpider(Spider):
    """Fetches a page, what it links to on the same host, and so on; one `Page` for each answer.

    Two spellings of one URL (order of the query, case of the host, escapes) are fetched once, as
    the site wrote the first of them. If the first answer comes from another host (`example.com`
    sends to `www.example.com`), that host is the site too.
    """

    name = "site"
    required_arguments: ClassVar[dict[str, str]] = {"url": "URL"}
    optional_arguments: ClassVar[dict[str, str]] = {
        "depth": "N",
        "allow": "REGEX",
        "deny": "REGEX",
    }

    def __init__(
        self,
        name: str | None = None,
        *,
        url: str = "",
        depth: str = "",
        allow: str = "",
        deny: str = "",
        **other: Any,
    ) -> None:
        super().__init__(name, **other)
        refuse_unknown(type(self), other)
        self.url = web_url("url", url) if url else ""
        self._max_depth = whole_number("depth", depth) if depth else None
        self._allow = pattern("allow", allow) if allow else None
        self._deny = pattern("deny", deny) if deny else None

    async def start(self) -> AsyncIterator[Request]:
        """The one page to begin with."""
        require(type(self), {"url": self.url})
        yield Request(self.url, self.parse_first)

    def parse_first(self, response: Response) -> Iterator[Page | Request]:
        """Take the host that answered as the site's, then go on as with every page.

        @url https://harbor.example/
        @fixture home.html
        @returns items 1 1
        @fields url status title fetched_at
        @follows 3 3 harbor.example
        @accounted
        """
        yield from self.parse(response, host=host_of(response.url))

    def parse(self, response: Response, host: str = "") -> Iterator[Page | Request]:
        """Yield the page, and a request for each link on the same host.

        The host that answered first travels with the requests, so that a resumed job knows it.

        @url https://harbor.example/guide/tides.html
        @cb_kwargs {"host": "harbor.example"}
        @fixture guide.html
        @returns items 1 1
        @fields url status title fetched_at
        @follows 2 2 harbor.example
        @accounted
        """
        hosts = {host, host_of(self.url)} - {""} or {host_of(response.url)}
        if host_of(response.url) not in hosts:
            self.crawler.stats.inc_value("sluice/site/left_the_host")
            return
        page = Page.of(response)
        yield page
        if not isinstance(response, HtmlResponse):
            return
        if self._max_depth is not None and page.depth >= self._max_depth:
            return
        for url in links(response):
            if host_of(url) in hosts:
                request = Request(url, self.parse, cb_kwargs={"host": host})
                if self._wanted(request.url):
                    yield request

    def _wanted(self, url: str) -> bool:
        """Do `allow` and `deny` let *url* pass?"""
        if self._deny and self._deny.search(url):
            return False
        return self._allow is None or bool(self._allow.search(url))


def host_of(url: str) -> str:
    """Host of *url* in lower case, with the port if it is not the scheme's own; "" without one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    own = {"http": 80, "https": 443}.get(parts.scheme)
    return host if port in {None, own} else f"{host}:{port}"
