"""The same list of URLs, fetched by Sluice and by its peers, against limiters that are real.

All clients run in turn against the same servers; what they got is counted in the servers' logs, so
that no client has to be believed. Each runs as it comes, but for the settings in its name.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.nginx import Nginx, executable
from tests.sites import Bucket, Host, Site
from tests.sites.site import Received

from .clients import Client, measure
from .crawlee_environment import NotInstalled, python
from .scenarios import Table, autothrottle, median

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .clients import Crawler, Run, Server

COUNT = 600
BOUND_S = 90.0
BY_HAND = 1.05  # a hand that knows the limit still leaves a margin
CRAWLEE = Path(__file__).with_name("crawlee_client.py")
REFUSED = {429, 503}


@dataclass(frozen=True, slots=True)
class Limiter:
    """A limit, where it is enforced, and what a client that knows it would do.

    Attributes:
        name: As the table shows it.
        latency_s: Of the pages behind it.
        rate: Pages a second that it lets through.
        free: Pages that it lets through at once before that.
        bucket: Enforced by the application itself.
        nginx: Or by nginx before it: arguments of `Nginx`.
        connections: As many at once as it lets through, where it limits that.
    """

    name: str
    latency_s: float
    rate: float
    free: int
    bucket: Bucket | None = None
    nginx: dict[str, int] | None = None
    connections: int | None = None

    @property
    def ideal_s(self) -> float:
        """Seconds from the first request to the last of a client that knows the limit."""
        return (COUNT - self.free) / self.rate

    @contextmanager
    def running(self, folder: Path) -> Iterator[tuple[Server, list[str]]]:
        """The server, and the URLs to fetch."""
        with Site(Host(latency_s=self.latency_s, limit=self.bucket)) as site:
            if self.nginx is None:
                yield site, site.urls(COUNT)
                return
            with Nginx(f"http://{site.domain()}", folder=folder, **self.nginx) as nginx:
                yield Front(nginx), [nginx.url(f"page/{index}") for index in range(COUNT)]


LIMITERS = (
    Limiter(
        name="nginx limit_req 40/s, burst 10, 429",
        latency_s=0.05,
        rate=40,
        free=11,
        nginx={"rate": 40, "burst": 10},
    ),
    Limiter(
        name="nginx limit_conn 4, 503, pages of 200 ms",
        latency_s=0.2,
        rate=20,
        free=4,
        nginx={"connections": 4},
        connections=4,
    ),
    Limiter(
        name="application, bucket 50/s of 10, 429",
        latency_s=0.05,
        rate=50,
        free=10,
        bucket=Bucket(rate=50, burst=10),
    ),
)


class Front:
    """nginx, with its log in the form of a scripted site's."""

    hosts = (None,)

    def __init__(self, nginx: Nginx) -> None:
        self._nginx = nginx

    def forget(self) -> None:
        """Begin a new log."""
        self._nginx.forget()

    def log(self, _host: int = 0) -> list[Received]:
        """Every request that nginx answered."""
        return [
            Received(at=entry.at, target=entry.path, status=entry.status, refused=refused)
            for entry in self._nginx.entries()
            for refused in [entry.status in REFUSED]
        ]


