"""Redis goes away, comes back without its data, is slow, full, refuses: nothing is lost, nothing ends in silence."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
import pytest_twisted
import redis
from twisted.internet.defer import Deferred

from spiders.pages import PagesSpider
from tests.shared.workers import Worker
from tests.shim import Shim
from tests.sites import Host, Site
from tests.valkey import valkey


def workers(count, folder, url, seeds, **settings):
    return [
        Worker(
            folder / f"w{n}",
            "pages",
            f"seeds={seeds}",
            SLUICE_FRONTIER=url,
            SLUICE_LEASE_S="30",
            SCHEDULER_PERSIST="True",
            **settings,
        )
        for n in range(count)
    ]


def results(folder):
    return [
        json.loads(line)["url"]
        for path in folder.glob("w*/results/pages.jsonl")
        for line in path.read_text().splitlines()
    ]


def until(what, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_redis_is_away_for_20_seconds_and_comes_back_with_its_data(tmp_path):
    with valkey(tmp_path / "valkey", keeps=True) as server, Site(Host(latency_s=0.3)) as site:
        urls = site.urls(500)
        (tmp_path / "seeds").write_text("\n".join(urls))
        two = workers(2, tmp_path, server.url, tmp_path / "seeds")
        until(lambda: site.stats().received > 60)
        server.stop()
        time.sleep(20)
        assert all(worker.runs for worker in two)
        server.start()
        assert [worker.wait(90) for worker in two] == [0, 0]
        assert sorted(results(tmp_path)) == sorted(urls)
        assert site.stats().received <= 500 + 32
        said = "".join(worker.text() for worker in two)
        assert "Redis does not answer" in said
        assert "Redis works again after" in said
        assert "'sluice/bottleneck_seconds/store_unreachable': 1" in said  # 10 to 19 s


def test_redis_comes_back_empty_and_the_crawl_says_so(tmp_path):
    with valkey(tmp_path / "valkey") as server, Site(Host(latency_s=0.2)) as site:
        (tmp_path / "seeds").write_text("\n".join(site.urls(500)))
        two = workers(2, tmp_path, server.url, tmp_path / "seeds")
        until(lambda: site.stats().received > 40)
        server.stop()
        time.sleep(2)
        server.start()
        codes = [worker.wait(60) for worker in two]
        assert all(code not in {0, None} for code in codes), codes
        for worker in two:
            assert "vanished from Redis" in worker.text()
            assert "'finish_reason': 'job_lost'" in worker.text()


@pytest_twisted.ensureDeferred
async def test_a_link_of_three_seconds_stops_no_loop_and_loses_nothing(
    crawl, site, tmp_path, server, shared
):
    urls = site.urls(100)
    (tmp_path / "s").write_text("\n".join(urls))
    lags = []

    async def watch():
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - before - 0.01)

    with Shim(server.port) as shim:
        watching = asyncio.ensure_future(watch())
        shim.delay_s = 3.0
        result = await crawl(
            PagesSpider,
            {**shared, "SLUICE_FRONTIER": shim.url, "SLUICE_LEASE_S": 30},
            seeds="s",
        )
        watching.cancel()
    assert sorted(item.url for item in result.items) == sorted(urls)
    assert result.reason == "finished"
    lags.sort()
    assert lags[int(len(lags) * 0.99)] < 0.1


@pytest_twisted.ensureDeferred
async def test_an_answer_that_is_lost_on_the_way_does_nothing_twice(
    crawl, tmp_path, server, shared
):
    with Shim(server.port) as shim, Site(Host(latency_s=0.1)) as site:
        urls = site.urls(600)
        (tmp_path / "s").write_text("\n".join(urls))
        settings = {**shared, "SLUICE_FRONTIER": shim.url, "SLUICE_LEASE_S": 30}

        async def cut():
            for _ in range(4):
                await asyncio.sleep(0.8)
                shim.cut_answers = int(bool(server.client.exists("pages:requests")))

        cutting = asyncio.ensure_future(cut())
        result = await crawl(PagesSpider, settings, seeds="s")
        cutting.cancel()
        assert shim.cuts >= 2
        assert site.stats().received == 600 + 1  # robots.txt
    assert sorted(item.url for item in result.items) == sorted(urls)
    assert result.stats.get("dupefilter/filtered", 0) == 0


def test_a_wrong_password_ends_the_run_with_a_message(tmp_path):
    with valkey(tmp_path / "valkey", "--requirepass", "right") as server:
        url = server.url.replace("//", "//:wrong@")
        (tmp_path / "seeds").write_text("http://127.0.0.1:9/")
        (worker,) = workers(1, tmp_path, url, tmp_path / "seeds")
        assert worker.wait(60) != 0
        assert "Redis refuses this worker" in worker.text()
        assert "wrong@" not in worker.text()


def test_a_failover_to_another_server(tmp_path):
    with (
        valkey(tmp_path / "a") as first,
        valkey(tmp_path / "b") as second,
        Site(Host(latency_s=0.2)) as site,
        Shim(first.port) as shim,
    ):
        second.client.replicaof("127.0.0.1", first.port)
        until(lambda: second.client.info("replication")["master_link_status"] == "up")
        urls = site.urls(300)
        (tmp_path / "seeds").write_text("\n".join(urls))
        two = workers(2, tmp_path, shim.url, tmp_path / "seeds")
        until(lambda: site.stats().received > 60)
        shim.move(second.port)  # still a replica: it takes no writes
        time.sleep(1)
        first.stop()
        second.client.replicaof("NO", "ONE")
        assert [worker.wait(90) for worker in two] == [0, 0]
        assert sorted(set(results(tmp_path))) == sorted(urls)
        assert site.stats().received <= 300 + 64


@pytest_twisted.ensureDeferred
async def test_writes_are_refused_for_a_while(crawl, tmp_path, server, shared):
    """As Redis does with MISCONF, when it cannot save."""
    with Site(Host(latency_s=0.1)) as site:
        urls = site.urls(200)
        (tmp_path / "s").write_text("\n".join(urls))

        async def refuse():
            await asyncio.sleep(1.0)
            await asyncio.to_thread(server.client.config_set, "min-replicas-to-write", 1)
            await asyncio.sleep(3.0)
            await asyncio.to_thread(server.client.config_set, "min-replicas-to-write", 0)

        refusing = asyncio.ensure_future(refuse())
        result = await crawl(PagesSpider, {**shared, "SLUICE_LEASE_S": 30}, seeds="s")
        await Deferred.fromFuture(refusing)
    assert sorted(item.url for item in result.items) == sorted(urls)


@pytest_twisted.ensureDeferred
async def test_a_server_that_cannot_save_refuses_writes(crawl, tmp_path, shared):
    """MISCONF, for real: a folder stands where the server's file should be."""
    with (
        valkey(tmp_path / "v", "--dbfilename", "taken") as server,
        Site(Host(latency_s=0.1)) as site,
    ):
        urls = site.urls(200)
        (tmp_path / "s").write_text("\n".join(urls))

        def save(status):
            server.client.bgsave()
            until(lambda: not server.client.info("persistence")["rdb_bgsave_in_progress"])
            assert server.client.info("persistence")["rdb_last_bgsave_status"] == status

        async def refuse():
            await asyncio.sleep(1.0)
            (server.folder / "taken").mkdir()
            server.client.config_set("save", "3600 1")
            await asyncio.to_thread(save, "err")
            with pytest.raises(redis.ResponseError, match="MISCONF"):
                server.client.set("x", "y")
            await asyncio.sleep(3.0)
            (server.folder / "taken").rmdir()
            await asyncio.to_thread(save, "ok")

        refusing = asyncio.ensure_future(refuse())
        result = await crawl(
            PagesSpider, {**shared, "SLUICE_FRONTIER": server.url, "SLUICE_LEASE_S": 30}, seeds="s"
        )
        await Deferred.fromFuture(refusing)
        assert site.stats().received == 200 + 1  # robots.txt
    assert sorted(item.url for item in result.items) == sorted(urls)
    assert result.stats["sluice/shared/away"] == 1


