"""What choosing a proxy costs, and the same pool through scrapy-rotating-proxies.

``python -m benchmarks choosing``: no crawl runs and no time passes; a pool is asked and told as the
scheduler does it. ``python -m benchmarks rotating``: installs the peer from PyPI, beside the
environment, and crawls twenty proxies of which some are dead, some banned, and some go and come back.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from extensions.policy.governor import DomainGovernor
from extensions.policy.outcome import Outcome
from extensions.policy.proxies import LimitBy, News, ProxyPool, Ride, Wait, read_proxies

from .scenarios import Table

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ("scrapy-rotating-proxies==0.6.2", "six")
POOLS = ((20, 1_000), (200, 1_000), (2_000, 1_000))
REQUESTS = 100_000
BAR_US = 50
PAGES = 2_000
NEWS = (
    (News.ANSWERED, 0.90), (News.BANNED, 0.04), (News.REFUSED, 0.02), (News.SILENCE, 0.03), (News.PROXY, 0.01)
)  # fmt: skip


def choosing(rounds: int) -> Table:
    """Microseconds of processor time for a choice: mean, and the slowest of a thousand; the least of the rounds."""
    rows = []
    for by in LimitBy:
        for proxies, domains in POOLS:
            runs = [_choose(by, proxies, domains, seed=seed) for seed in range(rounds)]
            mean, p999, told = (min(run[place] for run in runs) for place in range(3))
            size = f"{runs[-1][3]:,}"
            rows.append(
                (
                    by.value,
                    f"{proxies:,}",
                    f"{domains:,}",
                    f"{mean:.1f}",
                    f"{p999:.1f}",
                    f"{told:.1f}",
                    size,
                )
            )
    return Table(
        f"Choosing a proxy: microseconds ({BAR_US} allowed), {REQUESTS:,} requests, a tenth of them in trouble",
        (
            "limit by",
            "proxies",
            "domains",
            "choice",
            "99.9% under",
            "choice and news",
            "pairs remembered",
        ),
        rows,
    )


def _choose(
    by: LimitBy, proxies: int, domains: int, *, seed: int
) -> tuple[float, float, float, int]:
    draw = random.Random(seed)  # noqa: S311 - a measurement, not a secret
    pool = ProxyPool(
        limit_by=by,
        u=draw.random,
        pair_governor=lambda _: DomainGovernor(max_concurrency=8, u=draw.random),
    )
    pool.replace(read_proxies(f"10.0.{n // 250}.{n % 250 + 1}:3128" for n in range(proxies))[0])
    names = [f"site-{n}.example" for n in range(domains)]
    kinds, weights = zip(*NEWS, strict=True)
    spent: list[float] = []
    out: list[Ride] = []
    now, told_s, clock = 0.0, 0.0, time.thread_time
    for _ in range(REQUESTS):
        now += 0.001
        name = draw.choice(names)
        began_s = clock()
        found = pool.choose(name, now)
        spent.append(clock() - began_s)
        if not isinstance(found, Wait):
            out.append(pool.sent(found, name, now))
        if out and (isinstance(found, Wait) or len(out) > 4 * proxies):
            place = draw.randrange(len(out))
            out[place], out[-1] = out[-1], out[place]
            news = draw.choices(kinds, weights)[0]
            began_s = clock()
            pool.finished(out.pop(), news, now, outcome=Outcome.SUCCESS, latency_s=0.5)
            told_s += clock() - began_s
    spent.sort()
    mean_us = sum(spent) / len(spent) * 1e6
    return (
        mean_us,
        spent[int(0.999 * len(spent))] * 1e6,
        mean_us + told_s / REQUESTS * 1e6,
        pool.state_size,
    )


def rotating(rounds: int) -> Table:
    """Sluice and scrapy-rotating-proxies on the same pools: pages got, time, bans a page."""
    peer = _installed()
    rows: list[tuple[str, ...]] = []
    for limit in (None, 2):
        clients = [("Sluice", _sluice(limit))]
        if isinstance(peer, Path):
            clients.append(("scrapy-rotating-proxies", _peer(peer, limit, {})))
            quick = {"ROTATING_PROXY_BACKOFF_BASE": 2, "ROTATING_PROXY_PAGE_RETRY_TIMES": 20}
            clients.append(("the same, backoff 2 s, 20 tries a page", _peer(peer, limit, quick)))
        runs: dict[str, list[dict[str, Any]]] = {}
        for _ in range(rounds):
            for name, start in clients:
                runs.setdefault(name, []).append(_run(start, limit))
        rows += [_row(limit, name, found) for name, found in runs.items()]
    if not isinstance(peer, Path):
        rows.append(("", "scrapy-rotating-proxies", peer, "", "", "", ""))
    columns = (
        "a proxy takes", "client", f"pages of {PAGES:,}", "seconds", "ban pages a page", "over a proxy's limit",
        "most at the host",
    )  # fmt: skip
    return Table(
        "Twenty proxies: 3 dead, 2 banned, 5 gone from the 5th to the 12th second", columns, rows
    )


def _row(limit: int | None, name: str, found: list[dict[str, Any]]) -> tuple[str, ...]:
    return (
        "any number" if limit is None else f"{limit} at once",
        name,
        f"{_middle(found, 'got'):,.0f}",
        f"{_middle(found, 'seconds'):.1f}",
        f"{_middle(found, 'bans') / max(1, _middle(found, 'got')):.4f}",
        f"{_middle(found, 'over'):,.0f}",
        f"{_middle(found, 'max_in_flight'):.0f}",
    )


def _middle(runs: list[dict[str, Any]], figure: str) -> float:
    return statistics.median(run[figure] for run in runs)


def _installed() -> Path | str:
    """The folder that the peer is installed in, or why it is not."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "sluice-benchmarks" / "rotating"
    if not (folder / "rotating_proxies").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        done = subprocess.run(
            [*command, folder, *REQUIREMENTS], check=False, capture_output=True, text=True
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return folder


COMMON = {
    "CONCURRENT_REQUESTS": 64, "ROBOTSTXT_OBEY": False, "DOWNLOAD_TIMEOUT": 5, "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": False,
}  # fmt: skip


def _sluice(limit: int | None) -> Any:
    def start(seeds: Path, proxies: list[str]) -> tuple[list[str], dict[str, str]]:
        settings = {
            **COMMON,
            "SLUICE_PROXIES": ",".join(proxies),
            **({} if limit is None else {"SLUICE_PROXY_CONCURRENCY": limit}),
            "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
            "SLUICE_PROGRESS": False,
        }
        command = [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", f"seeds={seeds}"]
        return [*command, *_words(settings)], {
            "PYTHONPATH": str(ROOT),
            "SCRAPY_SETTINGS_MODULE": "project.settings",
        }

    return start


def _peer(folder: Path, limit: int | None, own: dict[str, Any]) -> Any:
    def start(seeds: Path, proxies: list[str]) -> tuple[list[str], dict[str, str]]:
        middlewares = {
            "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
            "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
        }
        settings = {
            **COMMON,
            **own,
            "ROTATING_PROXY_LIST": ",".join(proxies),
            "CONCURRENT_REQUESTS_PER_DOMAIN": limit or 8,
            "DOWNLOADER_MIDDLEWARES": json.dumps(middlewares),
        }
        spider = str(Path(__file__).with_name("rotating_spider.py"))
        command = [sys.executable, "-W", "ignore", "-m", "scrapy", "runspider", spider]
        return [*command, "-a", f"seeds={seeds}", *_words(settings)], {
            "PYTHONPATH": f"{folder}:{ROOT}"
        }

    return start


def _words(settings: dict[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]


def _run(start: Any, limit: int | None) -> dict[str, Any]:
    site = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.proxy_site", *([] if limit is None else [str(limit)])],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert site.stdin is not None
    assert site.stdout is not None
    place = json.loads(site.stdout.readline())
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        seeds = Path(name) / "seeds.txt"
        urls = (f"http://127.0.0.1:{place['port']}/page/{n}\n" for n in range(PAGES))
        seeds.write_text("".join(urls), encoding="utf-8")
        command, environment = start(seeds, place["proxies"])
        inherited = {
            k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "SCRAPY_SETTINGS_MODULE"}
        }
        done = subprocess.run(
            command,
            cwd=name,
            env=inherited | environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
    site.stdin.close()
    seen: dict[str, Any] = json.loads(site.stdout.readline())
    site.wait()
    items = re.search(r"'item_scraped_count': (\d+)", done.stderr)
    parsed = re.search(r"'bans_parsed': (\d+)", done.stderr)
    if items is None:
        raise RuntimeError(done.stderr[-3000:])
    return seen | {"got": int(items[1]) - (int(parsed[1]) if parsed else 0)}
