"""Runs scenarios and prints what they reached, beside what they must reach."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from ..governor import DomainGovernor
from ..law import LAW, Law
from .measures import Share, between, reached_after_s, share
from .scopes import Several
from .simulation import Client, Simulation, Trace, steady_latency

if TYPE_CHECKING:
    from collections.abc import Callable

    from .scenarios import Scenario
    from .servers import Server


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What one scenario reached with one seed."""

    scenario: Scenario
    settled: Share
    whole: Share
    found_s: float
    followed_s: tuple[float, ...]
    smaller: float  # the smaller crawler's share of all, or the poorest domain's goodput
    trace: Trace
    server: Server
    best: float  # requests a second that the client could get at all

    def misses(self) -> list[str]:
        """The bars that were not reached, in words; empty if all were."""
        bar, missed = self.scenario, []
        if self.settled.goodput < bar.goodput:
            missed.append(f"goodput {self.settled.goodput:.1%} < {bar.goodput:.0%}")
        for word, at_most, got in (
            ("refused", bar.refused, self.settled.refused),
            ("failed", bar.failed, self.settled.failed),
            ("refused overall", bar.whole_refused, self.whole.refused),
        ):
            if got > at_most:
                missed.append(f"{word} {got:.1%} > {at_most:.1%}")
        if self.whole.goodput < bar.whole_goodput:
            missed.append(f"overall {self.whole.goodput:.1%} < {bar.whole_goodput:.0%}")
        for (_, _, allowed_s), took_s in zip(bar.steps, self.followed_s, strict=True):
            if took_s > allowed_s:
                missed.append(f"followed after {took_s:.1f} s > {allowed_s:g} s")
        if self.found_s > bar.found_s:
            missed.append(f"found after {self.found_s:.1f} s > {bar.found_s:g} s")
        if self.smaller < bar.fair:
            missed.append(f"smaller share {self.smaller:.0%} < {bar.fair:.0%}")
        return missed


def run(
    scenario: Scenario, *, draw: Callable[[], float], scale: float = 1.0, law: Law = LAW
) -> Result:
    """Carry out one scenario in virtual time."""
    simulation = Simulation(draw=draw, max_in_flight=scenario.max_in_flight)
    servers = _servers(scenario, scale)
    server = servers[0] if scenario.domains == 0 else Several(servers)
    clients = []
    for one in servers:
        governor = DomainGovernor(max_concurrency=scenario.max_concurrency, u=draw, law=law)
        latency_s = steady_latency(scenario.latency_s, spread=scenario.spread)
        clients.append(Client(governor, latency_s=latency_s, timeout_s=scenario.timeout_s))
        simulation.add(clients[-1], one)
    until = scenario.until_s
    simulation.run(until)
    trace = clients[0].trace if len(clients) == 1 else _together([c.trace for c in clients])
    mean_s = scenario.latency_s * math.exp(scenario.spread**2 / 2.0)
    best = min(len(clients) * scenario.max_concurrency, scenario.max_in_flight) / mean_s
    since = scenario.settled_s
    kept = [between(c.trace.accepted, since, until) for c in clients]
    if scenario.domains:
        smaller = min(n / s.capacity(since, until) for n, s in zip(kept, servers, strict=True))
    else:
        smaller = min(kept) / max(1, sum(kept)) if len(kept) > 1 else 1.0
    return Result(
        scenario=scenario,
        settled=share(trace, server, since, until, best=best),
        whole=share(trace, server, 0.0, until, best=best),
        found_s=reached_after_s(trace, server, 0.0, until, best=best),
        followed_s=tuple(
            reached_after_s(trace, server, at, end, best=best) for at, end, _ in scenario.steps
        ),
        smaller=smaller,
        trace=trace,
        server=server,
        best=best,
    )


def _servers(scenario: Scenario, scale: float) -> list[Server]:
    """A server for each client: one for all, or each its own, with limits far apart."""
    if not scenario.domains:
        return [scenario.server(scale)] * scenario.crawlers
    last = scenario.domains - 1
    return [scenario.server(scale * 0.2 * 25.0 ** (i / last)) for i in range(scenario.domains)]


def _together(traces: list[Trace]) -> Trace:
    return Trace(
        accepted=sorted(t for trace in traces for t in trace.accepted),
        refused=sorted(t for trace in traces for t in trace.refused),
        failed=sorted(t for trace in traces for t in trace.failed),
        states=traces[0].states,
        peak_in_flight=max(trace.peak_in_flight for trace in traces),
        ended_due=max(trace.ended_due for trace in traces),
    )


HEADER = (
    f"{'server':<40}{'goodput':>9}{'refused':>9}{'failed':>8}{'all':>8}{'lost':>7}{'found s':>9}"
    f"{'followed s':>13}  bars"
)


def line(result: Result) -> str:
    """One line of the table."""
    followed = " ".join(f"{s:.1f}" for s in result.followed_s)
    lost = result.whole.refused + result.whole.failed
    fair = f"least {result.smaller:.0%} " if result.scenario.fair else ""
    return (
        f"{result.scenario.name:<40}{result.settled.goodput:>9.1%}{result.settled.refused:>9.2%}"
        f"{result.settled.failed:>8.2%}{result.whole.goodput:>8.1%}{lost:>7.2%}{result.found_s:>9.1f}"
        f"{followed:>13}  {fair}{'; '.join(result.misses()) or 'ok'}"
    )
