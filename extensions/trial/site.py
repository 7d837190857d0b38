"""The servers of the trial: one listening address a host, on loopback, in the crawl's own loop.

Each counts what it really received, so that the closing table does not have to take the crawler's
word for it.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hosts import TrialHost

FIRST_ADDRESS = 11  # 127.0.0.11 and on, one for each host
_PAGE = (
    "<!doctype html><html><head><title>{name} {number}</title></head>"
    "<body><h1>{name}</h1><p>Page {number} of {pages}.</p></body></html>"
)


@dataclass(slots=True)
class Seen:
    """What one host counted. Robots.txt is not in it."""

    hits: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    good: int = 0

    @property
    def repeated(self) -> int:
        """Requests for pages that had been asked for before."""
        return self.hits.total() - len(self.hits)


class _Bucket:
    """The limiter: *rate* tokens a second, *burst* at most; it starts full."""

    def __init__(self, *, rate: float, burst: int, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), now

    def take(self, now: float) -> float:
        """0 if the request is accepted, else the seconds until the next one would be."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


class _Server:
    """One host at work."""

    def __init__(self, host: TrialHost) -> None:
        self.host = host
        self.seen = Seen()
        now = asyncio.get_running_loop().time()
        self._bucket = _Bucket(rate=host.rate, burst=host.burst, now=now) if host.rate else None
        self._workers = asyncio.Semaphore(host.workers) if host.workers else None

    async def page(self, request: web.Request) -> web.Response:
        number, host, seen = int(request.match_info["number"]), self.host, self.seen
        seen.hits[number] += 1
        is_first = seen.hits[number] == 1
        if self._bucket:
            wait_s = self._bucket.take(asyncio.get_running_loop().time())
            if wait_s:
                seen.refused += 1
                told = {"Retry-After": str(math.ceil(wait_s))} if host.retry_after else {}
                return web.Response(status=429, text="too fast", headers=told)
        await self._work()
        if status := host.always.get(number):
            return web.Response(status=status, text="this page always fails")
        if host.fails_first and number % host.fails_first == 0 and is_first:
            return web.Response(status=503, text="try again")
        seen.good += 1
        text = _PAGE.format(name=host.name, number=number, pages=host.pages)
        return web.Response(text=text, content_type="text/html")

    async def _work(self) -> None:
        if self._workers is None:
            await asyncio.sleep(self.host.latency_s)
            return
        async with self._workers:  # also for a client that has gone: the work was ordered
            await asyncio.sleep(self.host.latency_s)


class TrialSite:
    """All hosts of the trial. `open` and `close` belong to one running loop."""

    def __init__(self, hosts: Sequence[TrialHost]) -> None:
        self.hosts = hosts
        self._servers: list[_Server] = []
        self._runners: list[web.AppRunner] = []
        self._domains: list[str] = []

    async def open(self) -> None:
        """Listen; each host has an address of its own where the system allows it, else a port."""
        for place, host in enumerate(self.hosts):
            server = _Server(host)
            app = web.Application()
            app.router.add_get("/page/{number:[0-9]+}", server.page)
            app.router.add_get("/robots.txt", _robots)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            self._runners.append(runner)
            self._servers.append(server)
            self._domains.append(await _listen(runner, f"127.0.0.{FIRST_ADDRESS + place}"))

    async def close(self) -> None:
        """Stop listening; what was counted stays."""
        runners, self._runners = self._runners, []
        for runner in runners:
            await runner.cleanup()

    def domain(self, place: int) -> str:
        """``address:port`` of the host at *place*."""
        return self._domains[place]

    def url(self, place: int, number: int) -> str:
        """URL of a page of the host at *place*."""
        return f"http://{self._domains[place]}/page/{number}"

    def seen(self, place: int) -> Seen:
        """What the host at *place* counted."""
        return self._servers[place].seen


async def _robots(_: web.Request) -> web.Response:
    return web.Response(text="User-agent: *\nDisallow:\n")


async def _listen(runner: web.AppRunner, address: str) -> str:
    for candidate in (address, "127.0.0.1"):
        try:
            await web.TCPSite(runner, candidate, 0).start()
        except OSError:  # not every system has the whole of 127.0.0.0/8
            continue
        host, port = runner.addresses[0][:2]
        return f"{host}:{port}"
    raise OSError("no loopback address to listen on")
