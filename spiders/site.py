"""`scrapy crawl site -a url=URL [-a depth=N] [-a allow=REGEX] [-a deny=REGEX]`: fetch a site by its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from extensions.arguments import pattern, refuse_unknown, require, web_url, whole_number
from project.items import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class SiteSpider(Spider):
    """Fetches a page and what it links to on the same host, and so on, and yields one `Page` for each answer.

    Two spellings of one URL (order of the query, case of the host, escapes) are fetched once, as the site wrote the first of them.
    If the first answer comes from another host (`example.com` sends to `www.example.com`), that host is the site too.
    """

    name = "site"
    required_arguments: ClassVar[dict[str, str]] = {"url": "URL"}

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
        refuse_unknown(self.name, other, ("url", "depth", "allow", "deny"))
        self.url = web_url("url", url) if url else ""
        self._max_depth = whole_number("depth", depth) if depth else None
        self._links = LinkExtractor(
            allow=(pattern("allow", allow),) if allow else (),
            deny=(pattern("deny", deny),) if deny else (),
        )
        self._hosts = {host_of(self.url)} if self.url else set()

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
        """
        self._hosts.add(host_of(response.url))
        yield from self.parse(response)

    def parse(self, response: Response) -> Iterator[Page | Request]:
        """Yield the page, and a request for each link on the same host.

        @url https://harbor.example/guide/tides.html
        @fixture guide.html
        @returns items 1 1
        @fields url status title fetched_at
        @follows 2 2 harbor.example
        """
        if self._hosts and host_of(response.url) not in self._hosts:
            self.crawler.stats.inc_value("sluice/site/left_the_host")
            return
        page = Page.of(response)
        yield page
        if not isinstance(response, HtmlResponse):
            return
        if self._max_depth is not None and page.depth >= self._max_depth:
            return
        hosts = self._hosts or {host_of(response.url)}
        for link in self._links.extract_links(response):
            if host_of(link.url) in hosts:
                yield Request(link.url, self.parse)


def host_of(url: str) -> str:
    """Host of *url* in lower case, with its port unless that is the scheme's own; "" if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    own = {"http": 80, "https": 443}.get(parts.scheme)
    return host if port in {None, own} else f"{host}:{port}"
