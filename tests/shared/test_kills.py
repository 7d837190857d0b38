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
MOST_KILLS = 9


def test_three_workers_of_which_one_dies_every_few_seconds(server, tmp_path):
    hosts = (Host(latency_s=0.05), Host(latency_s=0.05), Host(limit=Bucket(rate=30, burst=10)))
    with Site(*hosts) as site, running_postgres() as postgres:
        # A third of the pages is the limited host's, so that it is at its limit while workers die.
        urls = [
            url
            for three in zip(*(site.urls(PAGES // 3, host=n) for n in range(3)), strict=True)
            for url in three
        ]
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
        kills, killed_at = 0, []
        deadline = time.monotonic() + 150
        while site.stats(2).received < 20:
            assert time.monotonic() < deadline, workers[0].text()[-3000:]
            time.sleep(0.1)
        while any(worker.runs for worker in workers) and time.monotonic() < deadline:
            time.sleep(EVERY_S)
            victim = workers[kills % 3]
            if victim.runs and kills < MOST_KILLS:
                victim.kill()
                killed_at.append(time.time())
                workers[kills % 3] = start()
                kills += 1
        for worker in workers:
            assert worker.wait(60) == 0, worker.text()[-3000:]
        rows = [url for (url,) in postgres.ask("SELECT url FROM results")]
        log = site.log(2)
        refused = [hit.at - log[0].at for hit in log if hit.refused]
        print(
            f"kills at {[f'{at - log[0].at:.1f}' for at in killed_at]} s; limited host: {len(log)}"
            f" received in {log[-1].at - log[0].at:.1f} s, refused at {[f'{at:.1f}' for at in refused]} s"
        )
        assert sorted(rows) == sorted(urls)
        assert len(rows) == PAGES
        assert kills >= 4
        assert server.client.hlen("pages:requests") == 0
        assert len(refused) <= 0.02 * len(log)
