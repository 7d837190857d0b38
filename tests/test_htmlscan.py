"""Titles and links as a stream say what a tree says."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from extensions import htmlscan
from extensions.htmlscan import links, title
from tests.needs import needs

PYTHON_DOC = Path("/usr/share/doc/python3/html/library")


def page(body: str | bytes, url: str = "http://a.example/x/y") -> HtmlResponse:
    data = body if isinstance(body, bytes) else body.encode()
    return HtmlResponse(url, body=data, encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<title> A\n &amp; b </title>", "A & b"),
        ("<html><head><meta charset=utf-8><TITLE>\u00e9</TITLE><title>no</title>", "\u00e9"),
        ("<head></head><body><svg><title>s</title></svg>", "s"),
        (f"<!-- {'x' * 20_000} --><title>late</title>", "late"),
        (f"<title>{'long ' * 3000}</title>", ("long " * 3000).strip()),
        ("<title></title>", None),
        ("<title> </title>", None),
        ("<p>none", None),
        ("", None),
        ("\x00\x01", None),
        ("<script>var a = '<title>no</title>'</script><title>yes</title>", "yes"),
        ("<!-- <title>no</title> --><title>yes</title>", "yes"),
        ("<title>a<b>c</title>", "a<b>c"),
    ],
)
def test_the_first_title_is_found(body, expected):
    assert title(page(body)) == expected


def test_links_are_absolute_and_come_once_in_order():
    body = """<base href="http://b.example/dir/"><a href=one>1</a><a href="one#part">
    <area href=' /two '><A HREF="http://c.example/?a=1&amp;b=2">
    <a href="HTTPS://D.example/q">
    <a href="//d.example"><a href=mailto:x@y><a href="javascript:void 0"><a href="tel:1"><a name=x>
    <a href="http://[bad/"><a href=""><a href="#top"><a href=file.PDF><a href="img.jpg?x=1">
    <a href="/x?f=a.pdf"><!-- <a href=no> --><script>"<a href=no2>"</script><a href=one>
    <link href=/style.css>"""
    assert list(links(page(body))) == [
        "http://b.example/dir/one",
        "http://b.example/two",
        "http://c.example/?a=1&b=2",
        "https://d.example/q",
        "http://d.example",
        "http://b.example/dir/",
        "http://b.example/x?f=a.pdf",
    ]


@needs("python3-doc", found=PYTHON_DOC.is_dir())
def test_on_real_pages_it_finds_what_a_link_extractor_finds():
    extractor = LinkExtractor()
    for path in sorted(PYTHON_DOC.glob("*.html"))[:40]:
        response = page(path.read_bytes(), f"http://a.example/library/{path.name}")
        theirs = {link.url.partition("#")[0] for link in extractor.extract_links(response)}
        assert {u for u in links(response) if u != response.url} == theirs - {response.url}, path
        assert title(response) == " ".join(response.css("title::text").get().split())


@given(st.text(alphabet="<>/=\"' ahreftilscp!-&;#x1\u00e9\n", max_size=300), st.integers(1, 40))
def test_where_the_pieces_are_cut_does_not_matter(text, piece):
    """Nor does any page, however broken, raise."""
    whole = list(links(page(text)))
    kept = htmlscan.PIECE_CHARS
    htmlscan.PIECE_CHARS = piece
    try:
        assert list(links(page(text))) == whole
    finally:
        htmlscan.PIECE_CHARS = kept


def test_a_page_with_many_links_is_never_held():
    body = "".join(f'<p><a href="/page/{n}">{n}</a></p>\n' for n in range(100_000))
    response = page(f"<title>x</title>{body}")
    assert len(response.text) > 3_000_000
    tracemalloc.start()
    try:
        began = time.perf_counter()
        found = links(response)
        first = list(itertools.islice(found, 3))
        first_after_s = time.perf_counter() - began
        count = 3 + sum(1 for _ in itertools.islice(found, 20_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first[0] == "http://a.example/page/0"
    assert count == 20_003
    assert peak < 10_000_000
    assert first_after_s < 1
