"""The built-in pages: what a path shows where no route says otherwise.

| path | page |
|---|---|
| `/page/I` | 1 kB, titled "Page I" |
| `/graph/N/I` | page I of a graph of N pages, all reachable from 0, with cycles and shortcuts |
| `/chain/N/I` | page I of N, linked to the next one only |
| `/links/N` | links to `/page/0` ... |
| `/csv/N` | N rows `url,name` |
| `/sitemaps/K/M/index.xml` | index of K gzipped sitemaps of M URLs each |
| `/size/N` | N bytes |
| `/status/S` | status S |
| `/redirect/N` | to `/redirect/N-1` ... to `/page/0`; `/redirect/loop` for ever |
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache

HTML = "text/html; charset=utf-8"
_FILLER = "A line of text that fills the page up to its size. " * 20


def html(title: str, links: list[str] | None = None, size: int = 1024) -> bytes:
    """A page of about *size* bytes, more if the links need it."""
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links or ())
    start = f"<html><head><title>{title}</title></head><body><h1>{title}</h1>\n{anchors}<p>"
    room = max(0, size - len(start) - 18)
    return f"{start}{_FILLER[:room]}</p></body></html>".encode()


def graph_links(total: int, index: int) -> list[int]:
    """Where page *index* of the graph links to: a binary tree, two shortcuts and the start."""
    tree = [child for child in (2 * index + 1, 2 * index + 2) if child < total]
    return [*tree, (index * 7 + 3) % total, (index * 13 + 5) % total, 0]


def _graph(base: str, total: str, index: str) -> tuple[int, str, bytes]:
    links = [f"/graph/{total}/{link}" for link in graph_links(int(total), int(index))]
    return 200, HTML, html(f"Page {index} of {total}", links)


def _chain(base: str, total: str, index: str) -> tuple[int, str, bytes]:
    following = int(index) + 1
    links = [f"/chain/{total}/{following}"] if following < int(total) else []
    return 200, HTML, html(f"Link {index} of {total}", links)


def _page(base: str, index: str) -> tuple[int, str, bytes]:
    return 200, HTML, html(f"Page {index}")


@lru_cache(maxsize=4)
def _links(base: str, count: str) -> tuple[int, str, bytes]:
    return 200, HTML, html(f"{count} links", [f"/page/{index}" for index in range(int(count))])


@lru_cache(maxsize=4)
def _csv(base: str, count: str) -> tuple[int, str, bytes]:
    rows = "".join(f"{base}/page/{index},name {index}\n" for index in range(int(count)))
    return 200, "text/csv", f"url,name\n{rows}".encode()


def _sitemap_index(base: str, count: str, size: str) -> tuple[int, str, bytes]:
    entries = "".join(
        f"<sitemap><loc>{base}/sitemaps/{count}/{size}/{index}.xml.gz</loc></sitemap>\n"
        for index in range(int(count))
    )
    return 200, "application/xml", _xml("sitemapindex", entries)


@lru_cache(maxsize=32)
def _sitemap(base: str, count: str, size: str, index: str) -> tuple[int, str, bytes]:
    first = int(index) * int(size)
    entries = "".join(
        f"<url><loc>{base}/page/{number}</loc></url>\n"
        for number in range(first, first + int(size))
    )
    return 200, "application/gzip", gzip.compress(_xml("urlset", entries), mtime=0)


def _xml(root: str, entries: str) -> bytes:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?>\n<{root} xmlns="{space}">\n{entries}</{root}>\n'.encode()


def _size(base: str, size: str) -> tuple[int, str, bytes]:
    return 200, HTML, html(f"{size} bytes").ljust(int(size))[: int(size)]


def _status(base: str, status: str) -> tuple[int, str, bytes]:
    return int(status), HTML, html(f"Status {status}")


def _redirect(base: str, left: str) -> tuple[int, str, bytes]:
    target = left if left == "loop" else str(int(left) - 1)
    path = "/page/0" if target == "0" else f"/redirect/{target}"
    return 302, f"{HTML}\r\nLocation: {path}", b""


_PAGES = [
    (re.compile(r"/page/(\w+)"), _page),
    (re.compile(r"/graph/(\d+)/(\d+)"), _graph),
    (re.compile(r"/chain/(\d+)/(\d+)"), _chain),
    (re.compile(r"/links/(\d+)"), _links),
    (re.compile(r"/csv/(\d+)"), _csv),
    (re.compile(r"/sitemaps/(\d+)/(\d+)/index\.xml"), _sitemap_index),
    (re.compile(r"/sitemaps/(\d+)/(\d+)/(\d+)\.xml\.gz"), _sitemap),
    (re.compile(r"/size/(\d+)"), _size),
    (re.compile(r"/status/(\d+)"), _status),
    (re.compile(r"/redirect/(loop|\d+)"), _redirect),
]


def built_in(path: str, base: str) -> tuple[int, str, bytes]:
    """Status, content type and body of a path; *base* is the host's own origin.

    Paths that are not in the table above show a page titled with the path.
    """
    for pattern, page in _PAGES:
        match = pattern.fullmatch(path)
        if match is not None:
            return page(base, *match.groups())
    return 200, HTML, html(path)
