"""The pace: requests a second that a host takes, found by what it accepts and refuses.

No pace until the first refusal. Then: measure what was accepted from empty bucket to empty bucket
(the *mark*), sit just under it, hold until the refusals are paid for, try a little more. A refusal
below the mark says that the limit fell; one above it says where the limit is now.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .doubt import Doubt
from .handover import number
from .law import LAW, Law
from .limit import Cycle, Limit
from .meter import Meter
from .score import Score

if TYPE_CHECKING:
    from .handover import Kept
    from .ticket import Ticket

_LEAST = 1e-4  # requests a second: one in three hours


class Pace:
    """The rate loop of one domain. Times are monotonic seconds; never sleeps, never draws."""

    __slots__ = (
        "_after",
        "_clock_s",
        "_cut_above",
        "_cut_due",
        "_cut_number",
        "_cut_pace",
        "_doubt",
        "_hold_s",
        "_known_due",
        "_known_number",
        "_last_refused_due",
        "_law",
        "_lead",
        "_lead_s",
        "_limit",
        "_lost",
        "_lost_after",
        "_meter",
        "_next_due",
        "_paced",
        "_pause_s",
        "_quota_due",
        "_quota_rate",
        "_refused",
        "_rtt_s",
        "_scatter_s",
        "_score",
        "_start",
        "_step",
        "_told_s",
        "_tried",
        "_tried_due",
        "_waited",
        "_waited_s",
        "_window_s",
        "cuts",
        "number",
    )

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self._meter = Meter()
        self._limit = Limit(law=law)
        self._score = Score(noise=law.refusal_noise, step=law.refusal_step)
        self._doubt = Doubt(law=law)
        self.cuts = 0
        self._clock_s = 0.0  # time spent waiting for tokens since the last cut
        self._hold_s = 0.0
        self._step = law.probe_step
        self._next_due = -math.inf
        self._waited = False
        self._waited_s = 0.0  # time spent waiting for tokens in this cycle
        self._refused = 0
        self._cut_due: float | None = None  # when the request left whose refusal made the cut
        self._known_due = -math.inf  # when that refusal became known
        self._after = 0  # accepted requests that left between the two
        self._cut_above = False
        self._cut_pace = math.inf
        self._paced = False
        self._pause_s = 0.0  # the pause before this cycle
        self._last_refused_due = -math.inf
        self._told_s = 0.0
        self._window_s = 0.0  # how long the host stays shut once it is: it counts by the window
        self._rtt_s = 0.0
        self._scatter_s = 0.0  # by how much answers' times differ from that
        self.number = 0  # of the last request that left
        self._start = 0  # number of the request that began this cycle
        self._cut_number = 0  # ... and of the one whose refusal ended it
        self._known_number = 0  # ... and of the last that left before that was known
        self._lost = 0  # refused between the two
        self._lost_after = 0
        self._lead = 0  # accepted between the cut before this cycle and the time it was known
        self._lead_s = 0.0
        self._tried_due = math.inf  # when the first request left above the mark
        self._tried = 0  # accepted requests since
        self._quota_rate = math.inf
        self._quota_due = -math.inf

    @property
    def mark(self) -> float | None:
        """The believed limit, requests a second."""
        return self._limit.mark

    # --- sending -----------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Requests a second that may be sent now; inf before the first refusal."""
        mark, law = self.mark, self._law
        if mark is None:
            return math.inf
        if self._doubt.active:
            return law.quarter * mark
        probing_s = self._clock_s - self._hold_s
        if probing_s < 0.0:
            return law.sit * mark
        doubling_s = max(
            law.probe_doubling_s,
            law.probe_doubling_requests / mark,
            self._rtt_s,
            law.probe_window * self._window_s,
        )
        return mark * (1.0 + self._step * math.exp2(min(probing_s / doubling_s, 60.0)))

    def ready(self, now: float) -> bool:
        """Whether a token is there; changes nothing."""
        return self._next_due <= now

    def due(self, now: float) -> float:
        """When the next request may leave; asked only while one waits, so it shows demand."""
        if self._next_due <= now:
            return now
        self._waited = True
        return self._next_due

    @property
    def probing(self) -> bool:
        """Whether requests now leave at more than the mark; always so before the first refusal."""
        return self.mark is None or (self._clock_s >= self._hold_s and not self._doubt.active)

    def sent(self, now: float) -> float:
        """Take a token; the rate at which this request leaves."""
        self.number += 1
        rate, law = self.rate, self._law
        if now < self._quota_due:
            rate = min(rate, self._quota_rate)
        if rate is math.inf:
            return rate
        interval_s = 1.0 / rate
        if self._tried_due is math.inf and self.probing:
            self._tried_due = now
        if self._waited:  # the clock of probes runs only while requests really wait for tokens
            self._clock_s += interval_s
            self._waited_s += interval_s
            self._waited = False
        saved_s = (min(law.max_burst, max(1.0, law.burst_s * rate)) - 1.0) * interval_s
        self._next_due = max(self._next_due, now - saved_s) + interval_s
        return rate

    def quota(self, now: float, rate: float, for_s: float) -> None:
        """The host's own word: no more than *rate* for *for_s* seconds. Only ever a bound."""
        self._quota_rate = max(rate, _LEAST)
        self._quota_due = now + for_s

    # --- learning ----------------------------------------------------------------------------

    def accepted(self, ticket: Ticket, now: float) -> None:
        """A request passed the limiter."""
        sent_due = ticket.sent_due
        over_s = now - sent_due - self._rtt_s
        self._rtt_s += 0.1 * over_s
        self._scatter_s += 0.1 * (abs(over_s) - self._scatter_s)
        self._meter.accept(sent_due)
        if self._cut_due is not None and ticket.number > self._cut_number:
            self._after += 1
        if sent_due >= self._tried_due:
            self._tried += 1
        self._score.passed()
        if self._doubt.watching and self._doubt.passed():
            self._judge(now)

    def stale_refusal(self, ticket: Ticket) -> None:
        """A refusal of a request from before the last cut: one burst is one step."""
        self._refused += 1
        if self._cut_due is not None and ticket.number > self._cut_number:
            self._lost_after += ticket.number <= self._known_number
        elif ticket.number >= self._start:
            self._lost += 1

    @property
    def mixed(self) -> float:
        """Requests by which what arrives in a time may differ from what left: ways differ."""
        on_way = (self.mark or 0.0) * self._scatter_s
        return min(on_way, math.sqrt(on_way))

    def refused(self, ticket: Ticket, now: float, *, told_s: float | None) -> bool:
        """Note a fresh refusal; True if it convicts the pace, so that a pause is due.

        Args:
            ticket: The refused request's.
            now: When the refusal became known.
            told_s: Its Retry-After: the host itself says that this is a limit.
        """
        self._refused += 1
        self._lost += 1
        score, law = self._score.failed(), self._law
        above = ticket.above
        testing, noisy = self._doubt.active, self._score.noise > law.refusal_noise
        if told_s is None:
            slow = ticket.pace <= 1.01 * law.quarter * (self.mark or math.inf)
            lone = slow if testing else not slow and self._meter.total >= law.apart
            if lone and not above and not noisy and self._doubt.refused():
                self._judge(ticket.sent_due)
            needed = 2.0 * law.score if testing else law.score if noisy else 0.0
            if score < needed:
                return False
        self.cuts += 1
        self._score.clear()
        if told_s is not None or testing:
            self._doubt.drop()
        self._cut_due = self._last_refused_due = ticket.sent_due
        self._cut_number = ticket.number
        self._lost_after = 0
        self._known_number = self.number
        self._known_due = now
        self._after = 0
        self._cut_above = above
        self._cut_pace = ticket.pace
        self._told_s = told_s or 0.0
        since_due = self._meter.since_due
        self._paced = since_due is not None and (
            self._waited_s >= law.quarter * (ticket.sent_due - since_due)
        )
        self._clock_s, self._hold_s = 0.0, math.inf
        if self.mark is None:
            self._limit.mark = self._limit.guess(self._meter, ticket.sent_due)
        return True

    def refused_again(self, ticket: Ticket) -> None:
        """The request that asked after the pause was refused too; its companions are old news."""
        self._refused += 1
        self.cuts += 1
        self._last_refused_due = ticket.sent_due

    def start_from(self, mark: float) -> None:
        """Take an earlier run's mark, and look for more at once."""
        self._limit.mark = mark

    @property
    def rest_s(self) -> float:
        """Seconds of waiting for tokens until more is tried; inf in the middle of a cut, 0 without a limit."""
        return max(0.0, self._hold_s - self._clock_s)

    def kept(self, now: float) -> Kept:
        """What a new holder of the domain needs of it; in the middle of a cut, what can be believed of it by then."""
        mark, law = self.mark, self._law
        if mark is None:
            return {}
        rest_s = self.rest_s
        if self._cut_due is not None:
            if not self._cut_above or self._cut_pace is math.inf:
                mark *= law.quarter
            rest_s = min(self._refused / law.cost_share, max(law.few, self._meter.total)) / mark
        kept = {"mark": mark, "rest_s": rest_s, "noise": self._score.noise, **self._limit.kept()}
        if self._window_s:
            kept["window_s"] = self._window_s
        if now < self._quota_due:
            kept |= {"quota": self._quota_rate, "quota_s": self._quota_due - now}
        return kept

    def take(self, kept: Kept, now: float, age_s: float) -> None:
        """Go on from what another holder kept *age_s* seconds ago; its rest before a probe is kept in whole."""
        mark = number(kept, "mark")
        if mark:
            self._limit.take(kept, mark)
            self._hold_s = number(kept, "rest_s")
            self._window_s = number(kept, "window_s")
            noise = number(kept, "noise")
            if self._law.refusal_noise < noise < 1.0 - self._law.refusal_step:
                self._score.learn(noise)
        if number(kept, "quota") and number(kept, "quota_s") > age_s:
            self.quota(now, number(kept, "quota"), number(kept, "quota_s") - age_s)

    def settle(self, ticket: Ticket, now: float, *, fails: int, in_flight: int) -> None:
        """The first request since the cut passed: measure the cycle, begin the next.

        Args:
            ticket: That request's.
            now: When its answer came; from now on requests leave at the pace.
            fails: Refusals in a row that the pause took, 1 for the cut itself.
            in_flight: Requests that may still be without an answer.
        """
        meter, cut_due, old, success_due = self._meter, self._cut_due, self.mark, ticket.sent_due
        if cut_due is None or old is None:  # the host was silent: that time measures nothing
            meter.restart(success_due)
            self._start, self._lost = ticket.number, 0
            return
        self._cut_due = None
        self.cuts += 1  # what left under the old mark is judged by no new one
        since_due = meter.since_due
        if since_due is None or since_due >= success_due:
            since_due = cut_due
        end_due = success_due
        if fails > 1 and not self._told_s:  # it opened somewhere between the last two questions
            end_due = 0.5 * (success_due + self._last_refused_due)
        accepted = meter.total - self._after
        unheard = self._cut_number - self._start - self._lost - accepted
        accepted += max(0, min(unheard, in_flight))  # as good as accepted
        cycle = Cycle(
            meter=meter,
            since_due=since_due,
            cut_due=cut_due,
            known_due=min(self._known_due, end_due),
            end_due=end_due,
            accepted=accepted + 1,
            pause_s=self._pause_s,
            lead=self._lead,
            lead_s=self._lead_s,
            pace=self._cut_pace,
            paced=self._paced,
            told=self._told_s > 0.0,
            noise=self._score.noise,
            mixed=self.mixed,
        )
        law = (
            self._law
        )  # closed for longer than a look takes it is no bucket: it counts by the window
        shut = fails >= law.single_probe_fails and cycle.blocked_s > law.probe_doubling_s
        self._window_s = max(law.quarter * self._window_s, cycle.blocked_s if shut else 0.0)
        same = False
        if self._cut_pace is math.inf:
            self._limit.first(cycle, shut=shut)
        elif shut:
            self._limit.shut(cycle, above=self._cut_above)
        elif self._cut_above:
            same = self._limit.risen(cycle)
        else:
            self._limit.fallen(cycle)
        self._pause_s = success_due - cycle.known_due
        self._lead_s = cycle.known_due - cut_due
        left = self._known_number - self._cut_number - self._lost_after
        self._lead = max(0, min(left, self._after - 1 + in_flight))
        self._start, self._lost = self._known_number + 1, 0
        self._relearn(self._refused / (meter.total + self._refused))
        self._rest(cycle.blocked_s, same=same, old=old)
        meter.restart(success_due)
        self._next_due = now + 1.0 / self.rate
        self._waited = False
        self._waited_s = 0.0

    def _rest(self, blocked_s: float, *, same: bool, old: float) -> None:
        """Hold until what the last look cost is paid for; no longer than it was known before.

        A mark far above the *old* one is known only by what passed above that.
        """
        law, mark = self._law, self.mark or _LEAST
        cost = max(self._refused, blocked_s * mark)
        most = max(law.max_hold_s, 1.0 / (law.cost_share * mark))
        if not same:
            known = self._tried if law.quarter * mark > old else self._meter.total
            most = min(most, max(law.few, known) / mark)
        self._hold_s = min(cost / (law.cost_share * mark), most)
        self._clock_s = 0.0
        self._step = law.probe_step
        self._refused = 0
        self._tried, self._tried_due = 0, math.inf

    def _relearn(self, share: float) -> None:
        """A cycle's *share* of refusals may show that there is less noise, or no noise but a limit."""
        law, noise = self._law, self._score.noise
        if noise <= law.refusal_noise:
            return
        long = self._meter.total > law.suspect_within
        if share > law.refusal_step or (long and share < 0.5 * noise):
            below = share if share < noise else 0.0
            self._score.learn(max(below, law.refusal_noise))

    def _judge(self, now: float) -> None:
        """Act on the verdict of the doubt, if there is one."""
        noise = self._doubt.verdict()
        if noise is None or self.mark is None:
            return
        self._meter.restart(now)  # a cycle that was partly slower measures nothing
        self._start, self._lost = self.number, 0
        self._waited_s = 0.0
        self._limit.refilled()
        if noise > 0.0:  # refused as often when slower: not ours
            self._score.learn(max(noise, self._law.refusal_noise))
            self._clock_s = self._hold_s = 0.0
            self._step = 10.0 * self._law.probe_step
        else:
            self._score.learn(self._law.refusal_noise)
            self._clock_s = 0.0
