"""What is compared. Each scenario takes the number of rounds and gives a table."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.sites import Answer, Bucket, Host, Route, Site

from .clients import Client, Run, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BOTH = {"CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32}
FAST_HANDLER = {"SLUICE_FAST_HANDLER": True}


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and the rows."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def alternated(
    clients: Iterable[Client], rounds: int, once: Callable[[Client], Run]
) -> list[tuple[Client, list[Run]]]:
    """Every client once, then every client again: what the machine does else meets all alike."""
    runs: dict[str, list[Run]] = {}
    chosen = list(clients)
    for _ in range(rounds):
        for client in chosen:
            runs.setdefault(client.name, []).append(once(client))
    return [(client, runs[client.name]) for client in chosen]


def median(runs: list[Run], figure: str) -> float:
    """Median of one figure."""
    return statistics.median(getattr(run, figure) for run in runs)


def throughput(rounds: int) -> Table:
    """5,000 pages of 1 kB from a fast site, 32 at once."""
    clients = [
        Client("stock Scrapy", sluice=False, settings=BOTH),
        Client("Sluice", sluice=True, settings=BOTH),
        Client("Sluice, fast handler", sluice=True, settings={**BOTH, **FAST_HANDLER}),
        Client("stock Scrapy, JOBDIR", sluice=False, settings=BOTH, jobdir=True),
        Client("Sluice, JOBDIR", sluice=True, settings=BOTH, jobdir=True),
        Client(
            "Sluice, fast handler, JOBDIR",
            sluice=True,
            settings={**BOTH, **FAST_HANDLER},
            jobdir=True,
        ),
    ]
    rows = []
    with Site() as site:
        seeds = site.urls(5000)
        results = alternated(clients, rounds, lambda client: measure(client, site, seeds=seeds))
    base: dict[bool, tuple[float, float]] = {}
    for client, runs in results:
        speed = statistics.median(run.pages / run.seconds for run in runs)
        crawling = statistics.median(run.pages / run.crawl_s for run in runs)
        cpu_us = statistics.median(run.cpu_s * 1e6 / max(1, run.pages) for run in runs)
        if not client.sluice:
            base[client.jobdir] = (speed, crawling)
        rows.append(
            (
                client.name,
                f"{median(runs, 'pages'):.0f}",
                f"{speed:.0f}",
                f"{speed / base[client.jobdir][0]:.2f}",
                f"{crawling:.0f}",
                f"{crawling / base[client.jobdir][1]:.2f}",
                f"{cpu_us:.0f}",
            )
        )
    columns = (
        "client",
        "pages",
        "pages/s, whole process",
        "x stock",
        "from first to last",
        "x stock",
        "CPU us/page",
    )
    return Table("Speed: 5,000 pages of 1 kB, 32 concurrent", columns, rows)


def memory(rounds: int) -> Table:
    """Peak memory with few and with many seeds and links; the crawl is cut after 3,000 pages."""
    cut = {**BOTH, "CLOSESPIDER_PAGECOUNT": 3000}
    rows = []
    with Site() as site:
        for title, few, many in (
            ("seeds", {"seeds": site.urls(2000)}, {"seeds": site.urls(200_000)}),
            ("links", {"url": site.url("/links/2000")}, {"url": site.url("/links/200000")}),
        ):
            for sluice in (False, True):
                client = Client("Sluice" if sluice else "stock Scrapy", sluice, cut)
                small = [measure(client, site, **few) for _ in range(rounds)]
                large = [measure(client, site, **many) for _ in range(rounds)]
                few_mb, many_mb = median(small, "peak_mb"), median(large, "peak_mb")
                rows.append(
                    (
                        f"{client.name}, {title}",
                        f"{few_mb:.0f}",
                        f"{many_mb:.0f}",
                        f"{many_mb - few_mb:+.0f}",
                        f"{median(small, 'first_page_s'):.2f}",
                        f"{median(large, 'first_page_s'):.2f}",
                    )
                )
    columns = ("client", "2,000: MB", "200,000: MB", "more", "first page, s", "first page, s")
    return Table("Peak memory, and process start to first page", columns, rows)


def limited(rounds: int) -> Table:
    """1,500 pages from a host that takes 50 a second and says so by 429 only."""
    clients = [
        Client("stock Scrapy", sluice=False),
        Client("stock Scrapy, AutoThrottle 8", sluice=False, settings=autothrottle(8)),
        Client("Sluice", sluice=True),
    ]
    host = Host(latency_s=0.05, limit=Bucket(rate=50, burst=10))
    with Site(host) as site:

        def once(client: Client) -> Run:
            site.change()
            return measure(client, site, seeds=site.urls(1500))

        results = alternated(clients, rounds, once)
    ideal_s = (1500 - 10) / 50
    rows = []
    for client, runs in results:
        seconds = median(runs, "crawl_s")
        share = median(runs, "refused") / median(runs, "answers")
        rows.append(
            (
                client.name,
                f"{median(runs, 'pages'):.0f}",
                f"{seconds:.1f}",
                f"{seconds / ideal_s:.2f}",
                f"{median(runs, 'refused'):.0f}",
                f"{share:.1%}",
            )
        )
    columns = ("client", "pages of 1,500", "seconds", "x ideal 29.8", "refused", "of answers")
    return Table("A host that takes 50 a second (bucket of 10, 429, 50 ms)", columns, rows)


def autothrottle(target: int) -> dict[str, object]:
    """Settings of Scrapy's own throttle."""
    return {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_TARGET_CONCURRENCY": target}


def slow_host(rounds: int) -> Table:
    """200 URLs of 2 s each stand before 400 of 50 ms on each of four hosts."""
    clients = [Client("stock Scrapy", sluice=False), Client("Sluice", sluice=True)]
    rows = []
    with Site(Host(latency_s=2.0), *[Host(latency_s=0.05)] * 4) as site:
        slow = site.urls(200)
        groups = [site.urls(400, host) for host in range(1, 5)]
        fast = [url for group in zip(*groups, strict=True) for url in group]

        def fast_done(_: float) -> bool:
            return sum(stats.received for stats in site.all_stats()[1:]) >= 1600

        def fast_s(client: Client, seeds: list[str]) -> float:
            measure(client, site, seeds=seeds, during=fast_done)
            times = [entry.at for host in range(1, 5) for entry in site.log(host)]
            begun = [entry.at for host in range(5) for entry in site.log(host)]
            return max(times) - min(begun)

        for client in clients:
            alone, among = [], []
            for _ in range(rounds):
                alone.append(fast_s(client, fast))
                among.append(fast_s(client, slow + fast))
            without, with_slow = statistics.median(alone), statistics.median(among)
            ratio = with_slow / without
            rows.append((client.name, f"{without:.1f}", f"{with_slow:.1f}", f"{ratio:.2f}"))
    columns = ("client", "fast hosts alone, s", "with the slow host, s", "ratio")
    return Table("A slow host among fast ones: when the fast ones are done", columns, rows)


def lost(rounds: int) -> Table:
    """300 pages from three hosts that all are away for 20 s, a tenth of the pages flaky."""
    flaky = Route("/flaky/*", (Answer(status=503), Answer(fault="reset"), Answer()))
    clients = [Client("stock Scrapy", sluice=False), Client("Sluice", sluice=True)]
    with Site(*[Host(latency_s=0.1, routes=(flaky,))] * 3) as site:
        seeds = []
        for number in range(100):
            path = "/flaky/{}" if number % 10 == 0 else "/page/{}"
            seeds += [site.url(path.format(number), host) for host in range(3)]

        def once(client: Client) -> Run:
            for host in range(3):
                site.change(host)
            state = {"begun_s": 0.0, "step": 0.0}

            def network(passed_s: float) -> bool:
                if not state["begun_s"]:
                    if site.stats().received:
                        state["begun_s"] = passed_s
                    return False
                since_s = passed_s - state["begun_s"]
                if state["step"] == 0 and since_s > 1.0:
                    site.close()
                    state["step"] = 1
                elif state["step"] == 1 and since_s > 21.0:
                    site.listen()
                    state["step"] = 2
                return False

            try:
                return measure(client, site, seeds=seeds, during=network)
            finally:
                site.listen()

        results = alternated(clients, rounds, once)
    rows = [
        (
            client.name,
            f"{median(runs, 'pages'):.0f}",
            f"{300 - median(runs, 'pages'):.0f}",
            f"{median(runs, 'seconds'):.1f}",
        )
        for client, runs in results
    ]
    columns = ("client", "pages of 300", "lost", "seconds")
    return Table("The network is away for 20 s, a tenth of the pages are flaky", columns, rows)


SCENARIOS = {
    "throughput": throughput,
    "memory": memory,
    "limited": limited,
    "slow_host": slow_host,
    "lost": lost,
}
