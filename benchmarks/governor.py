"""What the control law costs the processor for each request, with few and with many known domains.

No crawl runs and no time passes: governors are asked, told and chosen among as the scheduler does
it, in virtual time. Figures are this thread's processor time, with the loop that drives them.
"""

from __future__ import annotations

import heapq
import random
import time
from typing import TYPE_CHECKING

from extensions.policy.governor import DomainGovernor
from extensions.policy.outcome import Outcome
from extensions.policy.turns import Turns

from .scenarios import Table

if TYPE_CHECKING:
    from extensions.policy.ticket import Ticket

KNOWN = (10, 1_000, 10_000)
WARM = 40  # requests to each domain before the clock runs: all have found a limit then
REQUESTS = 100_000
LATENCY_S = 0.05
AT_ONCE = 256
REFUSED, FAILED = 0.01, 0.02  # shares of the answers: finding a limit is the dearest that happens
BAR_US = 30


class Crawl:
    """A scheduler's loop with nothing in it but the law: whose turn, may it go, how did it end."""

    def __init__(self, domains: int, *, seed: int) -> None:
        self._draw = random.Random(seed).random  # noqa: S311  a measurement, not a secret
        self._governors = {
            f"site-{n}.example": DomainGovernor(max_concurrency=16, u=self._draw)
            for n in range(domains)
        }
        self._in_flight = dict.fromkeys(self._governors, 0)
        self._turns = Turns()
        self._ends: list[tuple[float, int, str, Ticket]] = []
        self._now = 0.0
        self._sent = 0
        for name in self._governors:
            self._turns.ready(name, 0)

    def send(self, requests: int) -> float:
        """Carry on until so many more were sent; microseconds of processor time for each."""
        until = self._sent + requests
        began_s = time.thread_time()
        while self._sent < until:
            self._dispatch()
            self._next_event()
        return (time.thread_time() - began_s) / requests * 1e6

    def _dispatch(self) -> None:
        turns, now = self._turns, self._now
        for name in turns.woken(now):
            turns.ready(name, 0)
        while len(self._ends) < AT_ONCE and (name := turns.next_ready()) is not None:
            governor = self._governors[name]
            due = governor.next_send_due(now, self._in_flight[name])
            if due > now:
                turns.sleep(name, due)
                continue
            self._sent += 1
            self._in_flight[name] += 1
            end = now + LATENCY_S * (0.5 + self._draw())
            heapq.heappush(self._ends, (end, self._sent, name, governor.sent(now)))
            turns.ready(name, 0)

    def _next_event(self) -> None:
        wake_due = self._turns.next_wake_due()
        if not self._ends or wake_due < self._ends[0][0]:
            self._now = max(self._now, wake_due)
            return
        self._now, _, name, ticket = heapq.heappop(self._ends)
        self._in_flight[name] -= 1
        chance = self._draw()
        outcome = (
            Outcome.REFUSED
            if chance < REFUSED
            else Outcome.OVERLOADED
            if chance < REFUSED + FAILED
            else Outcome.SUCCESS
        )
        latency_s = self._now - ticket.sent_due
        self._governors[name].finished(ticket, outcome, self._now, latency_s=latency_s)
        self._turns.ready(name, 0)  # as the scheduler does it at the end of each request


def governor(rounds: int) -> Table:
    """Processor time a request with 10, 1,000 and 10,000 known domains; the least of the rounds."""
    rows = []
    for domains in KNOWN:
        cost_us = []
        for seed in range(rounds):
            crawl = Crawl(domains, seed=seed)
            crawl.send(WARM * domains)
            cost_us.append(crawl.send(REQUESTS))
        rows.append((f"{domains:,}", f"{min(cost_us):.1f}", f"{BAR_US}"))
    return Table(
        f"The control law: processor time a request, {REQUESTS:,} requests",
        ("known domains", "us/request", "bar"),
        rows,
    )
