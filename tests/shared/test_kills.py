"""Three workers on one crawl, one killed every few seconds and replaced: every page once, a limit held by all together."""

from __future__ import annotations

import itertools
import time

from tests.databases import running_postgres
from tests.shared.workers import Worker
from tests.sites import Host, Site
from tests.sites.script import Bucket

PAGES = 3000
EVERY_S = 4.0


def test_three_workers_of_which_one_dies_every_few_seconds(server, tmp_path):
    hosts = (Host(latency_s=0.05), Host(latency_s=0.05), Host(limit=Bucket(rate=30, burst=10)))
    with Site(*hosts) as site, running_postgres() as postgres:
        urls = [
            url
            for three in zip(*(site.urls(1300, host=h) for h in (0, 1)), strict=True)
            for url in three
        ]
        urls += site.urls(400, host=2)
        (tmp_path / "seeds.txt").write_text("\n".join(urls))
        settings = {
            "SLUICE_FRONTIER": server.url,
            "SLUICE_LEASE_S": "2",
            "SLUICE_RESULTS": postgres.url(),
            "SCHEDULER_PERSIST": "True",
        }
        numbers = itertools.count()

        def start() -> Worker:
            folder = tmp_path / f"worker{next(numbers)}"
            return Worker(folder, "pages", f"seeds={tmp_path / 'seeds.txt'}", **settings)

        workers = [start() for _ in range(3)]
        kills = 0
        deadline = time.monotonic() + 150
        while any(worker.runs for worker in workers) and time.monotonic() < deadline:
            time.sleep(EVERY_S)
            victim = workers[kills % 3]
            if victim.runs and kills < 6:
                victim.kill()
                workers[kills % 3] = start()
                kills += 1
        for worker in workers:
            assert worker.wait(60) == 0, worker.text()[-3000:]
        rows = [url for (url,) in postgres.ask("SELECT url FROM results")]
        stats = site.stats(2)
        print(
            f"kills {kills}, limited host: {stats.received} received, {stats.refused} refused,",
            f"all: {site.stats().received} received",
        )
        assert sorted(rows) == sorted(urls)
        assert len(rows) == PAGES
        assert kills >= 4
        assert server.client.hlen("pages:requests") == 0
        assert stats.refused <= max(8, 0.1 * stats.received)  # on an idle machine some 2%
