"""Sitemaps of every shape, read as a stream."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc

import pytest

from extensions.sitemaps import NoSitemap, SitemapEntry, entries

URLSET = b"""<?xml version="1.0"?><!-- c --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
 xmlns:image="http://x"><url><image:image><image:loc>http://a/i.png</image:loc></image:image>
<loc> http://a/1 </loc></url><url/><url><loc/></url><url><loc>http://a/2?b&amp;c</loc></url></urlset>"""
INDEX = b"<sitemapindex><sitemap><loc>http://a/s.xml</loc></sitemap></sitemapindex>"


def pages(*urls: str) -> list[SitemapEntry]:
    return [SitemapEntry("page", url) for url in urls]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda b: b"\xef\xbb\xbf\n" + b])
def test_sets_and_indexes(pack):
    if pack(b"x") != b"\xef\xbb\xbf\nx":  # XML must begin at its first byte
        assert list(entries(pack(URLSET), max_bytes=0)) == pages("http://a/1", "http://a/2?b&c")
    assert list(entries(pack(INDEX), max_bytes=0)) == [SitemapEntry("sitemap", "http://a/s.xml")]
    listed = b"http://a/1\r\n\nfoo\nhttps://a/2"
    assert list(entries(pack(listed), max_bytes=0)) == pages("http://a/1", "https://a/2")


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"", "empty"), (b" \n", "empty"), (b"<html><p>no</html>", "root is <html>")],
)
def test_what_is_no_sitemap(body, message):
    with pytest.raises(NoSitemap, match=message):
        list(entries(body, max_bytes=0))


def test_a_torn_one_gives_what_it_has():
    many = b"<urlset>" + b"<url><loc>http://a/</loc></url>" * 50_000 + b"</urlset>"
    torn = gzip.compress(many)
    got = []
    with pytest.raises(NoSitemap, match="gzip"):
        for entry in entries(torn[: len(torn) * 3 // 4], max_bytes=0):
            got.append(entry)  # noqa: PERF402 - the entries before the error count
    assert len(got) > 10_000
    assert len(list(entries(b"<urlset><url><loc>http://a/1</loc></url><url><lo", max_bytes=0))) == 1


def test_a_bomb_is_refused_while_it_unpacks():
    bomb = gzip.compress(b"<urlset>" + b" " * 30_000_000)
    with pytest.raises(NoSitemap, match="DOWNLOAD_MAXSIZE"):
        list(entries(bomb, max_bytes=1_000_000))


def test_entities_are_not_followed():
    body = (
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        b"<urlset><url><loc>http://a/&f;</loc></url></urlset>"
    )
    assert all("root" not in entry.url for entry in entries(body, max_bytes=0))


def test_many_entries_are_not_held():
    body = b"<urlset>%s</urlset>" % b"".join(
        b"<url><loc>http://host.example/page/%d</loc></url>" % n for n in range(30_000)
    )
    packed = gzip.compress(body)
    del body
    tracemalloc.start()
    try:
        first = list(itertools.islice(stream := entries(packed, max_bytes=0), 10))
        count = 10 + sum(1 for _ in stream)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first[0].url == "http://host.example/page/0"
    assert count == 30_000
    assert peak < 1_000_000
