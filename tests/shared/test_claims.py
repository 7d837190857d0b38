"""Who may have a domain: never more workers than are allowed, and each its part."""

from __future__ import annotations

import asyncio
import time

import pytest
from redis.asyncio import Redis
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.stores.base import Batch, State, StoredRequest
from extensions.stores.redis import RedisJobStore
from extensions.stores.redisvalues import Terms
from extensions.stores.sqlite import SqliteJobStore
from tests.shared.workers import Worker
from tests.sites import Host, Site


def a_store(server, *, most=1, lease_s=30.0) -> RedisJobStore:
    store = RedisJobStore(
        client=Redis.from_url(server.url),
        local=SqliteJobStore(path=None, durable=False),
        requests_key="s:requests",
        dupefilter_key="s:dupefilter",
        terms=Terms(workers_per_domain=most, lease_s=lease_s),
        first_domains=0,
    )
    store.delivers(items=False, letters=False)
    return store


async def joined(server, count, **settings):
    stores = [a_store(server, **settings) for _ in range(count)]
    for store in stores:
        await store.connect()
    return stores


async def go(*stores):
    for store in stores:
        await store.leave()
        store.close()


def rows(domains, each, *, first=1):
    return [
        StoredRequest(
            id=first + n * each + k,
            domain=f"{n}.example",
            priority=0,
            rank=k,
            payload=b"{}",
            state=State.PENDING,
        )
        for n in range(domains)
        for k in range(each)
    ]


def holders(server):
    claims = server.client.hgetall("s:requests:claims")
    return {domain.decode(): held.decode().split() for domain, held in claims.items()}


@pytest.mark.parametrize(("most", "each_has"), [(1, [6, 0, 0]), (2, [6, 6, 0])])
@deferred_f_from_coro_f
async def test_a_domain_has_no_more_workers_than_are_allowed(server, most, each_has):
    stores = await joined(server, 3, most=most)
    stores[0].commit(Batch(inserts=rows(6, 40)))
    await stores[0].exchange()
    for store in stores * 2:
        store.wishes.domains = 6
        await store.exchange()
        assert all(len(held) <= most for held in holders(server).values())
    assert {len(held) for held in holders(server).values()} == {most}
    assert [len(store.domains) for store in stores] == each_has
    await go(*stores)


@deferred_f_from_coro_f
async def test_a_worker_that_has_all_it_can_have_is_told_of_no_more(server):
    """Else it would ask fifty times a second for what it cannot get."""
    (store,) = await joined(server, 1, most=2)
    store.commit(Batch(inserts=rows(3, 500)))
    await store.exchange()
    store.wishes.domains = 10
    await store.exchange()
    await store.exchange()
    assert len(store.domains) == 3
    assert store.totals.unclaimed == 0
    await go(store)


@deferred_f_from_coro_f
async def test_only_a_worker_with_less_than_its_share_is_hungry(server):
    first, second = await joined(server, 2)
    first.commit(Batch(inserts=rows(4, 500)))
    await first.exchange()
    first.wishes.domains = 4
    await first.exchange()
    second.wishes.domains = 4
    await second.exchange()
    assert second.totals.hungry == 1
    for name in ("0.example", "1.example"):
        first.wishes.domains = 0
        first.hand_back(name)
        first.wishes.release = [name]
        await first.exchange()
    await second.exchange()
    assert second.domains == {"0.example", "1.example"}
    assert second.totals.hungry == 0
    assert {tuple(held) for held in holders(server).values()} == {("1",), ("2",)}
    await go(first, second)


@pytest.mark.parametrize("died", [False, True])
@pytest.mark.parametrize("comes_with_rows", [False, True])
@deferred_f_from_coro_f
async def test_what_a_holder_found_goes_to_the_next(server, died, comes_with_rows):
    """However it comes by the domain, and whether or not the answer that says so is lost on the way."""
    first, second = await joined(server, 2, lease_s=0.3)
    first.commit(Batch(inserts=rows(1, 1)))
    first.wishes.domains = 1
    await first.exchange()
    await first.exchange()
    first.wishes.learned = {"0.example": '{"mark": 7}'}
    await first.exchange()
    heard = []
    second.events.inherited = heard.append
    if comes_with_rows:
        (row,) = rows(1, 1, first=2)
        row.state = State.WINDOW
    if died:
        while not second.totals.reclaimed:
            await second.exchange()
            await asyncio.sleep(0.05)
    else:
        await go(first)
    if comes_with_rows:
        second.commit(Batch(inserts=[row]))
    second.wishes.domains = 1
    second._exchange._fetches -= 1  # as if the answer before had not come
    await second.exchange()
    second._exchange._fetches -= 1
    await second.exchange()
    assert {(one.domain, one.text, one.died) for one in heard} == {
        ("0.example", '{"mark": 7}', died)
    }
    assert len(heard) == 2
    assert 0.0 <= heard[0].age_s <= heard[1].age_s < 10
    await second.exchange()
    assert len(heard) == 2
    await go(second)
    if died:
        await first._client.aclose()
        first.close()


def test_two_workers_share_one_domain_and_its_limit(server, tmp_path):
    with Site(Host(latency_s=0.2)) as site:
        urls = site.urls(400)
        (tmp_path / "s").write_text("\n".join(urls))
        settings = {
            "SLUICE_FRONTIER": server.url,
            "SLUICE_WORKERS_PER_DOMAIN": "2",
            "SCHEDULER_PERSIST": "True",
            "CONCURRENT_REQUESTS_PER_DOMAIN": "4",
        }
        two = [
            Worker(tmp_path / name, "pages", f"seeds={tmp_path / 's'}", **settings) for name in "ab"
        ]
        deadline = time.monotonic() + 90
        assert [worker.wait(deadline - time.monotonic()) for worker in two] == [0, 0]
        pages = [
            len((tmp_path / name / "results/pages.jsonl").read_text().splitlines()) for name in "ab"
        ]
        print(f"pages of each: {pages}; at once: {site.stats().max_in_flight}")
        assert sum(pages) == len(urls) == site.stats().received
        assert min(pages) > len(urls) / 5
        assert site.stats().max_in_flight <= 4
