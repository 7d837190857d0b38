"""What a spider was made with is found again."""

from scrapy import Spider

from extensions.spiderargs import spider_arguments


class Plain(Spider):
    name = "plain"


class Own(Spider):
    name = "own"

    def __init__(self, url=None, depth="1", **kwargs):
        super().__init__(**kwargs)
        self.url = url
        self.depth = depth
        self.computed = "x"


def test_of_scrapy_crawl():
    argv = [
        "/usr/bin/scrapy",
        "crawl",
        "plain",
        "-a",
        "url=http://h/?a=b",
        "-adepth=2",
        "-s",
        "A=1",
    ]
    assert spider_arguments(Plain(), argv) == {"url": "http://h/?a=b", "depth": "2"}


def test_of_scrapyd():
    argv = ["/x/scrapyd/runner.py", "crawl", "plain", "-a", "_job=7", "-a", "url=u"]
    assert spider_arguments(Plain(), argv) == {"_job": "7", "url": "u"}


def test_of_a_script():
    assert spider_arguments(Plain(url="u", n=3), ["script.py"]) == {"url": "u"}
    assert spider_arguments(Own(url="u"), ["script.py"]) == {"url": "u", "depth": "1"}


def test_of_another_spider_in_the_same_process():
    argv = ["scrapy", "crawl", "other", "-a", "url=x"]
    assert spider_arguments(Own(url="u"), argv) == {"url": "u", "depth": "1"}
