"""The pace: requests a second that a host takes, found by what it accepts and refuses.

No pace until the first refusal. Then: measure what was accepted from empty bucket to empty bucket
(the *mark*), sit just under it, hold until the refusals are paid for, try a little more. A refusal
below the mark says that the limit fell; one above it says where the limit is now.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .law import LAW, Law
from .meter import Meter
from .score import Score

if TYPE_CHECKING:
    from .ticket import Ticket

_TRUSTED = 5  # accepted requests in a cycle from which on its rate is believed below half the mark
_LEAST = 1e-4  # requests a second: one in three hours


class Pace:
    """The rate loop of one domain. Times are monotonic seconds; never sleeps, never draws."""

    __slots__ = (
        "_burst",
        "_clock_s",
        "_cut_above",
        "_cut_due",
        "_first",
        "_hold_s",
        "_law",
        "_meter",
        "_next_due",
        "_pace_at_cut",
        "_refused",
        "_score",
        "_waited",
        "cuts",
        "mark",
    )

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self._meter = Meter()
        self._score = Score(noise=law.refusal_noise, step=law.refusal_step)
        self.mark: float | None = None
        self.cuts = 0
        self._burst: float | None = None
        self._first: tuple[int, float] | None = None
        self._clock_s = 0.0
        self._hold_s = 0.0
        self._next_due = -math.inf
        self._waited = False
        self._refused = 0
        self._cut_due: float | None = None
        self._cut_above = False
        self._pace_at_cut = math.inf

    # --- sending -----------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Requests a second that may be sent now; inf before the first refusal."""
        mark, law = self.mark, self._law
        if mark is None:
            return math.inf
        probing_s = self._clock_s - self._hold_s
        if probing_s < 0.0:
            return law.sit * mark
        doublings = probing_s / max(law.probe_doubling_s, law.probe_doubling_requests / mark)
        return mark * (1.0 + law.probe_step * math.exp2(min(doublings, 60.0)))

    def due(self, now: float) -> float:
        """When the next request may leave; asked only while one waits, so it shows demand."""
        if self.mark is None or self._next_due <= now:
            return now
        self._waited = True
        return self._next_due

    def ready(self, now: float) -> bool:
        """Whether a token is there; changes nothing."""
        return self.mark is None or self._next_due <= now

    def sent(self, now: float) -> float:
        """Take a token; the rate at which this request leaves."""
        rate = self.rate
        if rate is math.inf or self.mark is None:
            return rate
        interval_s = 1.0 / rate
        if self._waited:  # the clock of probes runs only while requests really wait for tokens
            self._clock_s += interval_s
            self._waited = False
        saved_s = (min(8.0, max(1.0, 0.1 * rate)) - 1.0) * interval_s
        self._next_due = max(self._next_due, now - saved_s) + interval_s
        return rate

    # --- learning ----------------------------------------------------------------------------

    def accepted(self, sent_due: float) -> None:
        """A request that was sent at *sent_due* passed the limiter."""
        self._meter.accept(sent_due)
        self._score.passed()

    def stale_refusal(self) -> None:
        """A refusal of a request from before the last cut: one burst is one step."""
        self._refused += 1

    def refused(self, ticket: Ticket, *, told: bool) -> bool:
        """Note a fresh refusal; True if it convicts the pace, so that a pause is due.

        Args:
            ticket: The refused request's.
            told: It carried a Retry-After: the host itself says that this is a limit.
        """
        self._refused += 1
        score = self._score.failed()
        above = self.mark is None or ticket.pace > self.mark
        if not (told or above or score >= self._law.refusal_score):
            if self.mark is not None:
                self.mark *= self._law.shade
            return False
        self.cuts += 1
        self._score.clear()
        self._cut_due = ticket.sent_due
        self._cut_above = above
        self._pace_at_cut = ticket.pace
        self._clock_s, self._hold_s = 0.0, math.inf
        if self.mark is None:
            self.mark = self._first_mark(ticket.sent_due)
        return True

    def refused_again(self) -> None:
        """The request that asked after the pause was refused too; its companions are old news."""
        self._refused += 1
        self.cuts += 1

    def start_from(self, mark: float) -> None:
        """Take an earlier run's mark, and look for more at once."""
        self.mark = mark

    def settle(self, success_due: float, now: float, *, fails: int) -> None:
        """The first request since the cut passed: measure the cycle, begin the next.

        Args:
            success_due: When that request was sent.
            now: When its answer came; from now on requests leave at the pace.
            fails: Refusals in a row that the pause took, 1 for the cut itself.
        """
        cut_due = self._cut_due
        meter = self._meter
        if cut_due is None or self.mark is None:  # the host was silent: that time measures nothing
            meter.restart(success_due)
            return
        self._cut_due = None
        since_due = meter.since_due
        if since_due is None or since_due >= success_due:
            since_due = cut_due
        blocked_s = success_due - cut_due
        whole = meter.total / max(success_due - since_due, 1e-3)
        shut = blocked_s > 3.0 / self.mark and fails >= self._law.single_probe_fails
        if self._pace_at_cut is math.inf:
            first = self._first_mark(cut_due)
            self._first = (meter.total, max(cut_due - since_due, 1e-3))
            self.mark = max(min(first, whole), _LEAST) if shut else first
        else:
            self.mark = self._next_mark(self.mark, whole, cut_due, shut=shut)
            if not shut and self._first is not None and self._burst is None:
                count, took_s = self._first
                self._burst = max(0.0, count - self.mark * took_s)
        self._hold(blocked_s)
        meter.restart(success_due)
        self._next_due = now + 1.0 / self.rate
        self._waited = False

    def _first_mark(self, cut_due: float) -> float:
        """What was accepted a second just before the first refusal, the host's burst included."""
        since_due = self._meter.since_due
        took_s = 1.0 if since_due is None else min(1.0, max(cut_due - since_due, 0.2))
        return max(self._meter.accepted_rate(cut_due, over_s=took_s), 1.0)

    def _next_mark(self, old: float, whole: float, cut_due: float, *, shut: bool) -> float:
        if shut:
            return max(min(old * 1.1, whole), _LEAST)
        if not self._cut_above:
            floor = 0.5 * old if self._meter.total >= _TRUSTED else 0.75 * old
            return min(0.95 * old, max(floor, whole))
        burst = self._burst
        if burst is None:
            bound = math.sqrt(old * min(self._pace_at_cut, 64.0 * old))
        else:
            bound = self._meter.least_rate(cut_due, burst=burst)
        found = min(max(whole, bound), 0.97 * self._pace_at_cut)
        return found if found > old else max(0.5 * (old + found), 0.97 * old)

    def _hold(self, blocked_s: float) -> None:
        law, mark = self._law, self.mark
        assert mark is not None  # noqa: S101  for the type checker: settle has just set it
        cost_s = max(self._refused / mark, blocked_s)
        self._hold_s = min(
            max(cost_s / law.cost_share, law.min_hold_s), max(law.max_hold_s, 100.0 / mark)
        )
        self._clock_s = 0.0
        self._refused = 0
