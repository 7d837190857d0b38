"""Sitemaps are read as a stream: unpacked as they are read, their entries one by one."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP = b"\x1f\x8b\x08"
_CHUNK_BYTES = 65_536
_EVENTS = ("start", "end")


class SitemapEntry(NamedTuple):
    """One address in a sitemap: a `page`, or another `sitemap`."""

    kind: Literal["page", "sitemap"]
    url: str


class NoSitemap(ValueError):
    """The answer is no sitemap, or it ends early; the text says why."""


def entries(body: bytes, *, max_bytes: int) -> Iterator[SitemapEntry]:
    """The entries of a sitemap or a sitemap index, plain or gzipped, or of a list of URLs.

    Args:
        body: The answer as it came.
        max_bytes: Most that it may unpack to; 0 for no bound.

    Raises:
        NoSitemap: While it is read: what came before stands.
    """
    unpacked = _Unpacked(body, max_bytes=max_bytes)
    try:
        beginning = unpacked.peek().lstrip(b"\xef\xbb\xbf \t\r\n")
        if not beginning:
            raise NoSitemap("it is empty")
        yield from _xml_entries(unpacked) if beginning.startswith(b"<") else _text_entries(unpacked)
    except (OSError, EOFError, zlib.error) as error:
        raise NoSitemap(f"broken gzip: {error}") from None
    except etree.XMLSyntaxError as error:
        raise NoSitemap(f"broken XML: {error}") from None


class _Unpacked(io.RawIOBase):
    """Reads *body*, gunzipped if it is gzip, and refuses to grow over a bound."""

    def __init__(self, body: bytes, *, max_bytes: int) -> None:
        raw = io.BytesIO(body)
        plain: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if body.startswith(_GZIP) else raw
        self._stream = io.BufferedReader(plain, _CHUNK_BYTES)
        self._left = max_bytes or float("inf")

    def peek(self) -> bytes:
        return self._stream.peek(512)

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(_CHUNK_BYTES if size < 0 else size)
        self._left -= len(chunk)
        if self._left < 0:
            raise NoSitemap("it unpacks to more than DOWNLOAD_MAXSIZE")
        return chunk


def _xml_entries(source: _Unpacked) -> Iterator[SitemapEntry]:
    events = etree.iterparse(
        source,
        events=_EVENTS,
        recover=True,
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    known = False
    for event, element in events:
        name = _local_name(element)
        if event == "start":
            if not known and name not in {"urlset", "sitemapindex"}:
                raise NoSitemap(f"its root is <{name}>")
            known = True
        elif name in {"url", "sitemap"}:
            if url := _location(element):
                yield SitemapEntry("sitemap" if name == "sitemap" else "page", url)
            element.clear()
            while element.getprevious() is not None:  # else the empty elements add up
                del element.getparent()[0]


def _text_entries(source: _Unpacked) -> Iterator[SitemapEntry]:
    rest = b""
    while chunk := source.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from _pages(lines)
    yield from _pages([rest])


def _pages(lines: list[bytes]) -> Iterator[SitemapEntry]:
    for line in lines:
        url = line.removeprefix(b"\xef\xbb\xbf").strip().decode("utf-8", "replace")
        if url.startswith(("http://", "https://")):
            yield SitemapEntry("page", url)


def _location(element: etree._Element) -> str | None:
    for child in element:
        if _local_name(child) == "loc":
            return (child.text or "").strip() or None
    return None


def _local_name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""