def fill(client, megabytes):
    """Others' keys, until the server takes no more, or evicts."""
    for number in range(megabytes * 16):
        try:
            client.set(f"filler:{number}", b"x" * 65_536)
        except redis.OutOfMemoryError:
            break
    for number in range(200):
        try:
            client.set(f"little:{number}", b"x" * 1000)
        except redis.OutOfMemoryError:
            return


def empty(client):
    for key in client.scan_iter("filler:*"):
        client.delete(key)


def test_a_full_server_is_waited_for_and_nothing_is_lost(tmp_path):
    options = ("--maxmemory", "12mb", "--maxmemory-policy", "noeviction")
    with valkey(tmp_path / "small", *options) as server, Site(Host(latency_s=0.2)) as site:
        urls = site.urls(600)
        (tmp_path / "seeds").write_text("\n".join(urls))
        settings = {"SLUICE_MAX_PENDING": "100"}
        (worker,) = workers(1, tmp_path, server.url, tmp_path / "seeds", **settings)
        until(lambda: site.stats().received > 60)
        fill(server.client, 12)
        until(lambda: "Redis is full" in worker.text())
        time.sleep(2)
        assert worker.runs
        empty(server.client)
        assert worker.wait(90) == 0, worker.text()[-2000:]
        assert sorted(results(tmp_path)) == sorted(urls)
        assert site.stats().received == 600
        assert "Redis works again after" in worker.text()


