"""Credentials of proxies reach the proxies, and nobody and nothing else."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import pytest_twisted

from extensions.config import BadSetting, Config
from tests.cases.tools import ListSpider, letters
from tests.conftest import project_settings
from tests.proxies.tools import trial
from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from pathlib import Path

USER, PASSWORD = "us@er%x", "ge:h/e#im?€&=%"


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest_twisted.ensureDeferred
async def test_they_are_in_no_file_log_letter_or_status(crawl, tmp_path):
    routes = (Route("/page/7", (Answer(404, body="no"),)),)
    with Site(Host(routes=routes, latency_s=0.02)) as site:
        async with trial(2, user=USER, password=PASSWORD) as pool:
            lines = [f"http://us%40er%25x:{PASSWORD.replace('%', '%25')}@{p.place}" for p in pool]
            settings = {
                "SLUICE_PROXIES": lines,
                "JOBDIR": "job",
                "SLUICE_STATUS_PORT": 0,
                "RETRY_TIMES": 0,
            }

            class Spider(ListSpider):
                urls = tuple(site.urls(60))

                def parse(self, response):
                    if self.meta_seen is None:
                        self.meta_seen = dict(response.meta)
                    for made in super().parse(response):
                        yield made | {"meta": json.dumps(response.meta, default=str)}

                meta_seen = None

            first = await crawl(Spider, settings | {"CLOSESPIDER_PAGECOUNT": 20})
            left = everything_written(tmp_path)
            second = await crawl(Spider, settings)
    assert len(first.crawler.spider.parsed) >= 20
    assert len(first.crawler.spider.parsed) + len(second.crawler.spider.parsed) == 59
    assert len(letters()) == 1
    assert b"sluice_proxy" not in letters()[0]["payload"]
    assert pool[0].place in letters()[0]["detail"] or pool[1].place in letters()[0]["detail"]
    assert first.crawler.spider.meta_seen["sluice_proxy"] in {p.place for p in pool}
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    for written in (left, everything_written(tmp_path), str(second.logs).encode()):
        assert b"ge:h/e" not in written
        assert secret not in written
    said = "\n".join(record.getMessage() for record in second.logs)
    assert "ge:h/e" not in said
    assert secret.decode() not in said


@pytest_twisted.ensureDeferred
async def test_a_proxy_that_the_spider_names_survives_the_store(crawl):
    with Site(Host(latency_s=0.02)) as site:
        async with trial(2, user="u") as pool:
            named = f"http://u:@{pool[1].place}"

            class Spider(ListSpider):
                urls = tuple(site.urls(40))
                meta = {"proxy": named}

            settings = {
                "SLUICE_PROXIES": [f"http://u:@{pool[0].place}"],
                "JOBDIR": "job",
                "ROBOTSTXT_OBEY": False,
            }
            first = await crawl(Spider, settings | {"CLOSESPIDER_PAGECOUNT": 5})
            second = await crawl(Spider, settings)
            assert pool[0].carried.requests == 0
    assert len(first.items) + len(second.items) == 40


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (["http://u:geheim@h:1", "http://u:geheim@h"], "line 2"),
        ("http://u:geheim@h:99999", "port"),
        (["socks5://u:geheim@h:1"], "socks5"),
        (["https://u:geheim@h:1"], "SLUICE_FAST_HANDLER"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line_without_them(value, why):
    with pytest.raises(BadSetting, match=why) as caught:
        Config.from_settings(project_settings(SLUICE_PROXIES=value))
    assert "geheim" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_shows_none():
    config = Config.from_settings(project_settings(SLUICE_PROXIES=["http://u:geheim@h:1"]))
    assert "geheim" not in repr(config)
