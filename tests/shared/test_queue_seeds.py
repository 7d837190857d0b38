"""Seeds from a list, a set, a sorted set; plain or JSON, good or bad; none lost, never more than fit."""

from __future__ import annotations

import json
import pickle
import time

import pytest
import pytest_twisted
from scrapy_redis.spiders import RedisSpider

from extensions.seedentries import BadEntry, request_of
from spiders.queue import QueueSpider
from tests.shared.workers import Worker
from tests.sites import Host, Site
from tests.valkey import free_port

BAD = {
    b"{'url': 'http://a.example/'}": "begins like JSON",
    b'["http://a.example/"]': "no object: list",
    b"5": "no object: int",
    b"": "empty",
    b"  ": "empty",
    b"\xff\xfe": "not utf-8",
    pickle.dumps({"url": "http://a.example/"}): "not utf-8",
    b"a.example/x": "no http or https URL",
    b"//a.example/x": "no http or https URL",
    b"ftp://a.example/x": "no http or https URL",
    b"http://a.example/\r\nHost: x": "control character",
    b"http://a.example/" + b"x" * 1_000_000: "bytes; at most",
    b"http://[::1": "no URL",
    b'{"meta": {}}': "without a url",
    b'{"url": "http://a.example/", "body": "x", "field": "y"}': "both a body and form fields",
    b'{"url": "http://a.example/", "meta": 5}': "no request can be made",
}


@pytest.mark.parametrize("data", BAD, ids=lambda d: repr(d[:24]))
def test_a_bad_entry_is_refused_with_its_reason(data):
    with pytest.raises(BadEntry, match=BAD[data]):
        request_of(data)


@pytest.mark.parametrize(
    "data",
    [
        b"http://a.example/page",
        b"http://a.example/two words",
        "http://bücher.example/ä".encode(),
        b'{"url": "http://a.example/"}',
        b'{"url": "http://a.example/", "meta": {"job": "1"}}',
        b'{"url": "http://a.example/", "method": "post", "a": "1", "b": ["2", "3"]}',
        b'{"url": "http://a.example/?x=1", "q": "words"}',
    ],
)
def test_a_good_entry_is_scrapy_redis_s_request(data):
    spider = RedisSpider.__new__(RedisSpider)
    spider.redis_encoding, spider.name = "utf-8", "s"
    theirs = RedisSpider.make_request_from_data(spider, data)
    ours = request_of(data)
    assert type(ours) is type(theirs)
    for name in ("url", "method", "body", "meta", "dont_filter", "headers", "priority"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_an_object_may_say_more_than_scrapy_redis_takes():
    request = request_of(
        b'{"url": "http://a.example/", "method": "PUT", "body": "x", "priority": 7,'
        b' "headers": {"X-A": "b"}, "cookies": {"c": "d"}}'
    )
    assert (request.method, request.body, request.priority) == ("PUT", b"x", 7)
    assert request.headers["X-A"] == b"b"
    assert request.cookies == {"c": "d"}


def push(client, kind, entries):
    for number, entry in enumerate(entries):
        if kind == "list":
            client.rpush("queue:start_urls", entry)
        elif kind == "set":
            client.sadd("queue:start_urls", entry)
        else:
            client.zadd("queue:start_urls", {entry: -number})


@pytest.mark.parametrize(
    ("kind", "frontier"),
    [("list", "redis"), ("set", "redis"), ("zset", "redis"), ("list", "local")],
)
@pytest_twisted.ensureDeferred
async def test_one_bad_entry_of_sixteen_is_poison_and_the_others_run(  # noqa: PLR0917
    crawl, site, server, shared, kind, frontier
):
    urls = site.urls(15)
    push(server.client, kind, [*urls[:8], b"//h/p", *urls[8:]])
    settings = {**shared, "MAX_IDLE_TIME_BEFORE_CLOSE": 1}
    if frontier == "local":
        settings |= {"SLUICE_FRONTIER": "local", "REDIS_URL": server.url}
    result = await crawl(QueueSpider, settings)
    assert sorted(item.url for item in result.items) == sorted(urls)
    assert result.reason == "finished"
    (poison,) = server.client.lrange("queue:start_urls:poison", 0, -1)
    poison = json.loads(poison)
    assert (poison["entry"], poison["reason"]) == ("//h/p", "no http or https URL")
    assert server.client.keys("queue:start_urls:taken:*") == []
    assert not server.client.exists("queue:start_urls")


@pytest_twisted.ensureDeferred
async def test_a_redis_that_is_away_is_waited_for_and_no_error_at_the_end(crawl):
    """Nobody knows whether there are seeds: that is not idle. The end says how it ended, without a traceback."""
    settings = {
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
        "MAX_IDLE_TIME_BEFORE_CLOSE": 0.5,
        "CLOSESPIDER_TIMEOUT": 2,
    }
    result = await crawl(QueueSpider, settings)
    assert result.reason == "closespider_timeout"
    assert result.stats["sluice/exit_code"] == 4
    assert any("Seeds wait: Redis does not answer" in message for message in result.messages())
    assert result.stats.get("log_count/ERROR", 0) == 0


@pytest_twisted.ensureDeferred
async def test_the_same_url_twice_is_two_pages(crawl, site, server, shared):
    push(server.client, "list", site.urls(1) * 3)
    result = await crawl(QueueSpider, {**shared, "MAX_IDLE_TIME_BEFORE_CLOSE": 1})
    assert len(result.items) == 3


def test_entries_survive_kills_and_no_more_are_taken_than_fit(server, tmp_path):
    with Site(Host(latency_s=0.05)) as site:
        urls = site.urls(400)
        push(server.client, "list", urls)
        settings = {
            "SLUICE_FRONTIER": server.url,
            "SLUICE_LEASE_S": "1.5",
            "SLUICE_MAX_PENDING": "50",
            "SCHEDULER_PERSIST": "True",
        }

        def start(n):
            return Worker(tmp_path / f"w{n}", "queue", MAX_IDLE_TIME_BEFORE_CLOSE="2", **settings)

        most = 0
        for n in range(3):
            worker = start(n)
            before = site.stats().received
            deadline = time.monotonic() + 40
            while site.stats().received < before + 60:
                most = max(most, server.client.hlen("queue:requests"))
                assert time.monotonic() < deadline, worker.text()[-2000:]
                time.sleep(0.01)
            worker.kill()
        assert start(9).wait(60) == 0
        got = set(site.stats().hits)
        assert {"/" + url.split("/", 3)[3] for url in urls} <= got
        assert most <= 50 + 32
        assert server.client.llen("queue:start_urls") == 0
        assert server.client.keys("queue:start_urls:taken:*") == []
