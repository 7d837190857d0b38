"""Runs real governors against a model of a server: a heap of events, virtual seconds, one seed."""

from __future__ import annotations

import dataclasses
import heapq
import math
from typing import TYPE_CHECKING

from ..governor import DomainGovernor
from ..law import LAW, Law
from ..outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ticket import Ticket
    from .servers import Server

_ARRIVE, _END, _WAKE = 0, 1, 2


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
    """Clients, each with its server; `run` carries the events until a time or until all work ended."""

    def __init__(self, *, draw: Callable[[], float], max_in_flight: float = math.inf) -> None:
        self._draw = draw
        self._events: list[
            tuple[
                float,
                int,
                int,
                Client,
                Server,
                Ticket | None,
                Outcome,
                float,
                float | None,
                int | None,
                float | None,
            ]
        ] = []  # noqa: E501
        self._seq = 0
        self._clients: list[tuple[Client, Server]] = []
        self._in_flight = 0
        self._max_in_flight = max_in_flight
        self._turn = 0

    def add(self, client: Client, server: Server) -> None:
        """Let *client* crawl *server*; several clients may share one server."""
        self._clients.append((client, server))

    def run(self, until: float) -> float:
        """Carry on to *until* virtual seconds or the end of the work; the time it got to."""
        for client, server in self._clients:
            client.wake_due = 0.0
            self._push(0.0, _WAKE, client, server)
        now = 0.0
        while self._events:
            now, _, kind, client, server, ticket, outcome, sent, wait, left, reset = heapq.heappop(
                self._events
            )
            if now > until:
                break
            if kind == _ARRIVE:
                assert ticket is not None  # noqa: S101  arrivals always carry one
                self._arrive(now, client, server, ticket, sent)
            elif kind == _END:
                assert ticket is not None  # noqa: S101  ends always carry one
                self._end(now, client, ticket, outcome, sent, wait, left, reset)
                self._dispatch(now, client, server)
                if self._in_flight < self._max_in_flight < math.inf:
                    self._all(now)
            elif client.wake_due <= now:
                client.wake_due = math.inf
                self._dispatch(now, client, server)
        return now

    def _all(self, now: float) -> None:
        n = len(self._clients)
        for i in range(n):
            if self._in_flight >= self._max_in_flight:
                return
            client, server = self._clients[(self._turn + i) % n]
            if client.left > 0 and client.wake_due is math.inf:
                self._dispatch(now, client, server)
        self._turn = (self._turn + 1) % n

    def _push(self, at: float, kind: int, client: Client, server: Server, ticket: Ticket | None = None,
              outcome: Outcome = Outcome.SUCCESS, sent: float = 0.0, wait: float | None = None,
              left: int | None = None, reset: float | None = None) -> None:  # fmt: skip
        self._seq += 1
        heapq.heappush(
            self._events,
            (at, self._seq, kind, client, server, ticket, outcome, sent, wait, left, reset),
        )

    def _dispatch(self, now: float, client: Client, server: Server) -> None:
        governor = client.governor
        while client.left > 0 and self._in_flight < self._max_in_flight:
            due = governor.next_send_due(now, client.in_flight)
            if due > now:
                if due < client.wake_due:
                    client.wake_due = due
                    self._push(due, _WAKE, client, server)
                return
            ticket = governor.sent(now)
            client.left -= 1
            client.in_flight += 1
            self._in_flight += 1
            client.trace.peak_in_flight = max(client.trace.peak_in_flight, client.in_flight)
            way_s = client.latency_s(self._draw)
            self._push(now + way_s / 2.0, _ARRIVE, client, server, ticket, sent=now)

    def _arrive(
        self, now: float, client: Client, server: Server, ticket: Ticket, sent: float
    ) -> None:
        reply = server.arrive(now, self._draw)
        end = now + reply.after_s + (now - sent)
        outcome, wait = reply.outcome, reply.retry_after_s
        if end - sent > client.timeout_s:
            end, outcome, wait = sent + client.timeout_s, Outcome.OVERLOADED, None
        self._push(
            end, _END, client, server, ticket, outcome, sent, wait, reply.remaining, reply.reset_s
        )

    def _end(self, now: float, client: Client, ticket: Ticket, outcome: Outcome, sent: float,
             wait: float | None, left: int | None, reset: float | None) -> None:  # fmt: skip
        client.in_flight -= 1
        self._in_flight -= 1
        trace = client.trace
        governor = client.governor
        governor.finished(ticket, outcome, now, latency_s=now - sent, retry_after_s=wait)
        if left is not None or reset is not None:
            governor.hint(now, remaining=left, reset_s=reset)
        if outcome is Outcome.SUCCESS or outcome is Outcome.IGNORED:
            trace.accepted.append(now)
            trace.ended_due = now
        else:
            client.left += 1
            (trace.refused if outcome is Outcome.REFUSED else trace.failed).append(now)
        trace.states.append((now, governor.pace, governor.concurrency))


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
