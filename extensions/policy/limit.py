"""What a host's limit must be, from what it accepted between two refusals.

A bucket of rate r and burst b that was full when a stretch of t seconds began, and empty at its
end, gave b + r t. Two unknowns: so the burst is learned from the stretches that emptied the bucket
quickly, and the rate from the cycles that took long.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from .law import LAW, Law

if TYPE_CHECKING:
    from .handover import Kept
    from .meter import Meter

_LEAST = 1e-4  # requests a second: one in three hours
_INSTANT_S = 1e-3


@dataclasses.dataclass(slots=True)
class Cycle:
    """From the first request that passed after one cut to the first that passed after the next."""

    meter: Meter
    since_due: float
    cut_due: float  # the refused request left
    known_due: float  # its refusal became known: until then requests still left
    end_due: float  # the host was open again
    accepted: int  # requests that left before the cut and passed, and the one that ended the cycle
    pause_s: float  # how long the host was left alone before the cycle
    lead: int  # accepted requests that left between the last cut and that pause ...
    lead_s: float  # ... and how long it took to know of the cut
    pace: float  # at which the refused request left; inf before the first refusal
    paced: bool  # it was held back by the pace all along: no token was wasted
    told: bool  # the host said how long to wait, so that the bucket overflowed
    noise: float  # share of refusals that mean nothing
    mixed: float = 0.0  # requests by which arrivals may differ from what left: ways differ

    @property
    def took_s(self) -> float:
        """Seconds to the cut."""
        return max(self.cut_due - self.since_due, _INSTANT_S)

    @property
    def blocked_s(self) -> float:
        """Seconds that nothing was asked, or nothing given."""
        return self.end_due - self.known_due


class Limit:
    """The mark of one domain, and what stands behind it."""

    __slots__ = ("_before", "_guessed", "_law", "_slack", "_stretch", "burst", "exact", "mark")

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self.mark: float | None = None  # requests a second
        self.burst: float | None = None  # the host's bucket, as far as known
        self._before = 0.0  # the mark before a trial that was kept for long enough to be true
        self._guessed = False  # no cycle was long enough yet: a burst stands behind the mark
        self._slack = 0.0  # what it holds when a probe begins: less than a full one after a rest
        self.exact = False  # measured at a steady pace over the limit
        self._stretch = (0, 0.0, 0.0)  # accepted, in how long, at which mark, to empty the bucket

    def first(self, cycle: Cycle, *, shut: bool) -> None:
        """The first refusal: what was accepted a second just before, the burst included."""
        self.mark = self.guess(cycle.meter, cycle.cut_due)
        if cycle.took_s <= 1.0:  # the start: the burst is in it, what left after the cut is not
            rate = (cycle.accepted - 1) / max(cycle.took_s, 0.2)
            self.mark = max(1.0, self._law.quarter * rate)
        self._stretch = (cycle.accepted - 1, cycle.took_s, 0.0)
        self._guessed = True
        if shut or cycle.told:
            whole = cycle.accepted / (cycle.took_s + cycle.blocked_s)
            if shut and not cycle.told and cycle.accepted < 2 * self._law.few:
                whole = math.sqrt(
                    whole / cycle.blocked_s
                )  # a small window, or a burst and one token
            self.mark = max(
                _LEAST, min(self.mark, math.sqrt(whole * self.mark) if cycle.told else whole)
            )

    @staticmethod
    def guess(meter: Meter, cut_due: float) -> float:
        """The accepted rate of the last second before *cut_due*."""
        since_due = meter.since_due
        over_s = 1.0 if since_due is None else min(1.0, max(cut_due - since_due, 0.2))
        return max(meter.accepted_rate(cut_due, over_s=over_s), 1.0)

    def shut(self, cycle: Cycle, *, above: bool) -> None:
        """Closed for longer than a bucket would be: it counts by the window, so by whole cycles."""
        assert self.mark is not None  # noqa: S101  only the first refusal comes without a mark
        best = cycle.accepted / (cycle.took_s + cycle.blocked_s)
        if above:
            best = max(best, cycle.meter.best_stretch(cycle.end_due, burst=0.0)[0])
        if cycle.accepted < self._law.few:
            best = max(best, self._law.quarter * self.mark)
        self.mark = max(_LEAST, min((1.0 + self._law.same) * self.mark, best))

    def fallen(self, cycle: Cycle) -> None:
        """Refused below the mark: at a steady pace the cycle's own rate is the limit."""
        old, law = self.mark, self._law
        assert old is not None  # noqa: S101  as above
        before, self._before = self._before, 0.0
        if cycle.accepted < 2 * law.few and old > before > 0.0:  # the trial failed at once
            self.mark = math.sqrt(before * max(before, min(old, self._rate(cycle))))
            self.exact = True
            self._learn_burst()
            return
        if cycle.accepted < law.few:
            lasted_s = cycle.took_s + cycle.blocked_s
            least = law.quarter * old
            if self._guessed:  # nothing to be careful with: down to what can have been given
                least = min(least, (cycle.accepted + 1) / lasted_s)
            rate = max(cycle.accepted / lasted_s, least)
            self.mark, self.exact = max(_LEAST, min(old, rate)), False
            return
        self._guessed = False
        rate = self._rate(cycle)
        if not cycle.paced:  # tokens were wasted while nobody asked for them
            burst = (self.burst or 0.0) + 1.0
            rate = max(rate, cycle.meter.best_stretch(cycle.cut_due, burst=burst)[0])
        self.mark = max(_LEAST, law.sit * min(old, rate))
        self.exact = cycle.paced
        known = self.burst is not None
        self._learn_burst()
        if not known:
            self.mark = max(_LEAST, law.sit * min(old, self._rate(cycle)))

    def _learn_burst(self) -> None:
        """The bucket's size, now that the mark is exact: what its last emptying took over it."""
        count, took_s, at_mark = self._stretch
        if not count or self.mark is None or self.mark <= self._law.quarter * at_mark:
            return
        burst = max(0.0, count - self.mark * took_s)
        if self.burst is None:
            self.burst = self._slack = burst
        else:
            self.burst = 0.5 * (self.burst + burst)
            self._slack = min(self.burst, 0.5 * (self._slack + burst))

    def risen(self, cycle: Cycle) -> bool:
        """Refused above the mark; True if that was the ceiling that was known."""
        old, law = self.mark, self._law
        assert old is not None  # noqa: S101  as above
        self._guessed = False
        found = self._rate(cycle)
        if cycle.paced and cycle.accepted >= 2 * law.few and found < (1.0 - law.same / 2.0) * old:
            self.mark, self.exact = max(_LEAST, found), True  # the mark itself was too much
            return False
        if self.burst is not None:
            slack = self._slack
            most = slack + 1.0 + cycle.mixed
            bound, count, took_s = cycle.meter.best_stretch(cycle.cut_due, burst=most)
            self._stretch = (count - 1, took_s, old)
            found = max(found, bound / (1.0 - 0.5 * cycle.noise))
            if self.exact and found <= (1.0 + law.same) * old:
                self._slack = (1.0 - law.same / 2.0) * min(
                    slack, cycle.meter.excess(cycle.cut_due, rate=old)
                )
                if cycle.noise <= law.refusal_noise:
                    self.mark = math.sqrt(old * max(old, self._sure(cycle)))
                return True
        self.exact = False  # try the middle: if it is too much, the next cycle measures exactly
        self._before = old if cycle.paced and cycle.accepted >= 2 * law.few else 0.0
        found = max(found, math.sqrt(old * cycle.pace))
        self.mark = min(found, law.sit * cycle.pace)
        return False

    def kept(self) -> Kept:
        """What a new holder of the domain needs of it."""
        return {"burst": self.burst, "exact": int(self.exact)}

    def take(self, kept: Kept, mark: float) -> None:
        """Go on with *mark* and what another holder kept; the host has rested, its bucket is full."""
        self.mark = mark
        burst = kept.get("burst")
        if burst is not None and 0.0 <= burst < math.inf:
            self.burst = self._slack = float(burst)
            self.exact = bool(kept.get("exact"))

    def refilled(self) -> None:
        """The host was asked less than it takes for a while: its bucket is full."""
        self._slack = self.burst or 0.0

    def _sure(self, cycle: Cycle) -> float:
        """A rate that the limit is at least, to a request."""
        most = max(1.0, self._slack) + 1.0 + cycle.mixed
        count = cycle.accepted + cycle.lead - 1.0 - cycle.mixed
        whole = count / (cycle.took_s + cycle.pause_s + cycle.lead_s)
        return max(whole, cycle.meter.best_stretch(cycle.cut_due, burst=most)[0])

    def _rate(self, cycle: Cycle) -> float:
        """The rate of a bucket that was empty before the pause, and again at the cut.

        What ran into it in the pause belongs to the cycle, up to its size.
        """
        share = 1.0 - 0.5 * cycle.noise  # noise takes no token; tests end on a hit, so half of it
        before_s = min(cycle.pause_s, cycle.blocked_s) + cycle.lead_s
        short = cycle.accepted < 2 * self._law.few  # what the pause gave may have run over
        low = (cycle.accepted + cycle.lead + short) / share / (cycle.took_s + before_s)
        count, burst = (cycle.accepted + 1.0) / share, self.burst
        if burst is None:
            return math.sqrt(low * count / cycle.took_s) if cycle.told else low
        ran_in = low * before_s - cycle.lead - cycle.mixed
        if cycle.told or ran_in > burst:  # the bucket was full when the pause ended
            return max(low, (count - burst) / cycle.took_s)
        return low
