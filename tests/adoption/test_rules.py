"""What the user set wins, what cannot work is refused, and each part can be switched off by itself (docs/adoption.md)."""

from __future__ import annotations

import logging
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from pytest_twisted import ensureDeferred
from scrapy.core.downloader import Downloader
from scrapy.core.scheduler import Scheduler as StockScheduler
from scrapy.downloadermiddlewares.retry import RetryMiddleware as StockRetry
from scrapy.dupefilters import BaseDupeFilter
from scrapy.settings import Settings

from extensions import conflicts
from extensions.addon import DEFAULTS, Addon
from extensions.config import BadSetting, Config
from extensions.overview import Overview
from tests.cases.tools import ListSpider, letters, results
from tests.conftest import ROOT
from tests.sites import Answer, Bucket, Host, Route, Site

TEXT = (ROOT / "docs" / "adoption.md").read_text(encoding="utf-8")


class TheirScheduler(StockScheduler):
    """A scheduler that is not ours."""


class TheirDownloader:
    """No subclass of Scrapy's."""


class TheirRetry(StockRetry):
    """A retry middleware of a project's own."""


class EveryOther(BaseDupeFilter):
    """A filter with a rule of its own."""

    def __init__(self):
        self.asked = 0

    def request_seen(self, request):
        self.asked += 1
        return self.asked % 2 == 0


