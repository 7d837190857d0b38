"""One domain's governor: asked when the next request may leave, told how each one ended.

It joins three small loops, each of which listens to one kind of news only, so that one signal
cannot corrupt another: refusals move the pace, failures and queueing the concurrency, and either
kind in a row the hold. Delays that robots.txt or the user set are floors under all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

from .blocked import Blocked
from .concurrency import Concurrency
from .handover import number
from .hold import Hold
from .law import LAW, Law
from .outcome import Outcome
from .pace import Pace
from .ticket import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .handover import Kept

NOTHING: Final = (0, 0, 0, -math.inf)
"""The news of a governor that has found nothing."""
_LONG_AGO_S: Final = 1e6


class DomainGovernor:
    """Decides for one domain; pure, so that the crawl and the lab run the same object.

    Args:
        max_concurrency: The project's ceiling, at least 1.
        min_interval_s: The user's own least time between two requests, 0 for none.
        u: Uniform draws from [0, 1), for jitter.
        law: The constants.
    """

    __slots__ = (
        "_ceiling",
        "_concurrency",
        "_crawl_delay_s",
        "_down",
        "_hold",
        "_last_sent_due",
        "_law",
        "_level_before",
        "_min_interval_s",
        "_pace",
        "_probe",
        "_row",
        "_seen_in_flight",
    )

    def __init__(
        self,
        *,
        max_concurrency: int,
        min_interval_s: float = 0.0,
        u: Callable[[], float],
        law: Law = LAW,
    ) -> None:
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency is {max_concurrency}: at least 1")
        if not 0.0 <= min_interval_s < math.inf:
            raise ValueError(f"min_interval_s is {min_interval_s}: 0 or more seconds")
        self._law = law
        self._ceiling = max_concurrency
        self._min_interval_s = min_interval_s
        self._crawl_delay_s = 0.0
        self._pace = Pace(law=law)
        self._concurrency = Concurrency(ceiling=max_concurrency, law=law)
        self._hold = Hold(u=u, law=law)
        self._probe: Ticket | None = None
        self._down = False
        self._row = 0
        self._level_before = 1
        self._last_sent_due = -math.inf
        self._seen_in_flight = 0

    # --- the question ------------------------------------------------------------------------

    def next_send_due(self, now: float, in_flight: int) -> float:
        """When the next request may leave; ask only while one waits, the asking shows demand.

        Returns:
            At most *now*: send. Finite: ask again then. inf: ask when a running request ends.
        """
        self._seen_in_flight = in_flight
        if self._hold.single:
            if in_flight == 0:
                self._probe = None
            elif self._probe is not None:
                return math.inf
        elif in_flight >= self._concurrency.limit:
            self._concurrency.wanted = True
            return math.inf
        due = self._hold.until_due
        delay_s = max(self._min_interval_s, self._crawl_delay_s)
        if delay_s:
            due = max(due, self._last_sent_due + delay_s)
        if due > now:
            return due
        return self._pace.due(now) if not self._hold.single else now

    def blocked_by(self, now: float, in_flight: int) -> Blocked:
        """What keeps the next request from leaving at *now*. Changes nothing."""
        hold = self._hold
        if hold.until_due > now:
            return Blocked.PARK if hold.parked else Blocked.DOWN if self._down else Blocked.HOLD
        if hold.single:
            if self._probe is not None and in_flight:
                return Blocked.PROBE
        elif in_flight >= self._concurrency.limit:
            at_ceiling = self._concurrency.limit >= self._ceiling
            return Blocked.CEILING if at_ceiling else Blocked.CONCURRENCY
        if self._last_sent_due + self._crawl_delay_s > now:
            return Blocked.CRAWL_DELAY
        if self._last_sent_due + self._min_interval_s > now:
            return Blocked.USER_DELAY
        return Blocked.NONE if hold.single or self._pace.ready(now) else Blocked.PACE

    # --- the news ----------------------------------------------------------------------------

    def sent(self, now: float) -> Ticket:
        """A request leaves; keep the ticket until it ended."""
        self._last_sent_due = now
        single = self._hold.single
        ticket = Ticket(
            sent_due=now,
            cut=self._pace.cuts,
            level=self._concurrency.cuts,
            above=self._pace.probing,
            pace=self._pace.sent(now),
            number=self._pace.number,
            alone=self._seen_in_flight == 0,
            probe=single,
        )
        if single:
            self._probe = ticket
        return ticket

    def abandoned(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002  part of the contract
        """The request never reached the host: no news, but another may ask in its place."""
        if self._probe is ticket:
            self._probe = None

    def finished(
        self,
        ticket: Ticket,
        outcome: Outcome,
        now: float,
        *,
        latency_s: float | None,
        retry_after_s: float | None = None,
    ) -> None:
        """A request ended at *now*, *latency_s* after it was sent, in *outcome*.

        Args:
            ticket: What `sent` gave for it.
            outcome: What the answer says of the host's capacity.
            now: Monotonic seconds.
            latency_s: Time to the answer in seconds; None where it says nothing of the host's load.
            retry_after_s: The host's own wait, over zero, or None.
        """
        if self._probe is ticket:
            self._probe = None
        if outcome is Outcome.SUCCESS or outcome is Outcome.IGNORED:
            self._answered(ticket, now, latency_s if outcome is Outcome.SUCCESS else None)
        elif outcome is Outcome.REFUSED:
            self._refused(ticket, now, told_s=retry_after_s)
        else:
            self._failed(ticket, now)
        if retry_after_s is not None:
            self._hold.obey(now, retry_after_s)

    def _answered(self, ticket: Ticket, now: float, latency_s: float | None) -> None:
        pace, hold = self._pace, self._hold
        pace.accepted(ticket, now)
        self._row = 0
        if hold.fails and ticket.cut == pace.cuts and (ticket.probe or not hold.single):
            pace.settle(ticket, now, fails=hold.fails, in_flight=self._seen_in_flight)
            if self._down:
                self._down = False
                self._concurrency.reopen(self._level_before)
            hold.passed()
        elif hold.parked and ticket.sent_due >= hold.until_due:
            hold.parked = False
        self._concurrency.passed(latency_s, ticket.level)

    def _refused(self, ticket: Ticket, now: float, *, told_s: float | None) -> None:
        pace, hold = self._pace, self._hold
        self._concurrency.warn()
        if ticket.cut < pace.cuts:
            pace.stale_refusal(ticket)
        elif hold.fails:
            pace.refused_again(ticket)
            hold.fail(now, rate=pace.rate)
        elif pace.refused(ticket, now, told_s=told_s):
            hold.fail(now, rate=pace.rate / (1.0 + pace.mixed))

    def _failed(self, ticket: Ticket, now: float) -> None:
        concurrency, hold = self._concurrency, self._hold
        fresh = ticket.level == concurrency.cuts  # what left before the last cut is old news
        if self._row == 0:
            self._level_before = concurrency.limit
        self._row += fresh
        if hold.fails:
            if ticket.probe or (ticket.cut == self._pace.cuts and not self._down):
                self._pace.refused_again(ticket)
                hold.fail(now, rate=self._pace.rate)
            return
        limit = concurrency.limit
        if fresh and limit == 1 and ticket.alone:
            if self._row <= self._law.suspect:
                self._refused(ticket, now, told_s=None)  # nothing beside it: not the concurrency
                return
        elif concurrency.failed(ticket.level):
            return
        if fresh and self._row > max(self._law.suspect, limit):
            self._down = True
            hold.silence(now)

    # --- floors and hints --------------------------------------------------------------------

    def set_floor(
        self,
        *,
        crawl_delay_s: float | None = None,
        min_interval_s: float | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        """Set what holds whatever is measured; None leaves a floor as it is."""
        if crawl_delay_s is not None:
            self._crawl_delay_s = max(0.0, crawl_delay_s)
        if min_interval_s is not None:
            self._min_interval_s = max(0.0, min_interval_s)
        if max_concurrency is not None:
            self._ceiling = max(1, max_concurrency)
            self._concurrency.set_ceiling(self._ceiling)

    def hint(
        self, now: float, *, remaining: int | None = None, reset_s: float | None = None
    ) -> None:
        """What the host says of its quota: with none remaining, wait for its reset."""
        if remaining is None or reset_s is None or not 0.0 < reset_s < math.inf:
            return
        if reset_s < self._law.longest_first_pause_s:
            return
        if remaining <= 0:
            self._hold.obey(now, reset_s)
        else:
            self._pace.quota(now, remaining / reset_s, reset_s)

    # --- state for the status page and the next run ------------------------------------------

    @property
    def held_until(self) -> float | None:
        """Monotonic time until which nothing is sent, or None."""
        until_due = self._hold.until_due
        return until_due if until_due > self._last_sent_due else None

    @property
    def pace(self) -> float | None:
        """Requests a second as of now, None without a limit found."""
        return None if self._pace.mark is None else self._pace.rate

    @property
    def mark(self) -> float | None:
        """The host's limit as believed, in requests a second."""
        return self._pace.mark

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight, 1 while single probes ask."""
        return 1 if self._hold.single else self._concurrency.limit

    @property
    def met_limit(self) -> bool:
        """The host has shown a limit: of its rate, or of what it works on at once."""
        return self._pace.mark is not None or self._concurrency.cuts > 0

    @property
    def crawl_delay_s(self) -> float:
        """Seconds between two requests that robots.txt asks for; 0 for none."""
        return self._crawl_delay_s

    @property
    def parked(self) -> bool:
        """The host asked for a wait over the longest that the law would take by itself."""
        return self._hold.parked

    def snapshot(self) -> dict[str, float | int | None]:
        """What a later run may start from; free of clocks, fit for JSON."""
        return {"mark": self._pace.mark, "concurrency": self._concurrency.limit}

    @classmethod
    def restore(
        cls,
        snapshot: Mapping[str, float | int | None],
        *,
        max_concurrency: int,
        min_interval_s: float = 0.0,
        u: Callable[[], float],
        law: Law = LAW,
    ) -> Self:
        """Start from what an earlier run learned, cautiously; impossible values are ignored."""
        governor = cls(max_concurrency=max_concurrency, min_interval_s=min_interval_s, u=u, law=law)
        mark = snapshot.get("mark")
        if mark is not None and 0.0 < mark < math.inf:
            governor._pace.start_from(float(mark))
        level = snapshot.get("concurrency")
        if level is not None and level >= 1:
            governor._concurrency.start_from(0.5 * level)
        return governor

    @property
    def news(self) -> tuple[float, ...]:
        """Changes when something was found that a new holder of the domain must know."""
        return (self._pace.cuts, self._concurrency.cuts, self._hold.fails, self._hold.until_due)

    @property
    def rest_s(self) -> float:
        """Seconds at the pace until more is tried: it goes down without any news."""
        return self._pace.rest_s

    def kept(self, now: float) -> Kept:
        """What a new holder of the domain goes on from, as `take_over` does: also what was only begun."""
        return {
            **self._pace.kept(now),
            **self._hold.kept(now),
            **self._concurrency.kept(),
            "down": int(self._down),
            "level_before": self._level_before,
            "since_s": min(now - self._last_sent_due, _LONG_AGO_S),
        }

    def take_over(self, kept: Kept, now: float, *, age_s: float, died: bool) -> None:
        """Go on, new as this governor is, from what the domain's holder before it kept *age_s* seconds ago.

        Args:
            kept: As `kept` gave it; empty where nothing was said.
            now: Monotonic seconds.
            age_s: Seconds since it was said.
            died: That holder was cut short: nobody knows when it asked last, so it did just now.
        """
        self._pace.take(kept, now, age_s)
        self._hold.take(kept, now, age_s)
        if kept:
            self._concurrency.take(kept)
        self._down = bool(kept.get("down"))
        self._level_before = max(1, int(number(kept, "level_before")))
        if died:
            self._last_sent_due = now
        elif kept:
            self._last_sent_due = now - number(kept, "since_s") - age_s

    def forgettable(self, now: float) -> bool:
        """Nothing was learned that a fresh governor would not know."""
        return (
            self._pace.mark is None
            and self._pace.cuts == 0
            and not self._hold.fails
            and self._hold.until_due <= now
            and self._concurrency.cuts == 0
            and self._last_sent_due + max(self._min_interval_s, self._crawl_delay_s) <= now
        )
