"""Whose turn it is: fair choice among domains, without ever scanning them all.

The rule it keeps: a domain stands in exactly one place: *ready* (asked as soon as a place is free), *asleep* (until a time),
*blocked* (until one of its running requests ends) or nowhere (no work). Moves cost O(log n); entries that a later move
made stale are thrown away when they surface.

Among ready domains the one with the most urgent request goes first, and equals take turns.
"""

from __future__ import annotations

import heapq
import itertools
import math


class Turns:
    """The queue of domains."""

    __slots__ = ("_asleep", "_clock", "_dues", "_ready", "_stamps", "_urgency")

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, str]] = []  # (-priority, stamp, domain)
        self._asleep: list[tuple[float, int, str]] = []  # (wake due, stamp, domain)
        self._stamps: dict[
            str, int
        ] = {}  # domain -> stamp of its only valid entry; -1 while blocked
        self._urgency: dict[str, int] = {}  # priority of the domains that are ready
        self._dues: dict[str, float] = {}  # until when those asleep sleep
        self._clock = itertools.count()

    def ready(self, domain: str, priority: int) -> None:
        """*domain* has work of *priority* at its head: ask it when a place is free, after its equals."""
        stamp = self._stamps[domain] = next(self._clock)
        self._urgency[domain] = priority
        heapq.heappush(self._ready, (-priority, stamp, domain))

    def work_came(self, domain: str, priority: int) -> None:
        """A request of *priority* came in for *domain*: it is made ready, unless it is asleep or blocked."""
        if domain not in self._stamps or self._urgency.get(domain, priority) < priority:
            self.ready(domain, priority)

    def sleep(self, domain: str, until_due: float) -> None:
        """Ask *domain* again at *until_due* (monotonic seconds); infinity: when it is made ready."""
        self._urgency.pop(domain, None)
        if until_due == math.inf:
            self._stamps[domain] = -1
            return
        stamp = self._stamps[domain] = next(self._clock)
        self._dues[domain] = until_due
        heapq.heappush(self._asleep, (until_due, stamp, domain))

    @property
    def ready_count(self) -> int:
        """Domains that could send now, as far as is known."""
        return len(self._urgency)

    def is_ready(self, domain: str) -> bool:
        """Could *domain* send now, as far as is known?"""
        return domain in self._urgency

    def forget(self, domain: str) -> None:
        """*domain* has no work."""
        self._stamps.pop(domain, None)
        self._urgency.pop(domain, None)
        self._dues.pop(domain, None)

    def due_of(self, domain: str) -> float | None:
        """Until when *domain* was last put to sleep; None if it never was."""
        return self._dues.get(domain)

    def __contains__(self, domain: str) -> bool:
        return domain in self._stamps

    def __len__(self) -> int:
        return len(self._stamps)

    def next_ready(self) -> str | None:
        """Take the domain whose turn it is. It stands nowhere until it is put somewhere again."""
        while self._ready:
            _, stamp, domain = heapq.heappop(self._ready)
            if self._stamps.get(domain) == stamp:
                del self._stamps[domain]
                del self._urgency[domain]
                return domain
        return None

    def woken(self, now: float) -> list[str]:
        """Take all domains whose sleep has ended by *now*."""
        awake = []
        while self._asleep and self._asleep[0][0] <= now:
            _, stamp, domain = heapq.heappop(self._asleep)
            if self._stamps.get(domain) == stamp:
                del self._stamps[domain]
                awake.append(domain)
        return awake

    def next_wake_due(self) -> float:
        """When the first sleeper wakes; infinity where none sleeps."""
        while self._asleep:
            due, stamp, domain = self._asleep[0]
            if self._stamps.get(domain) == stamp:
                return due
            heapq.heappop(self._asleep)
        return math.inf
