"""Field rules: CSS or XPath, first match or all, refused with the place when they are broken."""

from __future__ import annotations

import json

import pytest
from scrapy.http import HtmlResponse, JsonResponse, Response, XmlResponse

from extensions.arguments import BadArgument
from extensions.fields import FieldRules

BODY = b"""<html><head><meta name=author content=" A. B. "></head><body>
<p class=price> 12
 <b>EUR</b></p><a class=tag>x</a><a class=tag> </a><a class=tag href=/y>y z</a></body></html>"""


def rules(tmp_path, written) -> FieldRules:
    path = tmp_path / "fields.json"
    path.write_text(written if isinstance(written, str) else json.dumps(written))
    return FieldRules.load(str(path))


def test_the_four_forms(tmp_path):
    found = rules(
        tmp_path,
        {
            "price": "p.price",
            "tags": ["css:a.tag"],
            "link": "a.tag::attr(href)",
            "author": "xpath://meta[@name='author']/@content",
            "hrefs": ["xpath://a/@href"],
            "count": "xpath:count(//a)",
            "none": ".missing",
            "nones": [".missing"],
        },
    ).extract(HtmlResponse("http://a/", body=BODY))
    assert found == {
        "price": "12 EUR",
        "tags": ["x", "y z"],
        "link": "/y",
        "author": "A. B.",
        "hrefs": ["/y"],
        "count": "3.0",
        "none": None,
        "nones": [],
    }


def test_answers_that_are_no_page_have_no_fields(tmp_path):
    some = rules(tmp_path, {"a": "b"})
    assert some.extract(Response("http://a/", body=b"\x00")) == {}
    assert some.extract(JsonResponse("http://a/", body=b'{"b": 1}')) == {}
    assert some.extract(XmlResponse("http://a/", body=b"<a><b>1</b></a>")) == {"a": "1"}
    assert some.extract(HtmlResponse("http://a/", body=b"")) == {"a": None}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "no JSON: .* line 1 column 2"),
        ("[]", "give an object"),
        ("{}", "give an object"),
        ({"a": 1}, "a: give"),
        ({"a": ["x", "y"]}, "a: give"),
        ({"a": "p["}, "a: no CSS"),
        ({"a": "xpath://p["}, "a: no XPath"),
        ({"a": "xpath:nothing()"}, "a: no XPath"),
        ({"a": " "}, "a: give"),
    ],
)
def test_broken_rules_are_refused(tmp_path, written, message):
    with pytest.raises(BadArgument, match=message):
        rules(tmp_path, written)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(BadArgument, match="No such file"):
        FieldRules.load(str(tmp_path / "nothing"))
    (tmp_path / "latin").write_bytes(b'{"a": "\xfc"}')
    with pytest.raises(BadArgument, match="not UTF-8"):
        FieldRules.load(str(tmp_path / "latin"))
