"""https pages through CONNECT, with Scrapy's own download handler and with the fast one."""

from __future__ import annotations

import asyncio

import pytest
import pytest_twisted

from extensions.trial.proxies import Mood
from tests.cases.tools import ListSpider, letters
from tests.proxies.tls import tls_site
from tests.proxies.tools import later, listed, trial


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("mood", [Mood.AUTH, Mood.BAD_GATEWAY, Mood.REFUSE, Mood.RESET])
@pytest_twisted.ensureDeferred
async def test_a_tunnel_that_fails_costs_the_request_nothing(crawl, tmp_path, fast, mood):
    async with tls_site(tmp_path) as (base, seen), trial(3, user="u") as pool:
        await later(pool[0].turn(mood))
        result = await crawl(
            type("S", (ListSpider,), {"urls": tuple(f"{base}/page/{n}" for n in range(40))}),
            {
                "SLUICE_PROXIES": [line.replace("//", "//u:@") for line in listed(pool)],
                "SLUICE_FAST_HANDLER": fast,
                "RETRY_TIMES": 0,
                # Scrapy's own handler does not notice when a proxy hangs up instead of opening a tunnel.
                "DOWNLOAD_TIMEOUT": 3,
            },
        )
        assert pool[1].carried.tunnels
        assert pool[2].carried.tunnels
    assert len(result.items) == 40
    assert letters() == []
    assert result.stats["sluice/proxies/failures"] >= 1
    assert len(seen) == 41  # with robots.txt, each once
    assert all("Proxy-Authorization" not in headers for headers in seen)


@pytest.mark.parametrize("fast", [False, True])
@pytest_twisted.ensureDeferred
async def test_a_host_that_speaks_no_tls_is_no_fault_of_the_proxies(crawl, fast):
    async def plain(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await later(asyncio.start_server(plain, "127.0.0.1", 0))
    port = server.sockets[0].getsockname()[1]
    async with trial(2) as pool:
        result = await crawl(
            type(
                "S",
                (ListSpider,),
                {"urls": tuple(f"https://127.0.0.1:{port}/{n}" for n in range(4))},
            ),
            {
                "SLUICE_PROXIES": listed(pool),
                "SLUICE_FAST_HANDLER": fast,
                "RETRY_TIMES": 0,
                "ROBOTSTXT_OBEY": False,
                "DOWNLOAD_TIMEOUT": 5,
            },
            timeout_s=40,
        )
    server.close()
    assert len(letters()) == 4
    assert result.stats.get("sluice/proxies/failures", 0) == 0
