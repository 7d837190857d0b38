"""The limiters of the site: each is asked once for each request and keeps its own state."""

from __future__ import annotations

import collections

from .script import Bucket, FixedWindow, InFlight, Limit, SlidingWindow


class Limiter:
    """Says for one request at *now* (monotonic seconds): 0 to accept, else the seconds to wait."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._tokens = limit.burst if isinstance(limit, Bucket) else 0.0
        self._refilled_due = 0.0
        self._accepted: collections.deque[float] = collections.deque()
        self._window = (0, 0)

    def wait_s(self, now: float, in_flight: int) -> float:
        """Seconds until a request would be accepted; 0 accepts this one and counts it."""
        match self._limit:
            case Bucket():
                return self._bucket(self._limit, now)
            case SlidingWindow():
                return self._sliding(self._limit, now)
            case FixedWindow():
                return self._fixed(self._limit, now)
            case InFlight(count=count):
                return 0.0 if in_flight < count else 1.0

    def _bucket(self, limit: Bucket, now: float) -> float:
        gained = (now - self._refilled_due) * limit.rate
        self._tokens = min(limit.burst, self._tokens + gained)
        self._refilled_due = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / limit.rate

    def _sliding(self, limit: SlidingWindow, now: float) -> float:
        while self._accepted and self._accepted[0] <= now - limit.per_s:
            self._accepted.popleft()
        if len(self._accepted) < limit.count:
            self._accepted.append(now)
            return 0.0
        return self._accepted[0] + limit.per_s - now

    def _fixed(self, limit: FixedWindow, now: float) -> float:
        number = int(now // limit.per_s)
        window, count = self._window
        if window != number:
            count = 0
        if count < limit.count:
            self._window = (number, count + 1)
            return 0.0
        return (number + 1) * limit.per_s - now
