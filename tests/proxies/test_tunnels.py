"""https pages through CONNECT, with Scrapy's own download handler and with the fast one."""

from __future__ import annotations

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
