"""Proxies and a shared frontier together: two workers on one pool, of which one is killed."""

from __future__ import annotations

import asyncio
import json

import pytest

from extensions.stores.redisletters import RedisDeadLetters
from extensions.trial.proxies import Mood
from tests.proxies.tools import in_loop, later, listed, trial
from tests.shared.workers import Worker
from tests.sites import Host, Site


@pytest.mark.parametrize("by", ["both", "proxy"])
@in_loop
async def test_two_workers_share_a_pool_and_one_dies(server, tmp_path, by):
    with Site(*[Host(latency_s=0.1) for _ in range(4)]) as site:
        async with trial(6) as pool:
            await later(pool[0].turn(Mood.REFUSE))
            await later(pool[1].turn(Mood.BAD_GATEWAY))
            urls = [url for n in range(4) for url in site.urls(100, host=n)]
            (tmp_path / "s").write_text("\n".join(urls))
            settings = {
                "SLUICE_FRONTIER": server.url,
                "SLUICE_LEASE_S": "2",
                "SCHEDULER_PERSIST": "True",
                "SLUICE_PROXIES": ",".join(listed(pool)),
                "SLUICE_LIMIT_BY": by,
            }

            def start(name: str) -> Worker:
                return Worker(tmp_path / name, "pages", f"seeds={tmp_path / 's'}", **settings)

            workers = [start("w0"), start("w1")]
            await later(until(lambda: site.stats().received > 60, workers))
            workers[0].kill()
            workers[0] = start("w2")
            await later(until(lambda: not any(worker.runs for worker in workers), workers))
            said = "".join(worker.text() for worker in workers)
            assert [worker.wait(1) for worker in workers] == [0, 0], said[-5000:]
            carried = [proxy.carried.requests for proxy in pool]
    pages = [
        json.loads(line)["url"]
        for path in tmp_path.glob("w*/results/pages.jsonl")
        for line in path.read_text().splitlines()
    ]
    print(f"pages {len(pages)}, carried {carried}")
    assert set(pages) == set(urls)
    assert len(pages) <= len(urls) + 32
    assert min(carried[2:]) > 0
    assert server.client.hlen("pages:requests") == 0
    with RedisDeadLetters(client=server.client, key="pages:deadletters", place="p") as letters:
        assert list(letters.rows()) == []


async def until(what, workers, within_s=90.0):
    deadline = asyncio.get_running_loop().time() + within_s
    while not what():
        assert asyncio.get_running_loop().time() < deadline, workers[1].text()[-3000:]
        await asyncio.sleep(0.05)
