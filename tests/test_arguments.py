"""Arguments are refused in one line that says what would do."""

from __future__ import annotations

import pytest
from scrapy import Spider

from extensions.arguments import (
    BadArgument,
    pattern,
    refuse_unknown,
    require,
    url_fault,
    web_url,
    whole_number,
)


class Picky(Spider):
    name = "picky"
    required_arguments = {"seeds": "FILE"}
    optional_arguments = {"depth": "N"}


def test_a_missing_argument_is_named_with_its_form():
    with pytest.raises(BadArgument, match=r"^picky: an argument is missing; add -a seeds=FILE$"):
        require(Picky, {"depth": "1"})
    require(Picky, {"seeds": "x"})
    require(Spider, {})


def test_an_unknown_argument_is_refused_with_the_nearest_name():
    with pytest.raises(BadArgument, match="unknown argument sedes; did you mean seeds"):
        refuse_unknown(Picky, ["sedes"])
    with pytest.raises(BadArgument, match="it knows seeds, depth"):
        refuse_unknown(Picky, ["zzz"])
    refuse_unknown(Picky, ["seeds", "_job"])
    refuse_unknown(Spider, ["anything"])


@pytest.mark.parametrize("text", ["-1", "1.5", "", "two", "\u0664", "1e3", "9" * 10])
def test_only_ascii_digits_are_a_whole_number(text):
    with pytest.raises(BadArgument, match="whole number"):
        whole_number("depth", text)
    assert whole_number("depth", "12") == 12


def test_a_broken_pattern_says_where():
    with pytest.raises(BadArgument, match=r"^allow=\(a: broken regular expression: .*position 0$"):
        pattern("allow", "(a")
    assert pattern("allow", "/a/").search("x/a/y")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("example.com", "does not begin with http"),
        ("//example.com/", "does not begin with http"),
        ("ftp://example.com/", "ftp:// is not crawled"),
        ("file:///etc/passwd", "file:// is not crawled"),
        ("http://", "host is missing"),
        ("http:///path", "host is missing"),
        ("http://exa mple.com/", "space"),
        ("http://example.com/\x00", "control"),
        ("http://[::1/", "Invalid IPv6"),
        ("http://example.com:99999/", "Port out of range"),
        ("http://example.com:0/", "port 0"),
        ("javascript:alert(1)", "does not begin with http"),
    ],
)
def test_what_cannot_be_fetched_is_told_apart(url, part):
    assert part in url_fault(url)
    with pytest.raises(BadArgument):
        web_url("url", url)


@pytest.mark.parametrize(
    "url", ["http://a/", "https://m\u00fcller.example/\u00e4?q=1#x", "HTTP://A:80"]
)
def test_web_urls_pass(url):
    assert url_fault(url) is None
    assert web_url("url", f" {url} ") == url
