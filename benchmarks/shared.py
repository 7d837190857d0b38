"""What a frontier in Redis costs, against a file of one's own and against scrapy-redis, in the same run."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.sites import Site
from tests.valkey import ValkeyServer, valkey

from .clients import Client, Run, measure
from .scenarios import BOTH, Table, alternated, median

PAGES = 3000


def clients(server: ValkeyServer) -> list[Client]:
    """Who is compared. All fetch the same pages from the same site."""
    theirs = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": server.url,
    }
    ours = {**BOTH, "SLUICE_FRONTIER": server.url, "SLUICE_PROGRESS": False}
    return [
        Client("stock Scrapy, in memory", sluice=False, settings=BOTH),
        Client("scrapy-redis 0.9.1", sluice=False, settings={**BOTH, **theirs}),
        Client("Sluice, SQLite (JOBDIR)", sluice=True, settings=BOTH, jobdir=True),
        Client("Sluice, Redis", sluice=True, settings=ours),
    ]


def shared(rounds: int) -> Table:
    """One worker over a local Valkey."""
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        valkey(Path(folder)) as server,
        Site() as site,
    ):
        seeds = site.urls(PAGES)

        def once(client: Client) -> Run:
            server.client.flushall()
            return measure(client, site, seeds=seeds)

        for client, runs in alternated(clients(server), rounds, once):
            speed = statistics.median(run.pages / run.crawl_s for run in runs)
            cpu_us = statistics.median(run.cpu_s * 1e6 / max(1, run.pages) for run in runs)
            rows.append(
                (client.name, f"{median(runs, 'pages'):.0f}", f"{speed:.0f}", f"{cpu_us:.0f}")
            )
    columns = ("client", "pages", "pages/s, first to last", "CPU us/page, whole process")
    return Table(f"Shared frontier: {PAGES:,} pages of 1 kB, 32 concurrent", columns, rows)
