"""Commands for looking around leave no trace; run as a user runs them."""

from __future__ import annotations

import pytest

from extensions.commandline import leaves_no_trace
from tests.sites import Site


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python", "/usr/bin/scrapy", "shell", "http://x/"], True),
        (["python", "-m", "scrapy", "fetch", "http://x/"], True),
        (["python", "-X", "dev", "-m", "scrapy", "-L", "INFO"], False),
        (["python", "/usr/bin/scrapy", "crawl", "shell"], False),
        (["python", "/usr/bin/scrapy"], False),
        (["python", "runner.py", "scrapy", "parse"], False),
    ],
)
def test_the_command_is_read_off_the_command_line(words, expected, monkeypatch):
    monkeypatch.delenv("SCRAPY_CHECK", raising=False)
    assert leaves_no_trace(words) is expected


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("fetch", "{url}", "--nolog"), "<title>"),
        (("parse", "{url}", "--spider", "site", "-c", "parse", "--nolog"), "Scraped Items"),
        (("shell", "{url}", "-c", "response.status", "--nolog"), "200"),
    ],
)
def test_it_works_through_our_scheduler_and_leaves_no_file(scrapy_cli, command, says):
    with Site() as site:
        done = scrapy_cli(*(word.format(url=site.urls(1)[0]) for word in command))
    assert done.code == 0, done.err
    assert says in done.out
    assert list(done.folder.iterdir()) == []
