"""A site and a pool of misbehaving proxies before it, in a process of their own.

``python -m benchmarks.proxy_site [LIMIT]`` says where they are as one line of JSON and serves until its input
ends; then it says what it saw. Each proxy has an address of its own, since some clients tell proxies by
their host alone.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web

from extensions.trial.proxies import Mood, TrialProxy

PROXIES = 20
DEAD, BANNING, PASSING = 3, 2, 5  # never there; banned from the start; gone from 5 s to 12 s
GONE_S, BACK_S = 5.0, 12.0
LATENCY_S = 0.2
FIRST_ADDRESS = 100


class Host:
    """The site: it counts what reaches it."""

    def __init__(self) -> None:
        self.pages: set[str] = set()
        self.answers = self.in_flight = self.max_in_flight = 0
        self.began_s = self.ended_s = 0.0

    async def page(self, request: web.Request) -> web.Response:
        """One page."""
        loop = asyncio.get_running_loop()
        self.began_s = self.began_s or loop.time()
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            await asyncio.sleep(LATENCY_S)
        finally:
            self.in_flight -= 1
        self.ended_s = loop.time()
        self.answers += 1
        self.pages.add(request.path)
        return web.Response(text="<title>a page</title>", content_type="text/html")


async def serve() -> None:
    """Serve until the input ends."""
    host = Host()
    app = web.Application()
    app.router.add_get("/page/{number}", host.page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else None  # over it a proxy answers 502
    pool = [TrialProxy(address=f"127.0.0.{FIRST_ADDRESS + n}", limit=limit) for n in range(PROXIES)]
    for proxy in pool:
        await proxy.open()
    for proxy in pool[:DEAD]:
        await proxy.turn(Mood.REFUSE)
    for proxy in pool[DEAD : DEAD + BANNING]:
        proxy.mood = Mood.BAN
    _say({"port": runner.addresses[0][1], "proxies": [proxy.place for proxy in pool]})
    passing = asyncio.create_task(_pass(host, pool[-PASSING:]))
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()
    passing.cancel()
    _say(
        {
            "pages": len(host.pages),
            "answers": host.answers,
            "seconds": host.ended_s - host.began_s,
            "max_in_flight": host.max_in_flight,
            "bans": sum(proxy.carried.turned_away for proxy in pool[DEAD : DEAD + BANNING]),
            "over": sum(proxy.carried.turned_away for proxy in pool[DEAD + BANNING :]),
            "most_on_one": max(proxy.carried.max_in_flight for proxy in pool),
        }
    )


async def _pass(host: Host, pool: list[TrialProxy]) -> None:
    """Some proxies go, and come back, counted from the first request."""
    while not host.began_s:
        await asyncio.sleep(0.05)
    await asyncio.sleep(GONE_S)
    for proxy in pool:
        await proxy.turn(Mood.REFUSE)
    await asyncio.sleep(BACK_S - GONE_S)
    for proxy in pool:
        await proxy.turn(Mood.GOOD)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