@dataclass(frozen=True, slots=True)
class Crawlee:
    """Crawlee for Python with its throttling request manager, in its own environment."""

    python: Path
    at_least: int = 1

    @property
    def name(self) -> str:
        """As the table shows it."""
        more = f", {self.at_least} at once or more" if self.at_least > 1 else ""
        return f"Crawlee for Python, throttling{more}"

    def command(self, folder: Path, *, seeds: Path | None, url: str | None) -> list[str]:
        """The command line; only *seeds* is known."""
        assert seeds is not None, f"cannot follow the links of {url}"
        results = folder / "results.jsonl"
        return [str(self.python), str(CRAWLEE), str(seeds), str(results), str(self.at_least)]

    def environment(self) -> dict[str, str]:
        """Nothing of this project."""
        return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def clients(limiter: Limiter) -> list[Crawler]:
    """Those that can be measured here."""
    delay_s = round(BY_HAND / limiter.rate, 4)
    found: list[Crawler] = [
        Client("Sluice", sluice=True),
        Client("stock Scrapy", sluice=False),
        Client("AutoThrottle, target 1", sluice=False, settings=autothrottle(1)),
        Client("AutoThrottle, target 8", sluice=False, settings=autothrottle(8)),
        Client(
            f"Scrapy, DOWNLOAD_DELAY {delay_s:g} by hand",
            sluice=False,
            settings={"DOWNLOAD_DELAY": delay_s},
        ),
    ]
    if limiter.connections:
        found.append(fixed(limiter.connections))
    try:
        found += [Crawlee(python()), Crawlee(python(), at_least=8)]
    except NotInstalled as error:
        _say(f"Crawlee for Python is skipped: {error}")
    return found


def fixed(connections: int) -> Client:
    """Scrapy with so many connections and no more.

    Its CONCURRENT_REQUESTS_PER_DOMAIN alone does not hold: with asyncio a download is counted only
    when its task runs, after the whole queue was let through. CONCURRENT_REQUESTS holds.
    """
    name = f"Scrapy, {connections} fixed connections"
    bounds = ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
    settings = dict.fromkeys(bounds, connections)
    return Client(name, sluice=False, settings=settings)


def peers(rounds: int) -> Table:
    """Every client against every limiter."""
    rows = []
    for limiter in LIMITERS:
        if limiter.nginx is not None and not executable():
            _say(f"{limiter.name} is skipped: nginx is not installed")
            continue
        with (
            tempfile.TemporaryDirectory(prefix="sluice-nginx-") as folder,
            limiter.running(Path(folder)) as (server, seeds),
        ):
            runs = _runs(limiter, server, seeds, rounds)
        rows += [_row(limiter, name, of_one) for name, of_one in runs.items()]
        if limiter.connections:
            rows.append(_share(runs, fixed(limiter.connections).name))
    columns = ("limiter", "client", f"pages of {COUNT}", "seconds", "ideal", "of ideal", "refused")
    return Table(f"The same {COUNT} URLs, at most {BOUND_S:g} s a client", columns, rows)


def _runs(limiter: Limiter, server: Server, seeds: list[str], rounds: int) -> dict[str, list[Run]]:
    """Every client once, then every client again."""
    runs: dict[str, list[Run]] = {}
    chosen = clients(limiter)
    for _ in range(rounds):
        for client in chosen:
            run = measure(client, server, seeds=seeds, timeout_s=BOUND_S)
            runs.setdefault(client.name, []).append(run)
            load = os.getloadavg()[0]
            _say(
                f"{limiter.name}: {client.name}: {run.pages} pages in {run.crawl_s:.1f} s "
                f"({run.seconds:.1f} s with start and end), "
                f"{run.refused} of {run.answers} refused; load {load:.1f}"
            )
    return runs


def _row(limiter: Limiter, name: str, runs: list[Run]) -> tuple[str, ...]:
    refused, answers = median(runs, "refused"), median(runs, "answers")
    return (
        limiter.name,
        name,
        f"{median(runs, 'pages'):.0f}",
        f"{median(runs, 'crawl_s'):.1f}",
        f"{limiter.ideal_s:.1f}",
        f"{_speed(runs) * limiter.ideal_s / COUNT:.0%}",
        f"{refused:.0f} ({refused / max(1.0, answers):.1%})",
    )


def _share(runs: dict[str, list[Run]], base: str) -> tuple[str, ...]:
    """What Sluice gets of the throughput of the client that was told the number."""
    share = _speed(runs["Sluice"]) / max(1e-9, _speed(runs[base]))
    return ("", f"Sluice, of {base.removeprefix('Scrapy, ')}", "", "", "", f"{share:.1%}", "")


def _speed(runs: list[Run]) -> float:
    """Pages a second."""
    return median(runs, "pages") / max(1e-9, median(runs, "crawl_s"))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
