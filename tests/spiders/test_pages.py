"""`pages`: a list of URLs from a file or standard input, with the fields that are asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import pytest_twisted
from scrapy.utils.test import get_crawler
from twisted.internet.threads import deferToThread

from extensions.arguments import BadArgument
from spiders.pages import PagesSpider
from tests.conftest import scrapy_environment
from tests.sites import Answer, Host, Route, Site


@pytest_twisted.ensureDeferred
async def test_every_good_line_is_a_page_and_bad_ones_are_named(crawl, site, tmp_path):
    """One bad line in the middle of good ones."""
    urls = site.urls(10)
    lines = [*urls[:5], "no-scheme", "", "# note", *urls[5:], "http://"]
    (tmp_path / "seeds.txt").write_text("\n".join(lines))
    (tmp_path / "fields.json").write_text(json.dumps({"heading": "h1", "none": ".none"}))
    result = await crawl(PagesSpider, seeds="seeds.txt", fields="fields.json")
    assert result.reason == "finished"
    assert sorted(item.url for item in result.items) == sorted(urls)
    assert {item.status for item in result.items} == {200}
    assert all(set(item.fields) == {"heading", "none"} for item in result.items)
    assert result.stats["sluice/seeds/read"] == 10
    assert result.stats["sluice/seeds/skipped"] == 2
    said = " ".join(result.messages())
    assert "seeds.txt line 6 skipped" in said
    assert "seeds.txt line 14 skipped" in said
    assert "2 lines skipped, 10 URLs read" in said


@pytest_twisted.ensureDeferred
async def test_answers_that_are_not_html_are_pages_too(crawl, tmp_path):
    kinds = {"/a.pdf": "application/pdf", "/b.json": "application/json", "/c": "text/html"}
    routes = [
        Route(path, (Answer(headers=(("Content-Type", kind),), body="{}"),))
        for path, kind in kinds.items()
    ]
    with Site(Host(routes=tuple(routes))) as site:
        (tmp_path / "s").write_text("\n".join(map(site.url, kinds)))
        (tmp_path / "f").write_text('{"a": "p"}')
        result = await crawl(PagesSpider, seeds="s", fields="f")
    assert len(result.items) == 3
    assert {item.title for item in result.items} == {None}


@pytest_twisted.ensureDeferred
async def test_a_file_without_any_url_ends_with_an_error(crawl, tmp_path):
    (tmp_path / "s").write_text("# nothing\nfoo\n")
    result = await crawl(PagesSpider, seeds="s")
    assert result.reason == "bad_argument"
    assert any("no URL in it (1 line skipped)" in message for message in result.messages())


def test_construction_needs_no_arguments_but_refuses_wrong_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PagesSpider()
    with pytest.raises(BadArgument, match="no such file"):
        PagesSpider.from_crawler(get_crawler(PagesSpider), seeds="nothing")
    replay = get_crawler(PagesSpider, {"SLUICE_REPLAY_ONLY": True})
    PagesSpider.from_crawler(replay, seeds="nothing")
    with pytest.raises(BadArgument, match="unknown argument seed; did you mean seeds"):
        PagesSpider(seed="nothing")


REFUSED = [
    ((), "pages: an argument is missing; add -a seeds=FILE"),
    (("-a", "sedes=x"), "pages: unknown argument sedes; did you mean seeds?"),
    (("-a", "seeds=nothing.txt"), "seeds=nothing.txt: no such file"),
    (("-a", "seeds=empty.txt"), "seeds=empty.txt: the file is empty"),
    (("-a", "seeds=comments.txt"), "seeds=comments.txt: no URL in it (0 lines skipped)"),
    (("-a", "seeds=columns.csv"), 'seeds=columns.csv: no column "url"; its first line is: a,b'),
    (("-a", "seeds=ok.txt", "-a", "fields=empty.txt"), "fields=empty.txt: no JSON:"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_work_is_one_line_and_exit_code_2(scrapy_cli, tmp_path, arguments, message):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "comments.txt").write_text("# only this\n")
    (tmp_path / "columns.csv").write_text("a,b\n1,2\n")
    (tmp_path / "ok.txt").write_text("http://127.0.0.1:1/\n")
    done = scrapy_cli("crawl", "pages", *arguments, "-L", "ERROR")
    assert done.code == 2, done.err
    assert done.out == ""
    assert len(done.err.splitlines()) == 1, done.err
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("SLUICE_MAX_PENDNG=5", "did you mean SLUICE_MAX_PENDING?"),
        ("SLUICE_MAX_PENDING=lots", "give auto, or a whole number of at least 1"),
        ("CONCURRENT_REQUESTS=x", "CONCURRENT_REQUESTS='x': give a whole number, for example 16"),
        (
            "CONCURRENT_REQUESTS=5.5",
            "CONCURRENT_REQUESTS='5.5': give a whole number, for example 16",
        ),
        ("RETRY_TIMES=two", "RETRY_TIMES='two': give a whole number, for example 2"),
        ("DOWNLOAD_DELAY=slow", "DOWNLOAD_DELAY='slow': give a number, for example 0"),
    ],
)
def test_an_impossible_setting_is_one_line_and_exit_code_2(scrapy_cli, tmp_path, setting, message):
    (tmp_path / "ok.txt").write_text("http://127.0.0.1:1/\n")
    done = scrapy_cli("crawl", "pages", "-a", "seeds=ok.txt", "-L", "ERROR", "-s", setting)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1, done.err
    assert message in done.err


def test_without_a_log_the_line_is_still_said(scrapy_cli):
    done = scrapy_cli("crawl", "pages", "-a", "seeds=nothing", "--nolog")
    assert (done.code, done.err) == (2, "scrapy: seeds=nothing: no such file\n")


def test_an_unknown_spider_is_one_line(scrapy_cli):
    done = scrapy_cli("crawl", "page", "--nolog")
    assert (done.code, done.err) == (
        2,
        "scrapy: no spider 'page'; scrapy list names them\n",
    )


@pytest_twisted.ensureDeferred
async def test_seeds_come_through_a_pipe(site, tmp_path):
    """The pipe gives 20 URLs and the crawl ends with them."""

    def run() -> Any:
        return subprocess.run(
            [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", "seeds=-", "-O", "-:jsonl"],
            input="\n".join(site.urls(20)),
            env=scrapy_environment(),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = await deferToThread(run)
    assert done.returncode == 0, done.stderr
    assert len({json.loads(line)["url"] for line in done.stdout.splitlines()}) == 20
