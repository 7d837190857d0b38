"""Odd values in requests and settings: nothing hangs, nothing is lost, and what cannot work is refused by name."""

from __future__ import annotations

import pytest
import scrapy
from pytest_twisted import ensureDeferred

from extensions.addon import refuse_conflicts
from extensions.config import BadSetting, Config
from tests.conftest import project_settings

PRIORITIES = [1.5, float("nan"), float("inf"), "x", None, 10**30, -(10**30), True]
SLOTS = [0, "", "x", -1, float("nan"), float("inf"), [], [1], {}, {"a": 1}, b"1", True]
DELAYS = [0, "x", -1, float("nan"), float("inf"), [], b"1", 10**400]


class Odd(scrapy.Spider):
    name = "odd"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site

    async def start(self):
        for index, priority in enumerate(PRIORITIES):
            request = scrapy.Request(self.site.url(f"/page/p{index}"))
            request.priority = priority
            yield request
        for index, slot in enumerate(SLOTS):
            yield scrapy.Request(self.site.url(f"/page/s{index}"), meta={"download_slot": slot})
        for index, delay_s in enumerate(DELAYS):
            yield scrapy.Request(self.site.url(f"/page/d{index}"), meta={"sluice_delay_s": delay_s})

    def parse(self, response):
        yield {"url": response.url}


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job", "SLUICE_MEMORY_WINDOW": 2}])
@ensureDeferred
async def test_odd_requests_are_crawled_like_others(crawl, site, settings):
    done = await crawl(Odd, settings, site=site)
    assert (done.reason, done.stats["sluice/account_off"]) == ("finished", 0)
    assert done.stats["sluice/parsed"] == len(PRIORITIES) + len(SLOTS) + len(DELAYS)
    assert len({item["url"] for item in done.items}) == done.stats["sluice/parsed"]


@pytest.mark.parametrize(
    "name", ["CONCURRENT_ITEMS", "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN"]
)
def test_settings_that_let_nothing_through_are_refused(name):
    with pytest.raises(BadSetting, match=f"{name}=0: give at least 1"):
        refuse_conflicts(project_settings(**{name: 0}))


@pytest.mark.parametrize("name", ["DOWNLOAD_DELAY", "DOWNLOAD_TIMEOUT"])
def test_times_below_zero_are_refused(name):
    with pytest.raises(BadSetting, match=f"{name}=-1: give seconds, 0 or more"):
        refuse_conflicts(project_settings(**{name: -1}))


@pytest.mark.parametrize(
    ("jobdir", "why"),
    [("file", "a file is there"), ("file/job", "Not a directory"), ("x" * 300, "name too long")],
)
def test_a_jobdir_that_cannot_be_a_folder_is_refused(tmp_path, jobdir, why):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSetting, match=f"JOBDIR=.*: give a folder; .*{why}"):
        refuse_conflicts(project_settings(JOBDIR=str(tmp_path / jobdir)))


def test_whole_numbers_are_finite():
    with pytest.raises(BadSetting, match=r"SLUICE_MAX_PENDING='inf': .*a whole number"):
        Config.from_settings(project_settings(SLUICE_MAX_PENDING="inf"))
