"""A project that knows nothing of Sluice, before and after `pip install` and one line of its settings."""

from __future__ import annotations

import json
import re
import zipfile
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from tests.sites import Bucket, Host, Site

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 180
SPIDER = '''
import scrapy


class PagesSpider(scrapy.Spider):
    name = "pages"

    async def start(self):
        for number in range(int(self.count)):
            yield scrapy.Request(f"{self.site}/page/{number}")

    def parse(self, response):
        """Nothing of Sluice's is in here.

        @url http://shop.example/
        @returns items 1 1
        """
        yield {"url": response.url, "title": response.css("title::text").get()}
'''


def urls(path: Path) -> list[str]:
    return [json.loads(line)["url"] for line in path.read_text().splitlines()]


def test_the_one_line_makes_the_crawl_complete(project):
    """A host that takes 25 a second: a stock crawl loses many of its pages, and none with the line.

    How many depends on how fast this machine sends them; docs/adoption.md has figures of a quiet one.
    """
    project.spider(SPIDER)
    crawl = ("crawl", "pages", "-a", f"count={PAGES}", "-O")
    with Site(Host(latency_s=0.02, limit=Bucket(rate=25, burst=10))) as site:
        where = ("-a", f"site=http://{site.domain()}")
        before = project.scrapy(*crawl, "stock.jsonl", *where)
        assert before.returncode == 0, before.stderr
        lost = PAGES - len(urls(project.folder / "stock.jsonl"))
        project.adopt()
        done = project.scrapy(*crawl, "feed.jsonl", *where)
    assert done.returncode == 0, done.stderr
    assert lost > PAGES / 4
    found = urls(project.folder / "results" / "pages.jsonl")
    assert sorted(found) == sorted(set(found))
    assert len(found) == PAGES
    assert sorted(urls(project.folder / "feed.jsonl")) == sorted(found)


def test_the_wheel_holds_the_package_its_data_and_nothing_else(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    folder = ROOT / "extensions"
    meant = {
        f"scrapy_sluice/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in held if ".dist-info/" not in name} == meant


def test_new_commands_come_with_the_wheel_and_the_others_with_a_second_line(project):
    project.spider(SPIDER)
    shown = project.scrapy("-h").stdout
    assert {"deadletters", "fixture", "job"} <= set(
        re.findall(r"^  ([a-z-]+) ", shown, re.MULTILINE)
    )
    assert "  sluice" not in project.scrapy("genspider", "-l").stdout
    project.adopt()
    wrong = ("crawl", "pages", "-s", "SLUICE_MAX_PENDIN=1", "-L", "ERROR")
    refused = project.scrapy(*wrong)
    assert refused.returncode == 1
    assert refused.stderr.strip().splitlines()[-1].endswith("did you mean SLUICE_MAX_PENDING?")
    path = project.folder / "shop" / "settings.py"
    with path.open("a") as out:
        out.write('COMMANDS_MODULE = "scrapy_sluice.commands"\n')
    assert "  sluice" in project.scrapy("genspider", "-l").stdout
    made = project.scrapy("genspider", "-t", "sluice", "lamps", "lamps.example")
    assert made.returncode == 0, made.stderr
    checked = project.scrapy("check", "lamps")
    assert checked.returncode == 0, checked.stderr
    assert "OK" in checked.stderr
    refused = project.scrapy(*wrong)
    assert refused.returncode == 2
    (line,) = refused.stderr.strip().splitlines()
    assert line.endswith("did you mean SLUICE_MAX_PENDING?")


def test_all_parts_that_name_their_modules_work_under_the_other_name(project):
    """The fast handler, the status page with its files, SQL results, the lab's files."""
    project.spider(SPIDER)
    project.adopt()
    options = {
        "SLUICE_FAST_HANDLER": "True",
        "SLUICE_STATUS_PORT": "0",
        "SLUICE_RESULTS": "results/%(spider)s.sqlite",
        "JOBDIR": "job",
        "LOG_LEVEL": "INFO",
    }
    settings = [word for name, value in options.items() for word in ("-s", f"{name}={value}")]
    with Site() as site:
        where = ("-a", f"site=http://{site.domain()}", "-a", "count=20")
        done = project.scrapy("crawl", "pages", *where, *settings)
    assert done.returncode == 0, done.stderr
    assert "Status page: http://127.0.0.1:" in done.stderr
    assert "scrapy_sluice" in done.stderr
    assert "Traceback" not in done.stderr
    status = project.scrapy("job", "status", "job")
    assert status.returncode == 0, status.stderr
    assert "20" in status.stdout
