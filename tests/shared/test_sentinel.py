"""Sentinels: the workers ask them where Redis is, and follow when they choose another in the middle of a crawl."""

from __future__ import annotations

import json
import subprocess

import pytest
import redis

from tests.shared.test_redis_faults import until
from tests.shared.workers import Worker
from tests.sites import Host, Site
from tests.valkey import BINARY, free_port, valkey


@pytest.fixture
def pair(tmp_path):
    """A server, its replica, and the port of a sentinel that watches them."""
    with valkey(tmp_path / "a") as first, valkey(tmp_path / "b") as second:
        second.client.replicaof("127.0.0.1", first.port)
        until(lambda: second.client.info("replication")["master_link_status"] == "up")
        port = free_port()
        (tmp_path / "sentinel.conf").write_text(
            f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
            f"sentinel monitor crawl 127.0.0.1 {first.port} 1\n"
            "sentinel down-after-milliseconds crawl 1000\n"
            "sentinel failover-timeout crawl 10000\n"
        )
        with (tmp_path / "sentinel.log").open("wb") as log:
            sentinel = subprocess.Popen(
                [str(BINARY), str(tmp_path / "sentinel.conf"), "--sentinel"], stdout=log, stderr=log
            )
        asking = redis.Redis(port=port, protocol=2)
        try:
            until(lambda: knows_the_replica(asking))
            yield first, second, port
        finally:
            asking.close()
            sentinel.kill()
            sentinel.wait()


def knows_the_replica(asking) -> bool:
    try:
        return bool(asking.sentinel_slaves("crawl"))
    except redis.ConnectionError:
        return False


def test_workers_follow_a_failover_in_the_middle_of_a_crawl(pair, tmp_path):
    first, second, port = pair
    with Site(Host(latency_s=0.2)) as site:
        urls = site.urls(400)
        (tmp_path / "s").write_text("\n".join(urls))
        settings = {
            "SLUICE_FRONTIER": "redis",
            "REDIS_PARAMS": json.dumps(
                {"sentinels": [["127.0.0.1", port]], "service_name": "crawl"}
            ),
            "SCHEDULER_PERSIST": "True",
        }
        two = [
            Worker(tmp_path / f"w{n}", "pages", f"seeds={tmp_path / 's'}", **settings)
            for n in range(2)
        ]
        until(lambda: site.stats().received > 60)
        first.stop()
        codes = [worker.wait(90) for worker in two]
        said = "".join(worker.text() for worker in two)
        assert codes == [0, 0], said[-3000:]
        assert second.client.info("replication")["role"] == "master"
        assert "Redis does not answer" in said
        assert "Redis works again after" in said
        pages = [
            json.loads(line)["url"]
            for path in tmp_path.glob("w*/results/pages.jsonl")
            for line in path.read_text().splitlines()
        ]
        assert set(pages) == set(urls)
        assert site.stats().received <= len(urls) + 2 * 32  # what the replica had not heard of yet
