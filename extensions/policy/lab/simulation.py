"""Runs real governors against a model of a server: a heap of events, virtual seconds, one seed."""

from __future__ import annotations

import dataclasses
import heapq
import math
from typing import TYPE_CHECKING

from ..governor import DomainGovernor
from ..law import LAW, Law
from ..outcome import Outcome
from .servers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ticket import Ticket
    from .servers import Server


@dataclasses.dataclass(slots=True)
class Trace:
    """What happened: when requests were answered, refused and failed, and the pace over time."""

    accepted: list[float] = dataclasses.field(default_factory=list)
    refused: list[float] = dataclasses.field(default_factory=list)
    failed: list[float] = dataclasses.field(default_factory=list)
    states: list[tuple[float, float | None, int]] = dataclasses.field(default_factory=list)
    peak_in_flight: int = 0
    ended_due: float = 0.0


class Client:
    """One crawler on one host: a governor, its requests in flight, and always work (or `urls`)."""

    __slots__ = (
        "governor", "in_flight", "latency_s", "left", "timeout_s", "trace", "wake_due",
    )  # fmt: skip

    def __init__(
        self,
        governor: DomainGovernor,
        *,
        latency_s: Callable[[Callable[[], float]], float],
        timeout_s: float = 30.0,
        urls: float = math.inf,
    ) -> None:
        self.governor = governor
        self.latency_s = latency_s
        self.timeout_s = timeout_s
        self.left = urls
        self.in_flight = 0
        self.wake_due = math.inf
        self.trace = Trace()


class Simulation:
    """Clients, each with its server, carried to a time or to the end of all work."""

    def __init__(self, *, draw: Callable[[], float], max_in_flight: float = math.inf) -> None:
        self._draw = draw
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._seq = 0
        self._clients: list[tuple[Client, Server]] = []
        self._in_flight = 0
        self._max_in_flight = max_in_flight
        self._turn = 0
        self._starved = False  # a client found no free place: offer the next one to all

    def add(self, client: Client, server: Server) -> None:
        """Let *client* crawl *server*; several clients may share one server."""
        self._clients.append((client, server))

    def run(self, until: float) -> float:
        """Carry on to *until* virtual seconds or the end of the work; the time it got to."""
        self._at(0.0, self._all)
        now = 0.0
        while self._events and now <= until:
            now, _, happen = heapq.heappop(self._events)
            happen(now)
        return now

    def _at(self, when: float, happen: Callable[[float], None]) -> None:
        self._seq += 1
        heapq.heappush(self._events, (when, self._seq, happen))

    def _all(self, now: float) -> None:
        """Offer free places to every client in turn, as a scheduler under one bound does."""
        n = len(self._clients)
        self._turn = (self._turn + 1) % n
        self._starved = False
        for i in range(n):
            client, server = self._clients[(self._turn + i) % n]
            if client.wake_due is math.inf:
                self._dispatch(now, client, server)

    def _wake(self, now: float, client: Client, server: Server) -> None:
        if client.wake_due <= now:
            client.wake_due = math.inf
            self._dispatch(now, client, server)

    def _dispatch(self, now: float, client: Client, server: Server) -> None:
        governor = client.governor
        while client.left > 0:
            if self._in_flight >= self._max_in_flight:
                self._starved = True
                return
            due = governor.next_send_due(now, client.in_flight)
            if due > now:
                if due < client.wake_due:
                    client.wake_due = due
                    self._at(due, lambda at: self._wake(at, client, server))
                return
            self._send(now, client, server)

    def _send(self, sent: float, client: Client, server: Server) -> None:
        ticket = client.governor.sent(sent)
        client.left -= 1
        client.in_flight += 1
        self._in_flight += 1
        client.trace.peak_in_flight = max(client.trace.peak_in_flight, client.in_flight)
        way_s = client.latency_s(self._draw)

        def arrive(now: float) -> None:
            reply = server.arrive(now, self._draw)
            end = now + reply.after_s + way_s / 2.0
            if end - sent > client.timeout_s:
                end, reply = sent + client.timeout_s, Reply(Outcome.OVERLOADED)
            self._at(end, lambda now: self._end(now, client, server, ticket, reply))

        self._at(sent + way_s / 2.0, arrive)

    def _end(
        self, now: float, client: Client, server: Server, ticket: Ticket, reply: Reply
    ) -> None:
        client.in_flight -= 1
        self._in_flight -= 1
        trace, governor, outcome = client.trace, client.governor, reply.outcome
        latency_s = now - ticket.sent_due
        governor.finished(
            ticket, outcome, now, latency_s=latency_s, retry_after_s=reply.retry_after_s
        )
        if reply.remaining is not None:
            governor.hint(now, remaining=reply.remaining, reset_s=reply.reset_s)
        if outcome is Outcome.SUCCESS or outcome is Outcome.IGNORED:
            trace.accepted.append(now)
            trace.ended_due = now
        else:
            client.left += 1
            (trace.refused if outcome is Outcome.REFUSED else trace.failed).append(now)
        trace.states.append((now, governor.pace, governor.concurrency))
        self._dispatch(now, client, server)
        if self._starved:
            self._all(now)


def steady_latency(
    seconds: float, *, spread: float = 0.05
) -> Callable[[Callable[[], float]], float]:
    """A log-normal way to the host and back with median *seconds*; *spread* is its sigma."""

    def latency_s(draw: Callable[[], float]) -> float:
        normal = math.sqrt(-2.0 * math.log(1.0 - draw())) * math.cos(2.0 * math.pi * draw())
        return seconds * math.exp(spread * normal)

    return latency_s


def crawl(
    server: Server,
    *,
    draw: Callable[[], float],
    until: float = 300.0,
    urls: float = math.inf,
    latency_s: float = 0.05,
    spread: float = 0.05,
    timeout_s: float = 30.0,
    max_concurrency: int = 16,
    min_interval_s: float = 0.0,
    law: Law = LAW,
) -> Trace:
    """One client against one server."""
    simulation = Simulation(draw=draw)
    governor = DomainGovernor(
        max_concurrency=max_concurrency, min_interval_s=min_interval_s, u=draw, law=law
    )
    client = Client(
        governor, latency_s=steady_latency(latency_s, spread=spread), timeout_s=timeout_s, urls=urls
    )
    simulation.add(client, server)
    simulation.run(until)
    return client.trace
