"""The lab's scenarios: which server, for how long, and what the law must reach on it.

Every scenario takes a *scale* on its main parameter, so that the law can be judged on values that
it was not tuned on. Bars are shares of 1: of the capacity for goodput, of the answers for losses.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from ..outcome import Outcome
from .scopes import Hosts, Paths
from .servers import (
    Down,
    FixedWindow,
    Free,
    Server,
    SlidingWindow,
    TokenBucket,
    Workers,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One line of the table."""

    name: str
    server: Callable[[float], Server]
    until_s: float = 300.0
    settled_s: float = 30.0
    latency_s: float = 0.05
    spread: float = 0.05
    timeout_s: float = 30.0
    max_concurrency: int = 16
    crawlers: int = 1  # on one server, ...
    domains: int = 0  # ... or so many hosts of one crawler, limits from a fifth to five times
    max_in_flight: float = math.inf  # CONCURRENT_REQUESTS
    goodput: float = 0.95
    refused: float = 0.01
    failed: float = 0.02
    whole_goodput: float = 0.9
    whole_refused: float = 0.03
    steps: tuple[tuple[float, float, float], ...] = ()  # (at, until, seconds allowed)
    found_s: float = math.inf
    fair: float = 0.0


def _buckets() -> list[Scenario]:
    made = []
    for rate, burst, until_s in (
        (50.0, 10.0, 300.0),
        (5.0, 5.0, 600.0),
        (1.0, 1.0, 1800.0),
        (200.0, 100.0, 120.0),
        (0.2, 1.0, 7200.0),
    ):
        for wait in ("", "seconds", "date"):
            slow = rate < 2.0
            goodput = 0.95 if slow or wait else 0.97
            name = f"bucket {rate:g}/s burst {burst:g}" + (f", waits in {wait}" if wait else "")

            def server(k: float, r: float = rate, b: float = burst, w: str = wait) -> Server:
                return TokenBucket(k * r, max(1.0, b), wait=w)

            made.append(
                Scenario(
                    name=name,
                    server=server,
                    until_s=until_s,
                    goodput=goodput,
                    refused=0.02 if slow else 0.01,
                )
            )
    return made


def _windows() -> list[Scenario]:
    made = [
        Scenario(
            name="5 in any second",
            server=lambda k: SlidingWindow(max(2, round(5 * k)), 1.0),
            refused=0.02,
        ),
        Scenario(
            name="5 in any second, waits in seconds",
            server=lambda k: SlidingWindow(max(2, round(5 * k)), 1.0, wait="seconds"),
            refused=0.02,
        ),
    ]
    for count, window_s, until_s in (
        (100, 10.0, 600.0),
        (100, 60.0, 1800.0),
        (1000, 3600.0, 14400.0),
    ):
        for wait in ("", "seconds"):
            name = f"{count} in {window_s:g} s" + (f", waits in {wait}" if wait else "")
            lost = 0.02 if wait or window_s < 60.0 else 0.03

            def server(k: float, n: int = count, s: float = window_s, w: str = wait) -> Server:
                return FixedWindow(round(n * k), s, wait=w)

            made.append(
                Scenario(
                    name=name,
                    server=server,
                    until_s=until_s,
                    settled_s=max(30.0, window_s),
                    refused=lost,
                )
            )
    return made


def _changing() -> list[Scenario]:
    def step(k: float) -> Callable[[float], float]:
        return lambda t: 10.0 * k if 100.0 <= t < 200.0 else 50.0 * k

    def drift(k: float) -> Callable[[float], float]:
        return lambda t: k * (30.0 + 15.0 * math.sin(2.0 * math.pi * t / 300.0))

    steps = ((100.0, 200.0, 5.0), (200.0, 300.0, 30.0))
    return [
        Scenario(
            name="step 50 > 10 > 50/s",
            server=lambda k: TokenBucket(step(k), 10.0),
            steps=steps,
            goodput=0.9,
        ),
        Scenario(
            name="step 50 > 10 > 50/s, waits in seconds",
            server=lambda k: TokenBucket(step(k), 10.0, wait="seconds"),
            steps=steps,
            goodput=0.8,
            whole_goodput=0.8,
            refused=0.03,
        ),
        Scenario(
            name="drift 30 +- 15/s in 300 s",
            server=lambda k: TokenBucket(drift(k), 10.0),
            until_s=600.0,
        ),
    ]


def _noisy() -> list[Scenario]:
    return [
        Scenario(
            name="50/s and 2% refused at random",
            server=lambda k: TokenBucket(50.0 * k, 10.0, noise=0.02),
            goodput=0.9,
            refused=0.03,
            until_s=600.0,
        ),
        Scenario(
            name="50/s and 5% refused at random",
            server=lambda k: TokenBucket(50.0 * k, 10.0, noise=0.05),
            goodput=0.9,
            refused=0.06,
            whole_refused=0.065,
            until_s=600.0,
            whole_goodput=0.85,
        ),
        Scenario(
            name="50/s, refusals cost too",
            server=lambda k: TokenBucket(50.0 * k, 10.0, refusals_cost=True),
        ),
        Scenario(
            name="no limit, 2% 503 at random",
            server=lambda k: Free(noise=0.02 * k),
            until_s=120.0,
            goodput=0.9,
            failed=0.03,
        ),
        Scenario(
            name="no limit, 2% refused at random",
            server=lambda k: Free(noise=0.02 * k, outcome=Outcome.REFUSED),
            until_s=120.0,
            goodput=0.9,
            refused=0.035,
            whole_goodput=0.8,
            whole_refused=0.035,
        ),
        Scenario(
            name="no limit, 404 only",
            server=lambda _k: Free(noise=1.0, outcome=Outcome.IGNORED),
            until_s=60.0,
            found_s=2.0,
        ),
        Scenario(name="no limit", server=lambda _k: Free(), until_s=60.0, found_s=2.0),
    ]


