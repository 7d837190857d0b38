"""Crawls that a script starts: the examples of docs/adoption.md, and Scrapy's other ways, each in a process of its own."""

from __future__ import annotations

import json
import re

import pytest

from tests.adoption.conftest import run
from tests.adoption.test_one_line import SPIDER
from tests.conftest import ROOT
from tests.sites import Site

LINKS = """

class LinksSpider(scrapy.Spider):
    name = "links"

    async def start(self):
        yield scrapy.Request(f"{self.site}/chain/9/0")

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""
EXAMPLES = dict(
    re.findall(
        r"```python\n# (\w+\.py)(.*?)```", (ROOT / "docs" / "adoption.md").read_text(), re.DOTALL
    )
)
RUNNER = """
from twisted.internet import defer
from twisted.internet.asyncioreactor import install
install()
from twisted.internet import reactor
from scrapy.crawler import CrawlerRunner
from scrapy.utils.log import configure_logging
from scrapy.utils.project import get_project_settings

configure_logging()
runner = CrawlerRunner(get_project_settings())
both = [runner.crawl(name, site="https://shop.example", count=10) for name in ("pages", "links")]
defer.DeferredList(both).addBoth(lambda _: reactor.stop())
reactor.run()
"""
ASYNC_RUNNER = """
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
import asyncio
from twisted.internet import reactor
from twisted.internet.task import react
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.log import configure_logging
from scrapy.utils.project import get_project_settings

configure_logging()

@deferred_f_from_coro_f
async def main(_):
    runner = AsyncCrawlerRunner(get_project_settings())
    for name in ("pages", "links"):
        runner.crawl(name, site="https://shop.example", count=10)
    await runner.join()

react(main)
"""
WAYS = {
    "CrawlerProcess": EXAMPLES["process.py"],
    "AsyncCrawlerProcess": EXAMPLES["process.py"].replace("CrawlerProcess", "AsyncCrawlerProcess"),
    "CrawlerRunner": RUNNER,
    "AsyncCrawlerRunner": ASYNC_RUNNER,
}


@pytest.fixture
def script(project):
    """Write a script into a project with the line, and run it against a site."""
    project.spider(SPIDER + LINKS)
    project.adopt()

    def start(text: str):
        with Site() as site:
            here = text.replace("https://shop.example", f"http://{site.domain()}")
            (project.folder / "script.py").write_text("#" + here if here[0] == ":" else here)
            environment = {"SCRAPY_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": "."}
            return run(project.python, "script.py", cwd=project.folder, **environment)

    return start


@pytest.mark.parametrize("way", WAYS)
def test_two_spiders_in_one_process_are_two_crawls(project, script, way):
    done = script(WAYS[way])
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    for name, count in (("pages", 10), ("links", 9)):
        lines = (project.folder / "results" / f"{name}.jsonl").read_text().splitlines()
        assert len({json.loads(line)["url"] for line in lines}) == len(lines) == count
    assert done.stderr.count("'sluice/complete': True") == 2


def test_a_crawl_inside_an_asyncio_program(script):
    done = script(EXAMPLES["program.py"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "10 items, complete: True\n" * 2 + "the program went on: True\n"
