"""Pages are made from answers, and checked before they are stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from project.items import Page
from project.pipelines import InvalidItem, ValidatePipeline


def page() -> Page:
    request = Request("http://a/", meta={"depth": 2})
    return Page.of(
        HtmlResponse("http://a/", request=request, body=b"<title>A\n b</title>"), {"x": 1}
    )


def test_a_page_says_where_when_and_what():
    made = page()
    assert ItemAdapter(made).asdict() == {
        "url": "http://a/",
        "status": 200,
        "title": "A b",
        "fetched_at": made.fetched_at,
        "depth": 2,
        "fields": {"x": 1},
    }
    age = datetime.now(UTC) - datetime.fromisoformat(made.fetched_at)
    assert 0 <= age.total_seconds() < 5


@pytest.mark.parametrize(
    "body", [b"", b"<title></title>", b"<title> </title>", b"<p>x", b"\x00\xff"]
)
def test_no_title_is_none(body):
    request = Request("http://a/")
    assert Page.of(HtmlResponse("http://a/", body=body, request=request)).title is None
    other = Response("http://a/", body=b"<title>x</title>", request=request)
    assert Page.of(other).title is None


def test_valid_pages_and_other_items_pass_unchanged():
    pipeline = ValidatePipeline()
    for item in (page(), {"url": 1}, replace(page(), title=None, fields={"a": [1.5, {"b": None}]})):
        assert pipeline.process_item(item) is item


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "a"}, "url is 'a'"),
        ({"url": None}, "url is None"),
        ({"status": "200"}, "status is '200'"),
        ({"status": 99}, "status is 99"),
        ({"status": True}, "status is True"),
        ({"title": 1}, "title is int"),
        ({"depth": -1}, "depth is -1"),
        ({"fetched_at": "soon"}, "fetched_at is 'soon'"),
        ({"fetched_at": "2026-11-30T12:00:00"}, "fetched_at is '2026"),
        ({"fields": []}, "fields is list"),
        ({"fields": {"a": b"x"}}, r"fields\.a is bytes"),
        ({"fields": {"a": [1, float("nan")]}}, r"fields\.a\[1\] is nan"),
        ({"fields": {1: 1}}, "has the key 1"),
        ({"fields": {"a": {"b": {1}}}}, r"fields\.a\.b is set"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(InvalidItem, match=message):
        ValidatePipeline().process_item(replace(page(), **change))
