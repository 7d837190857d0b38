"""How long the status page's answers take, and hold the event loop, when a crawl is large."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from extensions.book import Book
from extensions.metrics import CrawlMetrics
from extensions.policy.bottleneck import Cause
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from extensions.statuspage import StatusPage
from tests.test_sampler import PlainView

from .scenarios import Table
from .watching import get

if TYPE_CHECKING:
    from collections.abc import Callable

DOMAINS = 20_000


def polls(rounds: int) -> Table:
    """How long answers take, and hold the event loop, with 20,000 domains and a million pending."""
    sampler = large()
    took = asyncio.run(_ask(sampler, max(20, rounds * 10)))
    rows = [(name, *(f"{value:.1f}" for value in values)) for name, values in took.items()]
    columns = ("answer", "median ms", "slowest ms", "loop held, slowest ms", "kB")
    return Table(f"Answers at {DOMAINS:,} domains and a million pending", columns, rows)


def large(domains: int = DOMAINS) -> Sampler:
    """A crawl of so many domains, in the middle of its work."""
    book = Book()
    working = {}
    for number in range(domains):
        name = f"host-{number}.example"
        cause = Cause.HOLD if number % 9 == 0 else Cause.PACE
        working[name] = DomainNow(cause=cause, pending=50, pace=1.0, wait_s=number % 40)
        book.taken(name, 60)
        for page in range(3):
            book.parsed(name, now=float(page), now_at=time.time())
    view = PlainView(working, pending_in_memory=4000, pending_on_disk=996_000, max_in_flight=64)
    sampler = Sampler(view=view, book=book, spider="site", job="large")
    for _ in range(2 * domains // 250 + 2):
        sampler.tick()
    return sampler


async def _ask(sampler: Sampler, times: int) -> dict[str, tuple[float, ...]]:
    page = StatusPage(sampler=sampler, metrics=CrawlMetrics(sampler=sampler).scrape)
    url = await page.start()
    if url is None:
        raise RuntimeError("no port")
    seq = sampler.snapshot.seq if sampler.snapshot else 0

    def delta() -> str:
        return f"domains.json?limit=100&since={seq}"

    asked: dict[str, Callable[[], str]] = {
        "status.json": lambda: "status.json",
        "domains.json, 100 rows": lambda: "domains.json?limit=100",
        "domains.json, what changed": delta,
        "domains.json, a search": lambda: "domains.json?limit=100&find=99",
        "metrics": lambda: "metrics",
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in asked}
    loop = asyncio.get_running_loop()
    for _ in range(times):
        for name, path in asked.items():
            lag = asyncio.ensure_future(_lag())
            began = time.perf_counter()
            body, _headers = await loop.run_in_executor(None, get, url + path())
            took_s = time.perf_counter() - began
            lag.cancel()
            with suppress(asyncio.CancelledError):
                await lag
            held_s = _LAGS.pop() if _LAGS else 0.0
            found[name].append((took_s * 1e3, held_s * 1e3, len(body) / 1e3))
        seq = sampler.snapshot.seq if sampler.snapshot else 0
        _move(sampler)
    await page.stop()
    samples_ms = [_tick_ms(sampler) for _ in range(20)]
    table: dict[str, tuple[float, ...]] = {
        name: (
            statistics.median(took for took, _, _ in each),
            max(took for took, _, _ in each),
            max(held for _, held, _ in each),
            statistics.median(size for _, _, size in each),
        )
        for name, each in found.items()
    }
    worst_ms = max(samples_ms)
    return table | {"(a sample)": (statistics.median(samples_ms), worst_ms, worst_ms, 0.0)}


def _tick_ms(sampler: Sampler) -> float:
    began = time.thread_time()
    sampler.tick()
    return (time.thread_time() - began) * 1e3


def _move(sampler: Sampler) -> None:
    """A second passes: some domains got pages, and one in twenty of those on top changed."""
    for row in list(sampler.book.rows.values())[:DOMAINS:20]:
        sampler.book.parsed(row.name, now=time.monotonic(), now_at=time.time())
    sampler.tick()


_LAGS: list[float] = []


async def _lag() -> None:
    """Note the longest time for which the loop's thread worked on one thing: what the machine does else is not counted."""
    _LAGS.clear()
    worst, last = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            worst, last = max(worst, now - last), now
    finally:
        _LAGS.append(worst)