def _capacities() -> list[Scenario]:
    def steps(k: float) -> Callable[[float], int]:
        return lambda t: round(2 * k) if 100.0 <= t < 200.0 else round(8 * k)

    return [
        Scenario(
            name="4 at once, else 503",
            server=lambda k: Workers(round(4 * k), 0.3, over="503", way_s=0.05),
        ),
        Scenario(
            name="4 at once, else hangs",
            server=lambda k: Workers(round(4 * k), 0.3, over="hang", way_s=0.05),
            failed=0.03,
        ),
        Scenario(name="4 workers, slows down", server=lambda k: Workers(round(4 * k), 0.3)),
        Scenario(
            name="2 workers of 0.3 s, timeout 1 s",
            server=lambda k: Workers(2, 0.3 * k),
            timeout_s=1.0,
            refused=0.02,
        ),
        Scenario(
            name="8 > 2 > 8 workers, timeout 5 s",
            server=lambda k: Workers(steps(k), 0.3),
            timeout_s=5.0,
        ),
        Scenario(
            name="4 workers, heavy tail, timeout 5 s",
            server=lambda k: Workers(4, 0.3 * k, spread=1.0),
            timeout_s=5.0,
            refused=0.02,
        ),
        Scenario(
            name="6/s and 3 workers of 0.4 s",
            server=lambda k: Workers(3, 0.4, inner=TokenBucket(6.0 * k, 6.0)),
            until_s=600.0,
        ),
        Scenario(
            name="down for 30 s",
            server=lambda _k: Down(Free(), since=20.0, until=50.0),
            settled_s=60.0,
            until_s=120.0,
            whole_goodput=0.65,
            steps=((50.0, 120.0, 30.0),),
        ),
    ]


def _latencies() -> list[Scenario]:
    return [
        Scenario(
            name="20 ms, 50/s burst 10",
            server=lambda k: TokenBucket(50.0 * k, 10.0),
            latency_s=0.02,
        ),
        Scenario(
            name="0.3 s heavy tail, 10/s",
            server=lambda k: TokenBucket(10.0 * k, 10.0),
            latency_s=0.3,
            spread=1.0,
        ),
        Scenario(
            name="3 s heavy tail, 5/s",
            server=lambda k: TokenBucket(5.0 * k, 5.0),
            latency_s=3.0,
            spread=0.5,
            max_concurrency=64,
            until_s=900.0,
            settled_s=60.0,
            goodput=0.9,
            whole_goodput=0.85,
        ),
    ]


def _shared() -> list[Scenario]:
    return [
        Scenario(
            name="two crawlers on 50/s",
            server=lambda k: TokenBucket(50.0 * k, 10.0),
            crawlers=2,
            fair=0.4,
            until_s=600.0,
        ),
        Scenario(
            name="200 domains, 64 requests at once",
            server=lambda k: TokenBucket(k, 5.0),
            domains=200,
            max_in_flight=64.0,
            until_s=400.0,
            settled_s=100.0,
            refused=0.02,
            whole_refused=0.04,
            fair=0.6,
        ),
        Scenario(
            name="half of the paths at 20/s",
            server=lambda k: Paths((0.5, TokenBucket(20.0 * k, 10.0)), (0.5, Free())),
        ),
        Scenario(
            name="paths at 20/s and 5/s, one slot",
            server=lambda k: Paths(
                (0.5, TokenBucket(20.0 * k, 10.0)), (0.5, TokenBucket(5.0 * k, 5.0))
            ),
        ),
        Scenario(
            name="paths at 2/s to 50/s, a slot each",
            server=lambda k: TokenBucket(10.0 * k, 5.0),
            domains=3,
            until_s=600.0,
            goodput=0.97,
            fair=0.9,
        ),
        Scenario(
            name="two hosts on 20/s, one slot",
            server=lambda k: Hosts(TokenBucket(20.0 * k, 10.0), part=0.5, after_s=0.5),
            goodput=0.97,
        ),
        Scenario(
            name="RateLimit fields, 50/s",
            server=lambda k: TokenBucket(50.0 * k, 10.0, headers=True),
        ),
        Scenario(
            name="RateLimit fields, 100 in 60 s",
            server=lambda k: FixedWindow(round(100 * k), 60.0, headers=True),
            until_s=1800.0,
            refused=0.02,
        ),
    ]


SCENARIOS: tuple[Scenario, ...] = (
    *_buckets(), *_windows(), *_changing(), *_noisy(), *_capacities(), *_latencies(), *_shared(),
)  # fmt: skip
