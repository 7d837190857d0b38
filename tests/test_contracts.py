"""The contracts themselves, without a crawl."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import ContractFail, IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse, XmlResponse
from scrapy.settings import Settings

from extensions.contracts import (
    META_KEY,
    AccountedContract,
    CheckMiddleware,
    FieldsContract,
    FixtureContract,
    FollowsContract,
    MetaContract,
    add_contracts,
    has_fixtures,
    prepare_check,
)
from spiders.site import SiteSpider

METHOD = SiteSpider().parse


def answer_of(*args: str) -> dict:
    return FixtureContract(METHOD, *args).adjust_request_args({"meta": {"kept": 1}})["meta"]


def test_a_fixture_answers_as_its_url_would():
    meta = answer_of("guide.html", "404")
    assert meta["kept"] == 1
    assert meta["dont_retry"]
    middleware = CheckMiddleware(offline=True)
    response = middleware.process_request(Request("https://harbor.example/x", meta=meta))
    assert isinstance(response, HtmlResponse)
    assert (response.url, response.status) == ("https://harbor.example/x", 404)
    assert b"Tides" in response.body
    xml = middleware.process_request(Request("http://a/", meta=answer_of("sitemap.xml")))
    assert isinstance(xml, XmlResponse)


def test_headers_beside_a_fixture_are_sent(tmp_path, monkeypatch):
    contract = FixtureContract(METHOD, "page.bin")
    monkeypatch.setattr(contract, "_folder", tmp_path)
    (tmp_path / "page.bin").write_bytes(b"<p>x")
    (tmp_path / "page.bin.headers").write_text(
        "Content-Type: text/html\nSet-Cookie: a\nSet-Cookie: b"
    )
    meta = contract.adjust_request_args({})["meta"]
    response = CheckMiddleware(offline=True).process_request(Request("http://a/", meta=meta))
    assert isinstance(response, HtmlResponse)
    assert response.headers.getlist("Set-Cookie") == [b"a", b"b"]


def test_a_fixture_that_is_not_there_or_not_named_is_an_error():
    with pytest.raises(FileNotFoundError):
        answer_of("nothing.html")
    with pytest.raises(ValueError, match="takes a file name"):
        FixtureContract(METHOD, "")


def test_offline_everything_else_is_refused():
    with pytest.raises(IgnoreRequest, match="has no @fixture"):
        CheckMiddleware(offline=True).process_request(Request("http://a/"))
    assert CheckMiddleware(offline=False).process_request(Request("http://a/")) is None


def test_the_middleware_is_only_there_in_a_check(monkeypatch):
    monkeypatch.delenv("SCRAPY_CHECK", raising=False)
    with pytest.raises(NotConfigured):
        CheckMiddleware.from_crawler(None)
    assert has_fixtures(SiteSpider)
    assert not has_fixtures(Spider)


def test_meta_adds_in_either_order():
    first = MetaContract(METHOD, '{"a":', "1}").adjust_request_args({})
    assert FixtureContract(METHOD, "guide.html").adjust_request_args(first)["meta"]["a"] == 1
    then = FixtureContract(METHOD, "guide.html").adjust_request_args({})
    assert META_KEY in MetaContract(METHOD, '{"a": 1}').adjust_request_args(then)["meta"]


def test_fields_must_be_there_and_not_empty():
    contract = FieldsContract(METHOD, "a", "b")
    contract.post_process([{"a": 0, "b": False}, Request("http://a/")])
    for output in ([], [Request("http://a/")]):
        with pytest.raises(ContractFail, match="No item"):
            contract.post_process(output)
    for item in ({"a": 1}, {"a": 1, "b": ""}, {"a": 1, "b": None}, {"a": 1, "b": []}):
        with pytest.raises(ContractFail, match="Item 2: missing or empty: b"):
            contract.post_process([{"a": 1, "b": 1}, item])


def test_follows_counts_requests_and_their_hosts():
    output = [Request("http://a/"), Request("http://B:8080/"), {"item": 1}]
    FollowsContract(METHOD, "1").post_process(output)
    FollowsContract(METHOD, "2", "2", "a", "b").post_process(output)
    with pytest.raises(ContractFail, match="2 requests, expected 3 or more"):
        FollowsContract(METHOD, "3").post_process(output)
    with pytest.raises(ContractFail, match="2 requests, expected 0 to 1"):
        FollowsContract(METHOD, "0", "1").post_process(output)
    with pytest.raises(ContractFail, match="A request to http://b:8080/, expected only a"):
        FollowsContract(METHOD, "2", "a").post_process(output)
    with pytest.raises(ValueError, match="takes one or two numbers"):
        FollowsContract(METHOD, "a")


def test_all_that_comes_out_can_be_kept():
    contract = AccountedContract(METHOD)
    contract.post_process([{"a": 1}, Request("http://a/", METHOD), Request("http://a/")])
    for value, message in [
        ({"a": float("nan")}, "Output 2 cannot be kept: .*nan"),
        ("text", "Output 2 cannot be kept"),
        (Request("http://a/", lambda _: None), "Output 2 cannot be kept: .*callback"),
        (Request("http://a/", meta={"live": object()}), "Output 2 cannot be kept: .*meta"),
    ]:
        with pytest.raises(ContractFail, match=message):
            contract.post_process([{"a": 1}, value])


def test_what_the_user_set_stays():
    settings = Settings({"SPIDER_CONTRACTS": {FixtureContract: 5}, "DOWNLOADER_MIDDLEWARES": {}})
    add_contracts(settings)
    add_contracts(settings)
    prepare_check(settings)
    assert settings["SPIDER_CONTRACTS"][FixtureContract] == 5
    assert len(settings["SPIDER_CONTRACTS"]) == 5
    assert settings["DOWNLOADER_MIDDLEWARES"][CheckMiddleware] == 1
