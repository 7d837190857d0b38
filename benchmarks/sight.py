"""What it costs to be seen: a crawl with everything on beside one with everything off; polls of a large crawl.

On means: the live display on a terminal, the status page polled each second as its page does, metrics scraped each 5 s.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import statistics
import subprocess
import tempfile
import threading
import time
import tty
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from extensions.book import Book
from extensions.metrics import CrawlMetrics
from extensions.policy.bottleneck import Cause
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from extensions.statuspage import StatusPage
from tests.sites import Site
from tests.test_sampler import PlainView

from .clients import ENDED, Client
from .scenarios import BOTH, Table

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES = 6000
DOMAINS = 20_000
OFF = Client("off", sluice=True, settings={**BOTH, "SLUICE_PROGRESS": False})
ON = Client("on", sluice=True, settings={**BOTH, "SLUICE_STATUS_PORT": 0})


class Cost(NamedTuple):
    """One run.

    Attributes:
        per_s: Pages a second, from the first to the last.
        cpu_us: Processor time of the crawl's process a page, from the first page to its end: start-up is left out.
        polls: Answers that the page's poller got.
    """

    per_s: float
    cpu_us: float
    polls: int


def sight(rounds: int) -> Table:
    """Everything on against everything off, in turns; the order changes with each round."""
    runs: dict[str, list[Cost]] = {"off": [], "on": []}
    with Site() as site:
        seeds = site.urls(PAGES)
        for number in range(rounds):
            for client in (OFF, ON) if number % 2 == 0 else (ON, OFF):
                runs[client.name].append(_crawl(client, site, seeds))
    speed = [on.per_s / off.per_s for on, off in zip(runs["on"], runs["off"], strict=True)]
    cpu = [on.cpu_us / off.cpu_us for on, off in zip(runs["on"], runs["off"], strict=True)]
    ratios = {"off": ("1", "1"), "on": (_ratio(speed), _ratio(cpu))}
    rows = [
        (
            name,
            f"{statistics.median(run.per_s for run in costs):.0f}",
            ratios[name][0],
            f"{statistics.median(run.cpu_us for run in costs):.0f}",
            ratios[name][1],
            f"{statistics.median(run.polls for run in costs):.0f}",
        )
        for name, costs in runs.items()
    ]
    columns = ("all that shows", "pages/s", "x off", "CPU us/page", "x off", "polls")
    return Table(f"Seeing a crawl: {PAGES:,} pages of 1 kB, 32 concurrent", columns, rows)


def _ratio(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


class Terminal(threading.Thread):
    """Reads what a program writes on a terminal, and finds the address of its status page."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.url: str | None = None

    def run(self) -> None:
        seen = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(self._master, 65536):
                if self.url is None:
                    seen = (seen + part)[-100_000:]
                    found = re.search(rb"Status page: (http://\S+)", seen)
                    self.url = found[1].decode() if found else None

    def close(self) -> None:
        os.close(self.slave)
        self.join(10)
        os.close(self._master)


class Viewer(threading.Thread):
    """A page that polls each second, and a Prometheus that scrapes each 5 s."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(daemon=True)
        self._terminal = terminal
        self._ended = threading.Event()
        self.polls = 0

    def run(self) -> None:
        first = rows = -1
        while not self._ended.wait(1.0):
            if (url := self._terminal.url) is None:
                continue
            with suppress(OSError, ValueError):
                _get(url + "status.json?span=3600")
                since = f"&since={rows}" if rows >= 0 else ""
                body, _ = _get(url + "domains.json?sort=left_s&dir=desc&limit=15" + since)
                found = re.search(rb'"seq":(\d+)', body)
                rows = int(found[1]) if found else -1
                body, headers = _get(url + f"history.f32?since={max(first, 0)}")
                width = len(str(headers["X-Series"]).split(","))
                first = int(str(headers["X-First"])) + len(body) // 4 // width
                if self.polls % 5 == 0:
                    _get(url + "metrics")
                self.polls += 1

    def stop(self) -> None:
        self._ended.set()
        self.join(10)


def _get(url: str) -> tuple[bytes, dict[str, str]]:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own, on loopback
        return answer.read(), dict(answer.headers)


def _crawl(client: Client, site: Site, seeds: list[str]) -> Cost:
    site.forget()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = Path(name)
        (folder / "seeds.txt").write_text("\n".join(seeds), encoding="utf-8")
        terminal = Terminal()
        viewer = Viewer(terminal)
        environment = {**client.environment(), "TERM": "xterm-256color"}
        environment.pop("CI", None)
        process = subprocess.Popen(
            client.command(folder, seeds=folder / "seeds.txt", url=None),
            cwd=folder,
            env=environment,
            stdout=terminal.slave,
            stderr=terminal.slave,
        )
        terminal.start()
        if client is ON:
            viewer.start()
        before_s = _spent_until_first_page(process.pid, site)
        _, status, usage = os.wait4(process.pid, 0)
        if client is ON:
            viewer.stop()
        terminal.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 0 and process.returncode not in ENDED:
        raise RuntimeError(f"the crawl with all {client.name} ended with {process.returncode}")
    times = [received.at for received in site.log(0) if received.target != "/robots.txt"]
    per_s = (len(times) - 1) / (max(times) - min(times))
    cpu_s = usage.ru_utime + usage.ru_stime - before_s
    return Cost(per_s, cpu_s * 1e6 / len(times), viewer.polls)


def _spent_until_first_page(pid: int, site: Site) -> float:
    """Wait for the first page; the processor time that a process had used until then."""
    spent_s, stat = 0.0, Path(f"/proc/{pid}/stat")
    ticks_s = os.sysconf("SC_CLK_TCK")
    while not any(received.target != "/robots.txt" for received in site.log(0)):
        fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        if fields[0] == "Z":
            break
        spent_s = (int(fields[11]) + int(fields[12])) / ticks_s
        time.sleep(0.02)
    return spent_s


def polls(rounds: int) -> Table:
    """How long answers take, and hold the event loop, with 20,000 domains and a million pending."""
    sampler = _large()
    took = asyncio.run(_ask(sampler, max(20, rounds * 10)))
    rows = [(name, *(f"{value:.1f}" for value in values)) for name, values in took.items()]
    columns = ("answer", "median ms", "slowest ms", "loop held, slowest ms", "kB")
    return Table(f"Answers at {DOMAINS:,} domains and a million pending", columns, rows)


def _large() -> Sampler:
    book = Book()
    working = {}
    for number in range(DOMAINS):
        name = f"host-{number}.example"
        cause = Cause.HOLD if number % 9 == 0 else Cause.PACE
        working[name] = DomainNow(cause=cause, pending=50, pace=1.0, wait_s=number % 40)
        book.taken(name, 60)
        for page in range(3):
            book.parsed(name, now=float(page), now_at=time.time())
    view = PlainView(working, pending_in_memory=4000, pending_on_disk=996_000, max_in_flight=64)
    sampler = Sampler(view=view, book=book, spider="site", job="large")
    for _ in range(2 * DOMAINS // 250 + 2):
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
            body, _headers = await loop.run_in_executor(None, _get, url + path())
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
