"""`site`: what links reach on one host, to a depth, once each."""

from __future__ import annotations

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.http import HtmlResponse

from extensions.arguments import BadArgument
from spiders.site import SiteSpider, host_of
from tests.sites import Answer, Host, Route, Site


def linked(*hrefs: str) -> Answer:
    body = "".join(f'<a href="{href}">x</a>' for href in hrefs)
    return Answer(headers=(("Content-Type", "text/html"),), body=f"<title>t</title>{body}")


def host(pages: dict[str, Answer]) -> Host:
    return Host(routes=tuple(Route(path, (answer,)) for path, answer in pages.items()))


def paths(result) -> list[str]:
    return sorted(item.url.split("/", 3)[3] for item in result.items)


@pytest_twisted.ensureDeferred
async def test_what_links_reach_on_the_host_is_fetched_once(crawl):
    pages = {
        "/": linked("/a", "b?y=2&x=1", "b?x=1&y=2", "/a#part", "/file.zip", "http://127.0.0.9:1/"),
        "/a": linked("/", "/deep", "mailto:x@y", "javascript:0", "http://[bad/", "/data.json"),
        "/b": linked("/private/x"),
        "/deep": linked("/deeper"),
        "/data.json": Answer(headers=(("Content-Type", "application/json"),), body='{"a": 1}'),
    }
    with Site(host(pages)) as site:
        result = await crawl(SiteSpider, url=site.url(), depth="2", deny="/private/")
        hits = site.stats().hits
    assert paths(result) == ["", "a", "b?y=2&x=1", "data.json", "deep"]
    assert {item.depth for item in result.items} == {0, 1, 2}
    assert all(hits[target] == 1 for target in ("/", "/a", "/deep", "/data.json"))
    assert "/deeper" not in hits


@pytest_twisted.ensureDeferred
async def test_a_site_that_answers_from_another_host_is_followed_there_only(crawl):
    with Site(
        host({"/": linked("/a", "/gone"), "/a": linked("/")}), host({}), Host(), first=2
    ) as site:
        away = Answer(302, (("Location", site.url("/elsewhere", 2)),))
        site.change(0, routes=(*site.hosts[0].routes, Route("/gone", (away,))))
        site.change(1, routes=(Route("/", (Answer(301, (("Location", site.url("/")),)),)),))
        result = await crawl(SiteSpider, url=site.url("/", 1))
        assert paths(result) == ["", "a"]
        assert result.stats["sluice/site/left_the_host"] == 1
        assert site.stats(2).hits["/elsewhere"] == 1


def test_links_on_another_port_or_subdomain_are_another_host():
    assert host_of("HTTP://A.example:80/x") == host_of("http://a.example")
    assert host_of("https://a.example:443") == "a.example"
    assert host_of("http://a.example:8080") == "a.example:8080"
    assert host_of("http://[bad/") == host_of("mailto:x") == ""
    spider = SiteSpider(url="http://a.example/")
    body = b'<a href="http://www.a.example/"></a><a href="http://a.example:81/"></a><a href=/x></a>'
    response = HtmlResponse("http://a.example/", body=body, request=Request("http://a.example/"))
    out = list(spider.parse(response))
    assert [r.url for r in out if isinstance(r, Request)] == ["http://a.example/x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "example.com"}, "url=example.com: no URL"),
        ({"url": "http://a/", "depth": "-1"}, "depth=-1: give a whole number"),
        ({"url": "http://a/", "allow": "("}, "broken regular expression"),
        ({"url": "http://a/", "deny": "["}, "broken regular expression"),
        ({"url": "http://a/", "dpeth": "1"}, "did you mean depth"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(BadArgument, match=message):
        SiteSpider(**arguments)


def test_the_command_says_it_in_one_line(scrapy_cli):
    done = scrapy_cli("crawl", "site", "-a", "url=http://a/", "-a", "allow=(", "-L", "ERROR")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "allow=(: broken regular expression" in done.err
