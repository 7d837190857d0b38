"""What a frontier in Redis costs, against a file of one's own and against scrapy-redis, in the same run."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from extensions.stores.base import Batch, State, StoredRequest
from extensions.stores.redis import RedisJobStore
from extensions.stores.sqlite import SqliteJobStore
from tests.sites import Host, Site
from tests.valkey import ValkeyServer, valkey

from .clients import Client, Run, measure
from .scenarios import BOTH, Table, alternated, median

if TYPE_CHECKING:
    from collections.abc import Iterator

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


DOMAINS = 500
LAG_GAUGE = {"EXTENSIONS": json.dumps({"benchmarks.laggauge.LagGauge": 1})}


def workers(rounds: int) -> Table:
    """One worker and two on 500 domains: sites that need 0.25 s, so that the sites and not a processor are waited for."""
    rows = []
    per_second: dict[int, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        valkey(Path(folder) / "valkey") as server,
        Site(*[Host(latency_s=0.25) for _ in range(DOMAINS)]) as site,
    ):
        seeds = [site.url(f"/page/{n}", host) for n in range(8) for host in range(DOMAINS)]
        (Path(folder) / "seeds").write_text("\n".join(seeds), encoding="utf-8")
        for count in (1, 2):
            runs = [_together(server, site, Path(folder), count) for _ in range(rounds)]
            speed = per_second[count] = statistics.median(run[0] for run in runs)
            rows.append(
                (
                    str(count),
                    f"{speed:.0f}",
                    f"{speed / per_second[1]:.2f}",
                    " + ".join(str(n) for n in runs[-1][1]),
                    f"{statistics.median(run[2] for run in runs):.0f}%",
                    f"{max(run[3] for run in runs):.0f}",
                )
            )
    columns = (
        "workers", "pages/s, first to last", "of one", "pages of each", "processor of each", "loop lag p99, ms",
    )  # fmt: skip
    return Table(
        f"Workers on {DOMAINS} domains: {len(seeds):,} pages, 24 at once each", columns, rows
    )


def _together(
    server: ValkeyServer, site: Site, folder: Path, count: int
) -> tuple[float, list[int], float, float]:
    """Pages a second, pages of each worker, its share of a processor in per cent, and the worst lag in ms."""
    server.client.flushall()
    site.forget()
    settings: dict[str, Any] = {
        "SLUICE_FRONTIER": server.url,
        "SLUICE_PROGRESS": False,
        "SCHEDULER_PERSIST": True,
        "CONCURRENT_REQUESTS": 24,
        "ROBOTSTXT_OBEY": False,
        **LAG_GAUGE,
    }
    client = Client("", sluice=True, settings=settings)
    running = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        begun_due = time.monotonic()
        for n in range(count):
            place = Path(name) / str(n)
            place.mkdir()
            words = client.command(place, seeds=folder / "seeds", url=None)
            with (place / "log").open("wb") as log:
                process = subprocess.Popen(
                    words, cwd=place, env=client.environment(), stdout=log, stderr=log
                )
            running.append((place, process))
        shares, pages, lags = [], [], []
        for place, process in running:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            passed_s = time.monotonic() - begun_due
            shares.append(100 * (usage.ru_utime + usage.ru_stime) / passed_s)
            pages.append(len((place / "results/pages.jsonl").read_text().splitlines()))
            lags.append(json.loads((place / "lag.json").read_text())["p99_ms"])
    times = [hit.at for host in range(DOMAINS) for hit in site.log(host)]
    return len(times) / (max(times) - min(times)), pages, statistics.mean(shares), max(lags)


def memory(_: int) -> Table:
    """What a pending request and a seen URL take in Redis, by the server's own count."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        for count in (40_000, 100_000):
            for domains in (1, 500):
                with valkey(Path(folder) / f"{count}-{domains}") as server:
                    rows.append(asyncio.run(_filled(server, count, domains)))
    columns = ("requests", "domains", "pending, bytes without payload", "seen, bytes")
    return Table(f"Memory in Valkey, payloads of {PAYLOAD} bytes", columns, rows)


PAYLOAD = 105


async def _filled(server: ValkeyServer, count: int, domains: int) -> tuple[str, ...]:
    store = RedisJobStore(
        client=Redis(port=server.port),
        local=SqliteJobStore(path=None, durable=False),
        requests_key="s:requests",
        dupefilter_key="s:dupefilter",
        first_domains=0,
    )
    await store.connect()
    before = server.client.info("memory")["used_memory"]
    for rows in _rows(count, domains):
        store.commit(Batch(inserts=rows))
        await store.exchange()
    pending = server.client.info("memory")["used_memory"] - before
    before = server.client.info("memory")["used_memory"]
    for rows in _rows(count, 1, first=count):
        store.commit(Batch(seen=[row.fingerprint for row in rows if row.fingerprint]))
        await store.exchange()
    seen = (server.client.info("memory")["used_memory"] - before) / count
    await store.leave()
    store.close()
    each = pending / count - seen - PAYLOAD
    return f"{count:,}", str(domains), f"{each:.0f}", f"{seen:.0f}"


def _rows(count: int, domains: int, *, first: int = 0) -> Iterator[list[StoredRequest]]:
    for start in range(first, first + count, 1000):
        yield [
            StoredRequest(
                id=(1 << 32) + n,
                domain=f"host{n % domains}.example",
                priority=0,
                rank=n,
                payload=b"x" * PAYLOAD,
                state=State.PENDING,
                fingerprint=n.to_bytes(20, "big"),
            )
            for n in range(start, start + 1000)
        ]
