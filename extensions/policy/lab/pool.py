"""The pool in the lab: real governor and pool, model proxies that die and recover, virtual seconds.

One domain with endless work through a pool; each proxy carries so many at once, and between two
moments some of them are dead in one of the ways in which proxies die.
"""

from __future__ import annotations

import dataclasses
import enum
import heapq
import math
from typing import TYPE_CHECKING

from ..governor import DomainGovernor
from ..outcome import Outcome
from ..proxies import Address, Charge, LimitBy, News, ProxyPool, Ride, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ticket import Ticket


class Death(enum.Enum):
    """How a proxy is dead: what its rides end in, and after how long."""

    REFUSES = "refuses"
    RESETS = "resets"
    HANGS = "hangs"
    GATEWAY = "502"
    BANNED = "banned"


_ENDS = {
    Death.REFUSES: News.PROXY, Death.RESETS: News.SILENCE, Death.HANGS: News.SILENCE,
    Death.GATEWAY: News.BAD_GATEWAY, Death.BANNED: News.BANNED,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class PoolScenario:
    """A pool before one host.

    Attributes:
        name: As the table shows it.
        proxies, carries: How many, and requests that each carries at once; what is over that resets.
        takes: Requests that the host works on at once.
        told: Does the crawl know what a proxy carries? Else it finds out below a ceiling of eight.
        dead, death: So many die at 60 s and are back at 90 s, and how.
        held: Share of what the living carry that must be in flight, before, while and after.
        lost: Largest share of rides that may end on the dead, from three seconds after they died.
        back_s: Longest time to full speed after they are back.
    """

    name: str
    proxies: int = 20
    carries: int = 2
    takes: int = 30
    told: bool = True
    dead: int = 10
    death: Death = Death.REFUSES
    held: float = 0.93
    lost: float = 0.01
    back_s: float = 5.0


POOLS = (
    PoolScenario("half refuse"),
    PoolScenario("half reset"),
    PoolScenario("half answer 502", death=Death.GATEWAY),
    PoolScenario("half hang, 2 s timeout", death=Death.HANGS, held=0.9, back_s=8.0),
    PoolScenario("half are banned for a minute", death=Death.BANNED, back_s=40.0),
    PoolScenario("all refuse", dead=20, lost=1.0),
    PoolScenario("all hang, 2 s timeout", dead=20, death=Death.HANGS, lost=1.0, back_s=8.0),
    PoolScenario("200 proxies, half refuse", proxies=200, dead=100, takes=300),
    PoolScenario("limits to be found", told=False, held=0.8, back_s=10.0),
)
DIES_S, BACK_S, UNTIL_S = 60.0, 90.0, 150.0
LATENCY_S, TIMEOUT_S, SOON_S = 0.2, 2.0, 0.01


@dataclasses.dataclass(slots=True)
class PoolResult:
    """What was reached."""

    scenario: PoolScenario
    before: float = 0.0  # requests in flight on living proxies, of what those carry
    during: float = 0.0
    after: float = 0.0
    lost: float = 0.0  # rides that ended on the dead, from 3 s after they died
    over: int = 0  # rides that a proxy had no room for, after the first half minute
    spent: int = 0  # attempts that were charged to requests
    back_s: float = math.inf
    peak: int = 0

    def misses(self) -> list[str]:
        """The bars that were not reached; empty if all were."""
        bar, missed = self.scenario, []
        shares = (
            ("before", self.before),
            ("while some are dead", self.during),
            ("after", self.after),
        )
        missed += [f"{held:.0%} held {when}" for when, held in shares if held < bar.held]
        if self.lost > bar.lost:
            missed.append(f"lost {self.lost:.1%} > {bar.lost:.0%}")
        if self.back_s > bar.back_s:
            missed.append(f"back after {self.back_s:.1f} s > {bar.back_s:g} s")
        if self.spent:
            missed.append(f"{self.spent} attempts spent")
        if self.peak > bar.takes:
            missed.append(f"{self.peak} in flight > {bar.takes}")
        return missed


class _Run:
    def __init__(self, scenario: PoolScenario, draw: Callable[[], float]) -> None:
        self.scenario = scenario
        self._draw = draw
        self._governor = DomainGovernor(max_concurrency=scenario.takes, u=draw)
        self._pool = ProxyPool(
            limit_by=LimitBy.BOTH, ceiling=scenario.carries if scenario.told else 8, u=draw
        )
        self._pool.replace(
            Address(url=f"http://p{n}:1", name=f"p{n}") for n in range(scenario.proxies)
        )
        self._dead = {f"p{n}" for n in range(scenario.dead)}
        self._on: dict[str, int] = {f"p{n}": 0 for n in range(scenario.proxies)}
        self._events: list[tuple[float, int, Ride | None, Ticket | None, News]] = []
        self._seq = 0
        self._in_flight = 0
        self._wake_due = math.inf
        self.result = PoolResult(scenario)
        self._held: dict[str, list[float]] = {"before": [], "during": [], "after": []}
        self._rides = self._lost = 0

    def _is_dead(self, name: str, now: float) -> bool:
        return name in self._dead and DIES_S <= now < BACK_S

    def go(self) -> PoolResult:
        self._push(0.0, None, None, News.ANSWERED)
        self._push(BACK_S, None, None, News.ANSWERED)
        now = 0.0
        while self._events and now < UNTIL_S:
            now, _, ride, ticket, news = heapq.heappop(self._events)
            if ride is not None:
                self._end(ride, ticket, news, now)
            elif now >= self._wake_due:
                self._wake_due = math.inf
            self._dispatch(now)
            self._look(now)
        for phase, values in self._held.items():
            setattr(self.result, phase, sum(values) / len(values) if values else 1.0)
        self.result.lost = self._lost / max(1, self._rides)
        return self.result

    def _push(self, due: float, ride: Ride | None, ticket: Ticket | None, news: News) -> None:
        self._seq += 1
        heapq.heappush(self._events, (due, self._seq, ride, ticket, news))

    def _dispatch(self, now: float) -> None:
        while True:
            due = self._governor.next_send_due(now, self._in_flight)
            if due > now:
                break
            found = self._pool.choose("host", now)
            if isinstance(found, Wait):
                due = found.until_due
                break
            self._send(self._pool.sent(found, "host", now), now)
        if due < self._wake_due:
            self._wake_due = due
            self._push(due, None, None, News.ANSWERED)

    def _send(self, ride: Ride, now: float) -> None:
        scenario, name = self.scenario, ride.name
        self._in_flight += 1
        self._on[name] += 1
        self.result.peak = max(self.result.peak, self._in_flight)
        news, takes_s = News.ANSWERED, LATENCY_S * (0.9 + 0.2 * self._draw())
        if self._is_dead(name, now):
            news = _ENDS[scenario.death]
            takes_s = TIMEOUT_S if scenario.death is Death.HANGS else SOON_S
        elif self._on[name] > scenario.carries:
            news, takes_s = News.SILENCE, SOON_S
            self.result.over += now > DIES_S / 2
        self._push(now + takes_s, ride, self._governor.sent(now), news)

    def _end(self, ride: Ride, ticket: Ticket | None, news: News, now: float) -> None:
        assert ticket is not None  # noqa: S101 - every ride has one
        self._in_flight -= 1
        self._on[ride.name] -= 1
        if DIES_S + 3.0 < now < BACK_S:
            self._rides += 1
            self._lost += self._is_dead(ride.name, now)
        outcome = Outcome.SUCCESS if news is News.ANSWERED else Outcome.OVERLOADED
        charge = self._pool.finished(
            ride, news, now, outcome=outcome, latency_s=now - ride.sent_due
        )
        if charge in {Charge.PROXY, Charge.PAIR}:
            self._governor.abandoned(ticket, now)
            return
        self.result.spent += charge is Charge.TARGET
        self._governor.finished(ticket, outcome, now, latency_s=now - ride.sent_due)

    def _look(self, now: float) -> None:
        scenario = self.scenario
        living = scenario.proxies - (scenario.dead if DIES_S <= now < BACK_S else 0)
        could = min(living * scenario.carries, scenario.takes)
        on = sum(n for name, n in self._on.items() if not self._is_dead(name, now))
        held = on / could if could else 1.0
        if DIES_S / 2 < now < DIES_S:
            self._held["before"].append(held)
        elif DIES_S + 3.0 < now < BACK_S:
            self._held["during"].append(held)
        elif now >= BACK_S:
            if held >= scenario.held and self.result.back_s == math.inf:
                self.result.back_s = now - BACK_S
            if now > BACK_S + scenario.back_s:
                self._held["after"].append(held)


def run_pool(scenario: PoolScenario, *, draw: Callable[[], float]) -> PoolResult:
    """One scenario with one seed."""
    return _Run(scenario, draw).go()


POOL_HEADER = f"{'a pool before one host':<30}{'held':>7}{'dead':>7}{'after':>7}{'lost':>7}{'back':>8}  missed"


def pool_line(result: PoolResult) -> str:
    """One row: shares of what the living carry, before, while some are dead, after."""
    missed = "; ".join(result.misses()) or "-"
    return (
        f"{result.scenario.name:<30}{result.before:>7.0%}{result.during:>7.0%}{result.after:>7.0%}"
        f"{result.lost:>7.1%}{result.back_s:>7.1f}s  {missed}"
    )
