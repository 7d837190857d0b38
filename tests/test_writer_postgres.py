"""The writer and a real PostgreSQL that stops in the middle."""

import asyncio
import time

import pytest
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.stores.sinks.sql import SqlSink
from extensions.writer import SinkStatus
from tests.databases import running_postgres
from tests.test_writer import MemoryOutbox, Owner


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


async def worst_lag_s(stop):
    worst = 0.0
    while not stop.is_set():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - before - 0.01)
    return worst


@deferred_f_from_coro_f
async def test_a_server_that_is_away_for_a_while_loses_and_doubles_nothing(postgres):
    store = MemoryOutbox()
    sink = SqlSink(url=postgres.url(), spider="shop", job="j")
    owner = Owner(store, [sink], bound=2000)
    await owner.writer.open()
    stop = asyncio.Event()
    lag = asyncio.create_task(worst_lag_s(stop))
    owner.commit(store.add(1000), 1000)
    await owner.until(lambda: not store.rows)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, postgres.stop)
    for _ in range(20):
        if not owner.writer.too_deep:
            owner.commit(store.add(200), 200)
    await owner.until(lambda: owner.writer.states[0].status is SinkStatus.DOWN)
    assert owner.writer.too_deep
    assert owner.writer.waiting == 2000
    await loop.run_in_executor(None, postgres.start)
    await owner.until(lambda: not store.rows, within_s=30)
    assert owner.writer.states[0].status is SinkStatus.OK
    stop.set()
    assert await lag < 0.5  # far from a hang; the benchmark has the figure
    assert await owner.writer.close() == 0
    found = [id_ for (id_,) in postgres.ask("SELECT id FROM results ORDER BY id")]
    assert found == list(range(1, 3001))
