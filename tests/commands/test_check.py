"""`scrapy check` in a process of its own: offline, and never green without having checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPIDER = '''
from scrapy import Request, Spider

class CaseSpider(Spider):
    name = "case"
    custom_settings = {settings}

    def parse(self, response, **kwargs):
        """First.

        @url {url}
        {first}
        @returns items 1 1
        """
        yield {{"url": response.url}}
{more}
'''


def write_spider(folder: Path, url: str, *, first: str = "", more: str = "", settings: str = "{}"):
    text = SPIDER.format(url=url, first=first, more=more, settings=settings)
    (folder / "casespiders.py").write_text(text)


@pytest.fixture
def check(scrapy_cli: Callable, tmp_path: Path) -> Callable:
    def run(*arguments: str, **environment: str):
        return scrapy_cli("check", "-s", "SPIDER_MODULES=casespiders", *arguments, **environment)

    return run


def ran(done) -> int:
    return int(re.search(r"Ran (\d+) contract", done.err)[1])


def test_the_projects_own_spiders_pass_offline_and_leave_nothing(scrapy_cli, tmp_path):
    done = scrapy_cli("check", "-s", f"JOBDIR={tmp_path / 'job'}", "-s", "HTTPCACHE_ENABLED=True")
    assert done.code == 0, done.err
    assert ran(done) >= 22
    assert "OK" in done.err
    assert list(tmp_path.iterdir()) == []


def test_list_names_methods_and_asks_nobody(check, tmp_path):
    write_spider(tmp_path, "http://127.0.0.1:1/")
    done = check("-l")
    assert done.code == 0
    assert done.out == "case\n  * parse\n"


MORE = '''
    async def parse_gen(self, response):
        """Second.

        @url {url}
        @meta {{"a": 1}}
        @returns items 1 1
        """
        assert response.meta["a"] == 1
        yield {{"x": 1}}

    async def parse_coro(self, response, arg):
        """Third.

        @url {url}
        @cb_kwargs {{"arg": 2}}
        @returns requests 1 1
        """
        assert arg == 2
        return [Request("http://127.0.0.1:1/never-sent")]
'''


def test_three_methods_on_one_url_are_all_checked_every_time(check, tmp_path):
    """Sync, async generator and coroutine; nothing is filtered, delayed or remembered."""
    with Site() as site:
        url = site.url("/page/1")
        write_spider(tmp_path, url, more=MORE.format(url=url))
        for _ in range(2):
            done = check("-s", f"JOBDIR={tmp_path / 'job'}")
            assert (done.code, ran(done)) == (0, 3), done.err
        assert site.stats().hits["/page/1"] == 6
    assert not (tmp_path / "job").exists()


def fails(done, *parts: str) -> None:
    assert done.code == 1, done.err
    for part in parts:
        assert part in done.err
    assert "FAILED" in done.err


def test_a_component_that_cannot_start_is_a_named_failure(check, tmp_path):
    """The frontier's path, a scheduler, a middleware."""
    write_spider(tmp_path, "http://a.example/")
    (tmp_path / "file").write_text("")
    fails(check("-s", f"JOBDIR={tmp_path / 'file' / 'job'}"), "JOBDIR", "Not a directory")
    fails(check("-s", "SCHEDULER=nowhere.Scheduler"), "[case] could not start", "nowhere")
    fails(
        check("-s", 'SPIDER_MIDDLEWARES={"nowhere.Missing": 1}'),
        "[case] could not start",
        "nowhere",
    )


def test_a_check_that_did_not_run_fails(check, tmp_path):
    """Hooks, a server that is off, dropped and ignored requests, callbacks."""
    write_spider(tmp_path, "http://127.0.0.1:1/")
    fails(check(), "[case] parse (errback)", "ConnectionRefused")
    write_spider(tmp_path, "http://a.example/", first="@meta {broken")
    fails(check(), "[case] parse (contract)", "JSONDecodeError")
    write_spider(tmp_path, "http://a.example/", first="@unheard of")
    fails(check(), "[case] parse (contract)", "unheard")
    write_spider(
        tmp_path, "ftp://a.example/", settings='{"SPIDER_MIDDLEWARES": {"casespiders.Drop": 1}}'
    )
    with (tmp_path / "casespiders.py").open("a") as out:
        out.write(
            "class Drop:\n    async def process_start(self, start):\n"
            "        async for request in start:\n            pass\n"
            "        return\n        yield\n"
        )
    fails(check(), "[case] parse", "dropped on the way")
    write_spider(
        tmp_path, "http://a.example/", first="@returns items 1 1", more="    parse = None\n"
    )
    fails(check(), "nothing to check")


def test_a_callback_that_raises_fails(check, tmp_path):
    """With what it raised."""
    with Site() as site:
        write_spider(
            tmp_path, site.url(), more=MORE.replace("arg == 2", "1 / 0").format(url=site.url())
        )
        fails(check(), "[case] parse_coro (callback)", "ZeroDivisionError")


def test_a_refusing_host_ends_the_check_soon(check, tmp_path):
    """No waiting for retries."""
    with Site(Host(routes=(Route("*", (Answer(503, (("Retry-After", "900"),)),)),))) as site:
        write_spider(tmp_path, site.url())
        fails(check("-s", "ROBOTSTXT_OBEY=False"), "[case] parse (errback)", "503")
        assert site.stats().hits["/"] == 1


def test_a_spider_with_a_fixture_is_offline_as_a_whole(check, tmp_path):
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "p.html").write_text("<p>x")
    with Site() as site:
        url = site.url("/page/1")
        write_spider(tmp_path, url, first="@fixture p.html", more=MORE.format(url=url))
        done = check()
        fails(done, "[case] parse_gen (errback)", "has no @fixture", "errors=2")
        assert site.stats().received == 0


def test_an_unknown_spider_is_refused(check, tmp_path):
    write_spider(tmp_path, "http://a.example/")
    done = check("nothing")
    assert done.code == 2
    assert "no spider 'nothing'" in done.err


def test_scrapys_own_check_knows_the_contracts_where_only_the_add_on_is_on(scrapy_cli, tmp_path):
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "p.html").write_text("<p>x")
    more = "    def other(self, response):\n        '''No page.\n\n        @url http://a.example/\n        '''\n"
    write_spider(tmp_path, "http://a.example/", first="@fixture p.html", more=more)
    (tmp_path / "theirs.py").write_text(
        'SPIDER_MODULES = ["casespiders"]\nADDONS = {"extensions.Addon": 300}\n'
        'TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"\n'
    )
    done = scrapy_cli("check", SCRAPY_SETTINGS_MODULE="theirs")
    assert "[case] other (errback)" in done.err
    assert "has no @fixture" in done.err
    assert "errors=1)" in done.err, done.err
    assert ran(done) == 2
    assert not (tmp_path / "deadletters").exists()
    assert not (tmp_path / "results").exists()
