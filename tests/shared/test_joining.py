"""How a worker joins: what is not Sluice's is left alone, scrapy-redis's settings are taken, late ends are refused."""

from __future__ import annotations

import time

import pytest
import pytest_twisted
from redis.asyncio import Redis
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.config import BadSetting
from extensions.redissettings import RedisSettings
from extensions.stores.base import Batch, State, StoreBroken, StoredRequest
from extensions.stores.redis import RedisJobStore
from extensions.stores.redisanswers import Fenced, JobLost
from extensions.stores.redisvalues import Terms
from extensions.stores.sqlite import SqliteJobStore
from spiders.pages import PagesSpider
from tests.valkey import valkey


def a_store(server, **settings) -> RedisJobStore:
    store = RedisJobStore(
        client=Redis.from_url(server.url),
        local=SqliteJobStore(path=None, durable=False),
        requests_key="s:requests",
        dupefilter_key="s:dupefilter",
        **settings,
    )
    store.delivers(items=False, letters=False)
    return store


def row(id_: int, **values) -> StoredRequest:
    return StoredRequest(id_, "a.example", 0, id_, b"{}", **values)


@pytest.mark.parametrize(
    ("command", "key"), [("zadd", "s:requests"), ("rpush", "s:requests"), ("sadd", "s:dupefilter")]
)
@deferred_f_from_coro_f
async def test_what_is_not_sluice_s_is_left_untouched(server, command, key):
    value = {b"\x80\x04pickle": 1.0} if command == "zadd" else b"\x80\x04pickle"
    getattr(server.client, command)(key, value)
    before = server.client.dump(key)
    store = a_store(server)
    with pytest.raises(StoreBroken, match=f"{key} is a .* not Sluice's"):
        await store.connect()
    assert server.client.dump(key) == before
    assert server.client.keys() == [key.encode()]
    await store._client.aclose()


@pytest_twisted.ensureDeferred
async def test_a_project_of_scrapy_redis_s_moves_over_by_one_setting(
    crawl, site, tmp_path, server, shared
):
    (tmp_path / "s").write_text("\n".join(site.urls(5)))
    theirs = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": server.url,
        "SCHEDULER_PERSIST": True,
    }
    result = await crawl(PagesSpider, {**shared, **theirs, "SLUICE_FRONTIER": "redis"}, seeds="s")
    assert len(result.items) == 5
    assert server.client.scard("pages:dupefilter") == 5


def test_a_blocking_client_s_class_is_refused():
    settings = Settings({"REDIS_PARAMS": {"redis_cls": "redis.StrictRedis"}})
    with pytest.raises(BadSetting, match="redis_cls"):
        RedisSettings.from_settings(settings, spider="s", frontier="redis")


@deferred_f_from_coro_f
async def test_a_worker_that_was_taken_for_dead_says_nothing_that_counts(server):
    slow, quick = (
        a_store(server, terms=Terms(lease_s=0.3)),
        a_store(server, terms=Terms(lease_s=0.3)),
    )
    await slow.connect()
    slow.commit(Batch(inserts=[row(1, state=State.WINDOW)]))
    await slow.exchange()
    assert slow.in_hand(1)
    await quick.connect()
    deadline = time.monotonic() + 10
    while not quick.fetched and time.monotonic() < deadline:
        await quick.exchange()
    (back,) = quick.refill("a.example", 9)
    assert back.id == 1
    # A retry takes the place of 1 here, and another comes when it is already known that 1 is lost; a link is anybody's.
    slow._out.take(Batch(inserts=[row(2, parent=1, state=State.DELAYED, due_at=9e9)], done=[1]))
    with pytest.raises(Fenced):
        await slow.exchange()
    assert server.client.hlen("s:requests") == 1
    told = []
    slow.events.passed_on = told.extend
    assert await slow.enter_again() == 1
    assert told == [2]
    slow.commit(Batch(inserts=[row(3, parent=1), row(4, parent=1, fingerprint=b"f")], done=[1]))
    await slow.exchange()
    assert told == [2, 3, 4]  # 4 went to Redis
    assert sorted(server.client.hkeys("s:requests")) == [b"1", b"4"]
    quick.commit(Batch(done=[1]))
    await quick.exchange()
    assert server.client.hkeys("s:requests") == [b"4"]
    for store in (slow, quick):
        await store.leave()
        store.close()


@deferred_f_from_coro_f
async def test_an_end_that_a_failover_lost_is_made_up_for(server):
    """A replica that takes over may not have heard of the last ends: its worker has nothing, and yet holds the rows."""
    store = a_store(server)
    await store.connect()
    store.commit(Batch(inserts=[row(1, state=State.WINDOW), row(2, state=State.WINDOW)]))
    await store.exchange()
    before = {key: server.client.dump(key) for key in server.client.keys("*")}
    store.commit(Batch(done=[1, 2]))
    await store.exchange()
    assert store.totals.rows == 0
    for key, value in before.items():
        server.client.restore(key, 0, value, replace=True)
    deadline = time.monotonic() + 10
    while store.fetched < 2 and time.monotonic() < deadline:
        store.wishes.domains = 1
        await store.exchange()
    assert sorted(r.id for r in store.refill("a.example", 9)) == [1, 2]
    store.commit(Batch(done=[1, 2]))
    await store.exchange()
    await store.exchange()
    assert store.totals.rows == 0
    await store.leave()
    store.close()


@deferred_f_from_coro_f
async def test_evicted_keys_are_recognised(server):
    store = a_store(server)
    await store.connect()
    store.commit(Batch(inserts=[row(1)], seen=[b"x" * 20]))
    await store.exchange()
    server.client.delete("s:dupefilter")
    with pytest.raises(JobLost, match="0 of 1 fingerprints are left"):
        await store.exchange()
    await store._client.aclose()
    store.close()


@deferred_f_from_coro_f
async def test_a_full_server_takes_ends_and_then_has_room_for_what_waited(tmp_path):
    options = ("--maxmemory", "6mb", "--maxmemory-policy", "noeviction")
    with valkey(tmp_path / "small", *options) as small:
        store = a_store(small)
        await store.connect()
        number = 0
        while not store.full:
            number += 1
            big = row(number, state=State.WINDOW)
            big.payload = b"x" * 50_000
            store.commit(Batch(inserts=[big]))
            await store.exchange()
        assert store.waiting == 1
        assert small.client.hlen("s:requests") == number - 1
        child = row(1000, parent=1)
        store.commit(Batch(inserts=[child], done=[1, 2, 3]))  # 1 has a child that is not stored
        await store.exchange()
        assert small.client.hlen("s:requests") == number - 3
        await store.exchange()
        assert not store.full
        while store.waiting:
            await store.exchange()
        assert small.client.hlen("s:requests") == number - 3 + 1  # both rows came, and 1 went
        await store.leave()
        store.close()