HERE = __name__
REFUSED = [
    ({"AUTOTHROTTLE_ENABLED": True}, "Sluice finds each domain's pace by itself"),
    ({"SCHEDULER": TheirScheduler}, "Sluice is a scheduler"),
    ({"SCHEDULER": f"{HERE}.TheirScheduler"}, "Sluice is a scheduler"),
    ({"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}, "Sluice is a scheduler"),
    ({"DOWNLOADER": TheirDownloader}, "make it a subclass of Scrapy's Downloader"),
    (
        {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
        "Sluice needs Scrapy's default",
    ),
]


def settings_with(**values) -> Settings:
    settings = Settings()
    settings.setdict(values, priority="project")
    return settings


@pytest.mark.parametrize(("values", "remedy"), REFUSED)
def test_what_cannot_work_is_refused_in_one_line(values, remedy):
    with pytest.raises(BadSetting) as told:
        Addon().update_settings(settings_with(**values))
    (name,) = values
    assert str(told.value).startswith(f"{name}=")
    assert remedy in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("values", "package"),
    [
        ({"SLUICE_FRONTIER": "redis"}, "redis"),
        ({"SLUICE_RESULTS": "postgresql://nobody@nowhere/db"}, "sqlalchemy"),
        ({"SLUICE_RESULTS": "a.jsonl,b.sqlite"}, "sqlalchemy"),
        ({"SLUICE_STATUS_PORT": 0}, "prometheus_client"),
    ],
)
def test_a_missing_package_is_named_only_where_it_is_asked_for(monkeypatch, values, package):
    monkeypatch.setattr(
        conflicts, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    Addon().update_settings(settings_with())
    (name,) = values
    with pytest.raises(BadSetting, match=f"{name}=.*pip install {package.replace('_', '-')}"):
        Addon().update_settings(settings_with(**values))


def test_a_downloader_of_scrapys_kind_may_stay():
    class Theirs(Downloader):
        pass

    settings = settings_with(DOWNLOADER=Theirs)
    Addon().update_settings(settings)
    assert settings["DOWNLOADER"] is Theirs


def test_what_the_user_set_wins():
    theirs = {
        "LOG_FORMATTER": "scrapy.logformatter.LogFormatter",
        "STATS_CLASS": "scrapy.statscollectors.MemoryStatsCollector",
        "CONCURRENT_ITEMS": 50,
        "RETRY_GIVE_UP_LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": True,
        "REMOTE_CONTROL_ENABLED": True,
    }
    assert theirs.keys() == DEFAULTS.keys()
    settings = settings_with(**theirs)
    Addon().update_settings(settings)
    assert {name: settings[name] for name in theirs} == theirs
    for name in theirs:
        assert f"`{name}`" in TEXT


def failing(path: str, *answers: Answer) -> Host:
    return Host(routes=(Route(path, answers),))


@pytest.mark.parametrize(
    "theirs",
    [
        {f"{HERE}.TheirRetry": 550, "scrapy.downloadermiddlewares.retry.RetryMiddleware": None},
        {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 550},
        {TheirRetry: 545, StockRetry: None},
    ],
)
@ensureDeferred
async def test_another_retry_middleware_decides_on_retries(crawl, theirs):
    """Once for each failure, and what it gives up is a dead letter; a ban page is still no page."""
    wall = Answer(body="<title>Are you a robot?</title>")
    routes = (
        Route("/twice", (Answer(503), Answer(503), Answer())),
        Route("/always", (Answer(503),)),
        Route("/wall", (wall, Answer())),
    )
    settings = {
        "DOWNLOADER_MIDDLEWARES": theirs,
        "SLUICE_RETRY_BASE_S": 0.05,
        "ROBOTSTXT_OBEY": False,
    }
    with Site(Host(routes=routes)) as site:
        urls = [site.url(path) for path in ("/twice", "/always", "/wall")]
        done = await crawl(ListSpider, settings, urls=urls)
        hits = site.stats().hits
    assert hits == {"/twice": 3, "/always": 3, "/wall": 2}
    assert {item["url"] for item in done.items} == {urls[0], urls[2]}
    assert [(row["url"], row["reason"]) for row in letters()] == [(urls[1], "http 503")]
    assert done.stats["sluice/account_off"] == 0
    assert any("decides on retries" in text for text in done.messages(logging.INFO))


@ensureDeferred
async def test_another_filter_decides_what_is_a_duplicate(crawl, site):
    settings = {"DUPEFILTER_CLASS": EveryOther, "ROBOTSTXT_OBEY": False}
    done = await crawl(ListSpider, settings, urls=site.urls(10))
    assert (len(done.items), done.stats["sluice/account_off"]) == (5, 0)


# -- switches ----------------------------------------------------------------------------------------------------------

SWITCHES = {
    "all of it": {"SLUICE_ENABLED": False},
    "retries": {"RETRY_ENABLED": False},
    "finding each site's pace": {
        "DOWNLOADER_MIDDLEWARES": {"scrapy_sluice.throttle.ThrottleMiddleware": None}
    },
    "Sluice's retries, for Scrapy's own": {
        "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 550}
    },
    "seeds that wait": {"SPIDER_MIDDLEWARES": {"scrapy_sluice.startgate.StartGate": None}},
    "cutting endless output of a stopping crawl": {
        "SPIDER_MIDDLEWARES": {"scrapy_sluice.cutting.OutputCut": None}
    },
    "results": {"SLUICE_RESULTS": ""},
    "dead letters": {"SLUICE_DEAD_LETTERS": ""},
    "ban pages": {"SLUICE_BAN_TITLES": []},
    "Crawl-delay of robots.txt": {"SLUICE_CRAWL_DELAY": False},
    "display, log lines, report, exit code": {
        "EXTENSIONS": {"scrapy_sluice.overview.Overview": None}
    },
    "the display alone": {"SLUICE_PROGRESS": False},
    "short log lines, failed pages without a traceback": {
        "LOG_FORMATTER": "scrapy.logformatter.LogFormatter"
    },
    "cheap counting": {"STATS_CLASS": "scrapy.statscollectors.MemoryStatsCollector"},
}
OURS_GONE = {
    "retries": lambda done, hits: hits["/always"] == 1,
    "finding each site's pace": lambda done, hits: "sluice/outcome/success" not in done.stats,
    "Sluice's retries, for Scrapy's own": lambda done, hits: hits["/always"] == 3,
    "seeds that wait": lambda done, hits: "sluice/gate_closed" not in done.stats,
    "results": lambda done, hits: not Path("results").exists(),
    "dead letters": lambda done, hits: not Path("deadletters").exists(),
    "ban pages": lambda done, hits: hits["/wall"] == 1,
    "Crawl-delay of robots.txt": lambda done, hits: done.stats["elapsed_time_seconds"] < 8,
    "display, log lines, report, exit code": lambda done, hits: (
        "sluice/exit_code" not in done.stats and done.crawler.get_extension(Overview) is None
    ),
    "short log lines, failed pages without a traceback": lambda done, hits: (
        type(done.crawler.logformatter).__module__ == "scrapy.logformatter"
    ),
    "cheap counting": lambda done, hits: (
        type(done.crawler.stats).__module__ == "scrapy.statscollectors"
    ),
    "all of it": lambda done, hits: not [name for name in done.stats if "sluice" in name],
}


def in_this_repository(values):
    return {
        name: {key.replace("scrapy_sluice.", "extensions."): n for key, n in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in values.items()
    }


def test_the_switches_are_those_of_the_page():
    part = TEXT.partition("## Switching parts off")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([^|]+) \| `([^`]+)`", part, re.MULTILINE))
    said = {}
    for name, line in rows.items():
        values: dict = {}
        exec(line, values)  # noqa: S102 - a line of settings.py
        del values["__builtins__"]
        said[name] = values
    assert said == SWITCHES


@pytest.mark.parametrize("part", SWITCHES)
@ensureDeferred
async def test_each_part_can_be_switched_off_by_itself(crawl, part):
    """The crawl still ends, gets what it can get, and its account adds up; what was switched off is gone."""
    wall = Answer(body="<title>Are you a robot?</title>")
    routes = (Route("/always", (Answer(503),)), Route("/wall", (wall, Answer())))
    delay = "User-agent: *\nCrawl-delay: 0.5\n" if part.startswith("Crawl-delay") else "\n"
    settings = {
        **in_this_repository(SWITCHES[part]),
        "SLUICE_RETRY_BASE_S": 0.05,
        "SLUICE_MAX_PENDING": 5,
    }
    with Site(Host(routes=routes, robots=delay)) as site:
        pages = site.urls(20)
        urls = [*pages, site.url("/always"), site.url("/wall")]
        if not settings.get("SLUICE_ENABLED", True):
            settings = {"SLUICE_ENABLED": False}
        done = await crawl(ListSpider, settings, urls=urls)
        hits = site.stats().hits
    assert done.reason == "finished"
    got = sorted(item["url"] for item in done.items)
    assert got == sorted([*pages, site.url("/wall")])
    assert done.stats.get("sluice/account_off", 0) == 0
    if part in OURS_GONE:
        assert OURS_GONE[part](done, hits)
    else:
        assert sorted(row["url"] for row in results()) == got
    if not {"all of it", "dead letters"} & {part}:
        assert [row["url"] for row in letters()] == [site.url("/always")]


@ensureDeferred
async def test_without_the_governor_the_users_own_limits_are_kept(crawl):
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"extensions.throttle.ThrottleMiddleware": None},
        "DOWNLOAD_DELAY": 0.1,
        "DOWNLOAD_DELAY_JITTER": 0,
        "ROBOTSTXT_OBEY": False,
    }
    with Site(Host(limit=Bucket(rate=20, burst=3))) as site:
        done = await crawl(ListSpider, settings, urls=site.urls(12))
        assert site.stats().refused == 0
    assert len(done.items) == 12


def test_every_module_that_the_page_names_is_there():
    for module, name in re.findall(r"scrapy_sluice\.(\w+)\.(\w+)", TEXT):
        assert hasattr(import_module(f"extensions.{module}"), name)
    assert Config.from_settings(Settings({"SLUICE_BAN_TITLES": []})).ban_titles == ()
