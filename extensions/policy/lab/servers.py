"""Models of servers: what a host answers to a request that arrives at a moment.

Each model is asked in order of arrival and answers at once with what will happen and when, so the
simulation needs one event for it. Draws come from the run's own generator; nothing reads a clock.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from typing import TYPE_CHECKING, Protocol

from ..outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """What a server does with a request: its end, after how long, with which headers."""

    outcome: Outcome
    after_s: float = 0.0  # from arrival to the answer's departure; inf for never
    retry_after_s: float | None = None
    remaining: int | None = None  # RateLimit fields
    reset_s: float | None = None


class Server(Protocol):
    """A model of a server."""

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """What becomes of a request that arrives at *now*."""
        ...

    def capacity(self, since: float, until: float) -> float:
        """Requests that a client who knows all gets answered in that time; inf if unlimited."""
        ...


def _asked_wait(kind: str, now: float, need_s: float) -> float | None:
    """The wait as a server would say it: whole seconds, or a date of whole seconds."""
    if not kind:
        return None
    if kind == "seconds":
        return float(max(1, math.ceil(need_s)))
    return max(math.ceil(now + need_s) - now, 1e-3)


def _integral(rate: Callable[[float], float], since: float, until: float) -> float:
    steps = max(1, int((until - since) * 10))
    width = (until - since) / steps
    return sum(rate(since + (i + 0.5) * width) for i in range(steps)) * width


class TokenBucket:
    """A token bucket: `rate` tokens a second (a number or a function of time), at most `burst`."""

    def __init__(
        self,
        rate: float | Callable[[float], float],
        burst: float,
        *,
        wait: str = "",
        refusals_cost: bool = False,
        noise: float = 0.0,
        headers: bool = False,
        refuses: Outcome = Outcome.REFUSED,
    ) -> None:
        self._rate = rate if callable(rate) else lambda _now: rate
        self._burst = burst
        self._tokens = burst
        self._at = 0.0
        self._wait = wait
        self._refusals_cost = refusals_cost
        self._noise = noise
        self._headers = headers
        self._refuses = refuses

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """Take a token or refuse."""
        rate = self._rate(now)
        self._tokens = min(self._burst, self._tokens + rate * (now - self._at))
        self._at = now
        remaining = int(self._tokens) if self._headers else None
        reset_s = (self._burst - self._tokens) / rate if self._headers else None
        if self._noise and draw() < self._noise:
            return Reply(self._refuses)
        if self._tokens >= 1.0 - 1e-9:
            self._tokens -= 1.0
            left = None if remaining is None else remaining - 1
            return Reply(Outcome.SUCCESS, remaining=left, reset_s=reset_s)
        if self._refusals_cost:
            self._tokens = max(self._tokens - 1.0, -self._burst)
        need_s = (1.0 - self._tokens) / rate
        asked_s = _asked_wait(self._wait, now, need_s)
        return Reply(self._refuses, retry_after_s=asked_s, remaining=remaining, reset_s=reset_s)

    def capacity(self, since: float, until: float) -> float:
        """The tokens that flow in that time."""
        return _integral(self._rate, since, until) * (1.0 - self._noise)


class SlidingWindow:
    """At most `count` accepted in any `window_s` seconds."""

    def __init__(
        self, count: int, window_s: float, *, wait: str = "", refuses: Outcome = Outcome.REFUSED
    ) -> None:
        self._count = count
        self._window_s = window_s
        self._wait = wait
        self._refuses = refuses
        self._taken: list[float] = []

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:  # noqa: ARG002  no noise here
        """Take a place in the window or refuse."""
        taken = self._taken
        while taken and taken[0] <= now - self._window_s + 1e-9:
            heapq.heappop(taken)
        if len(taken) < self._count:
            heapq.heappush(taken, now)
            return Reply(Outcome.SUCCESS)
        need_s = taken[0] + self._window_s - now
        return Reply(self._refuses, retry_after_s=_asked_wait(self._wait, now, need_s))

    def capacity(self, since: float, until: float) -> float:
        """A full window after the other."""
        return self._count / self._window_s * (until - since)


class FixedWindow:
    """At most `count` accepted from one whole multiple of `window_s` to the next."""

    def __init__(
        self, count: int, window_s: float, *, wait: str = "", headers: bool = False
    ) -> None:
        self._count = count
        self._window_s = window_s
        self._wait = wait
        self._headers = headers
        self._window = -1
        self._left = 0

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:  # noqa: ARG002  no noise here
        """Take a place in the window or refuse."""
        window = int(now // self._window_s)
        if window != self._window:
            self._window, self._left = window, self._count
        need_s = (window + 1) * self._window_s - now
        outcome = Outcome.SUCCESS if self._left > 0 else Outcome.REFUSED
        self._left = max(0, self._left - 1)
        asked_s = None if outcome is Outcome.SUCCESS else _asked_wait(self._wait, now, need_s)
        if self._headers:
            return Reply(outcome, remaining=self._left, reset_s=math.ceil(need_s))
        return Reply(outcome, retry_after_s=asked_s)

    def capacity(self, since: float, until: float) -> float:
        """Mean rate times time."""
        return self._count / self._window_s * (until - since)


class Workers:
    """`workers` (a number or a function of time) that each take `service_s` (drawn) for a request.

    A request more than `limit` at once is refused as `over`: "queue" lets it wait (the host slows
    down in proportion), "503" answers at once, "hang" never answers.
    """

    def __init__(
        self,
        workers: int | Callable[[float], int],
        service_s: float,
        *,
        over: str = "queue",
        spread: float = 0.1,
        inner: Server | None = None,
        way_s: float = 0.0,
    ) -> None:
        self._way_s = way_s  # part of a place's time where a place is a connection
        self._workers = workers if callable(workers) else lambda _now: workers
        self._service_s = service_s
        self._over = over
        self._spread = spread
        self._inner = inner
        self._ends: list[float] = []

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """Serve, queue, refuse or hang."""
        if self._inner is not None:
            reply = self._inner.arrive(now, draw)
            if reply.outcome is not Outcome.SUCCESS:
                return reply
        ends = self._ends
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        workers = self._workers(now)
        start = now
        if len(ends) >= workers:
            if self._over == "503":
                return Reply(Outcome.OVERLOADED, 0.002)
            if self._over == "hang":
                return Reply(Outcome.OVERLOADED, math.inf)
            start = sorted(ends)[len(ends) - workers]
        spread = math.sqrt(2.0 * -math.log(1.0 - draw())) * math.cos(2.0 * math.pi * draw())
        end = start + self._service_s * math.exp(self._spread * spread - self._spread**2 / 2.0)
        heapq.heappush(ends, end)
        return Reply(Outcome.SUCCESS, end - now)

    def capacity(self, since: float, until: float) -> float:
        """All workers busy, or the inner limit."""
        mine = _integral(lambda t: self._workers(t) / (self._service_s + self._way_s), since, until)
        return mine if self._inner is None else min(mine, self._inner.capacity(since, until))


class Free:
    """No limit; a `noise` share of the answers ends as `outcome` for no reason."""

    def __init__(self, *, noise: float = 0.0, outcome: Outcome = Outcome.OVERLOADED) -> None:
        self._noise = noise
        self._outcome = outcome

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:  # noqa: ARG002  time is nothing to it
        """Answer at once."""
        if self._noise and draw() < self._noise:
            return Reply(self._outcome)
        return Reply(Outcome.SUCCESS)

    def capacity(self, since: float, until: float) -> float:  # noqa: ARG002  no end
        """Without end."""
        return math.inf


class Down:
    """A host that gives only `outcome` from `since` to `until`, else behaves as `inner`."""

    def __init__(
        self,
        inner: Server,
        *,
        since: float,
        until: float,
        after_s: float = 0.005,
        outcome: Outcome = Outcome.OVERLOADED,
    ) -> None:
        self._inner = inner
        self._since = since
        self._until = until
        self._after_s = after_s
        self._outcome = outcome

    def arrive(self, now: float, draw: Callable[[], float]) -> Reply:
        """Fail while down."""
        if self._since <= now < self._until:
            return Reply(self._outcome, self._after_s)
        return self._inner.arrive(now, draw)

    def capacity(self, since: float, until: float) -> float:
        """The inner one's, without the time down."""
        down = max(0.0, min(until, self._until) - max(since, self._since))
        return self._inner.capacity(since, until - down)