def test_a_worker_that_waits_for_room_says_so_though_nothing_was_refused(tmp_path):
    """It has nothing to write, and no seed may come in: else it would stand still without a word."""
    options = ("--maxmemory", "12mb", "--maxmemory-policy", "noeviction")
    with valkey(tmp_path / "small", *options) as server:
        settings = {"SLUICE_FRONTIER": server.url, "MAX_IDLE_TIME_BEFORE_CLOSE": "60"}
        worker = Worker(tmp_path / "w", "queue", **settings)
        until(lambda: "Joined the job" in worker.text())
        time.sleep(1)
        fill(server.client, 12)
        until(lambda: "Redis is full" in worker.text(), within_s=20)
        empty(server.client)
        until(lambda: "Redis works again after" in worker.text(), within_s=20)


def test_a_server_that_evicts_keys_loses_the_job_and_that_is_said(tmp_path):
    options = ("--maxmemory", "12mb", "--maxmemory-policy", "allkeys-random")
    with valkey(tmp_path / "small", *options) as server, Site(Host(latency_s=0.3)) as site:
        (tmp_path / "seeds").write_text("\n".join(site.urls(2000)))
        (worker,) = workers(1, tmp_path, server.url, tmp_path / "seeds")
        until(lambda: site.stats().received > 40)
        assert "Redis throws keys away when it is full" in worker.text()
        deadline = time.monotonic() + 30
        while worker.runs and time.monotonic() < deadline:
            fill(server.client, 14)
            empty(server.client)
        assert worker.wait(30) not in {0, 3}
        assert "Part of the job vanished from Redis" in worker.text()
        assert "'finish_reason': 'job_lost'" in worker.text()


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru"])
@pytest_twisted.ensureDeferred
async def test_the_gate_keeps_a_small_server_from_filling_up(crawl, tmp_path, shared, policy):
    """Maxmemory 8mb, 50,000 seeds: they wait outside."""
    options = ("--maxmemory", "8mb", "--maxmemory-policy", policy)
    with valkey(tmp_path / "small", *options) as server, Site(Host()) as site:
        (tmp_path / "s").write_text("\n".join(site.urls(50_000)))
        settings = {
            **shared,
            "SLUICE_FRONTIER": server.url,
            "SLUICE_MAX_PENDING": 40_000,
            "CLOSESPIDER_TIMEOUT": 15,
        }
        result = await crawl(PagesSpider, settings, seeds="s")
        used = server.client.info("memory")["used_memory"]
    assert result.reason == "closespider_timeout"
    assert len(result.items) > 300
    assert used < 8 * 2**20
    assert "sluice/shared/away" not in result.stats
