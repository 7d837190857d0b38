"""What one domain thinks of the proxies: whom it has banned, who got nothing from it, who is at its limit there.

The rule it keeps: only trouble is remembered. A pair without any has no record, so that a pool of hundreds before thousands of
domains costs what is wrong with it, not what it is.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..governor import DomainGovernor
    from ..ticket import Ticket

LAST_BAN_S = 3600.0
FIRST_REFUSAL_S = 1.0
LAST_REFUSAL_S = 60.0
DOUBTS = 4
"""Failures in a row on one pair that make it rest: by then the proxy itself, if it is to blame, rests."""


class Pair:
    """One proxy before one domain."""

    __slots__ = ("bans", "doubts", "governor", "in_flight", "refusals", "rest_due", "trying")

    def __init__(self, governor: DomainGovernor | None) -> None:
        self.governor = governor
        self.in_flight = 0
        self.bans = 0
        self.refusals = 0
        self.doubts = 0
        self.rest_due = -math.inf
        self.trying = False

    def forgettable(self, now: float) -> bool:
        """Is there nothing to remember?"""
        return not (
            self.in_flight or self.bans or self.refusals or self.doubts or self.trying
        ) and (self.governor is None or self.governor.forgettable(now))


class Pairs:
    """All pairs of one domain that are worth remembering.

    Attributes:
        blocked: Bit set of the proxies that may not be asked now, for whatever reason.
        resting: Of them, those that the domain has sent away.
    """

    __slots__ = (
        "_make", "_wakes", "answered_due", "blocked", "known", "resting", "row", "row_due",
    )  # fmt: skip

    def __init__(self, make: Callable[[], DomainGovernor] | None) -> None:
        self._make = make
        self.known: dict[int, Pair] = {}
        self.blocked = 0
        self.resting = 0
        self._wakes: list[tuple[float, int]] = []
        self.row = 0  # bit set: proxies that got nothing since the domain last answered
        self.row_due = math.inf  # when that row began
        self.answered_due = -math.inf

    def pair(self, place: int) -> Pair:
        """The record of the proxy at *place*."""
        found = self.known.get(place)
        if found is None:
            found = self.known[place] = Pair(self._make() if self._make is not None else None)
        return found

    def wake(self, now: float) -> None:
        """Those whose wait is over may be asked again."""
        while self._wakes and self._wakes[0][0] <= now:
            due, place = heapq.heappop(self._wakes)
            pair = self.known.get(place)
            if pair is not None and pair.rest_due > now and due < pair.rest_due:
                continue  # it was sent away again meanwhile
            bit = 1 << place
            if self.resting & bit and pair is not None:
                self.resting &= ~bit
                pair.trying = True
            self.blocked &= ~bit

    def next_due(self) -> float:
        """When the first of them may be."""
        return self._wakes[0][0] if self._wakes else math.inf

    def block(self, place: int, until_due: float) -> None:
        """Ask the proxy at *place* not before *until_due*; infinity: not before one of its requests ends."""
        self.blocked |= 1 << place
        if until_due < math.inf:
            heapq.heappush(self._wakes, (until_due, place))

    def rest(self, place: int, until_due: float) -> None:
        """The domain has sent the proxy at *place* away."""
        pair = self.pair(place)
        pair.rest_due = max(until_due, pair.rest_due)
        pair.trying = False
        self.resting |= 1 << place
        self.block(place, pair.rest_due)

    def free(self, place: int) -> None:
        """A request on the pair has ended."""
        bit = 1 << place
        if not self.resting & bit:
            self.blocked &= ~bit

    def banned(self, place: int, now: float, *, first_s: float, u: float) -> None:
        """A ban page: away for *first_s*, twice as long each time in a row."""
        if self.resting >> place & 1:
            return  # sent before it was banned
        pair = self.pair(place)
        rest_s = min(max(LAST_BAN_S, first_s), first_s * 2.0 ** min(pair.bans, 20))
        pair.bans += 1
        self.rest(place, now + rest_s * (0.9 + 0.2 * u))

    def refused(self, place: int, now: float, *, wait_s: float | None) -> bool:
        """Too many requests: away for as long as it said, or a little while.

        Returns:
            Whether this proxy alone is refused: it was before, and others were not.
        """
        if self.resting >> place & 1:
            if wait_s is not None:
                self.rest(place, now + wait_s)
            return False
        pair = self.pair(place)
        alone = pair.refusals > 0 and self.answered_due > pair.rest_due
        own_s = min(LAST_REFUSAL_S, FIRST_REFUSAL_S * 2.0 ** min(pair.refusals, 20))
        pair.refusals += 1
        self.rest(place, now + max(own_s, wait_s or 0.0))
        return alone

    def got_nothing(self, place: int, now: float) -> None:
        """No answer of the domain's came through the proxy at *place*."""
        if not self.row:
            self.row_due = now
        self.row |= 1 << place

    def doubt(self, place: int, now: float, *, healthy: bool) -> None:
        """The same, as it counts against the pair: not if the proxy itself is what failed."""
        if not healthy:
            if (known := self.known.get(place)) is not None:
                known.doubts = 0
            return
        if self.resting >> place & 1:
            return
        pair = self.pair(place)
        pair.doubts += 1
        if pair.doubts >= DOUBTS:
            rest_s = min(LAST_REFUSAL_S, FIRST_REFUSAL_S * 2.0 ** min(pair.doubts - DOUBTS, 20))
            self.rest(place, now + rest_s)

    def answered(self, place: int, now: float) -> None:
        """The domain has answered through the proxy at *place*."""
        self.row = 0
        self.answered_due = now
        pair = self.known.get(place)
        if pair is not None and not self.resting >> place & 1:  # else it was sent before its rest
            pair.bans = pair.refusals = pair.doubts = 0
            pair.trying = False

    def sent(self, place: int, now: float) -> Ticket | None:
        """A request leaves through the proxy at *place*."""
        pair = self.known.get(place)
        if pair is None:
            return None
        pair.in_flight += 1
        if pair.trying:
            self.blocked |= 1 << place  # one at a time until it is answered
        return pair.governor.sent(now) if pair.governor is not None else None

    def forget_place(self, place: int) -> None:
        """The proxy is no longer in the list."""
        self.known.pop(place, None)
        mask = ~(1 << place)
        self.blocked &= mask
        self.resting &= mask
        self.row &= mask
        self._wakes = [wake for wake in self._wakes if wake[1] != place]
        heapq.heapify(self._wakes)
