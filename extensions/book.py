"""What became of the requests, counted as it happens: in all, by domain, by reason.

The rule it keeps: counting costs a few additions an event, never a scan, and takes bounded memory;
the totals are committed with the changes that they count, so that they are true after a crash.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .domainrow import DomainRow
from .policy.outcome import Outcome
from .policy.outcomes import Outcomes, Words
from .policy.paceline import PaceLine

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ROWS = 50_000
"""Domains kept one by one. Over it those that are done and lost nothing are counted together."""
MAX_TRACED = 10_000
"""Domains whose last outcomes and line of pace are kept: 10 MB. Over it, those that are done lose theirs."""
MAX_REASONS = 200
OTHER = "other"


@dataclass(slots=True)
class Reason:
    """Dead letters of one reason."""

    count: int = 0
    domains: set[str] = field(default_factory=set)
    last_at: float = 0.0
    example: str = ""


class Event(NamedTuple):
    """One line of "What changed"."""

    at: float
    domain: str | None
    text: str


TOTALS = (
    "asked", "got", "dead", "skipped", "answers", "refused", "overloaded", "retries_out",
    "retries_in", "dead_items", "errors", "results", "seeds",
)  # fmt: skip


class Book:
    """All counters of one crawl. The scheduler and the middlewares write, what shows it reads.

    Its attributes are the totals of `TOTALS`; a resumed job's go on from what was committed.
    """

    def __init__(self) -> None:
        self.asked = self.got = self.dead = self.skipped = 0
        self.answers = self.refused = self.overloaded = 0
        self.retries_out = self.retries_in = 0
        self.links = self.seeds = 0
        self.seeds_before = 0  # taken on by earlier processes of this job
        self.seeds_again = 0  # yielded by `start()` in this one, and known
        self.results = 0  # committed; those that wait are not in the sinks yet
        self.delayed: dict[str, int] = {}  # by domain
        self.dead_items = 0
        self.errors = 0
        self.rows: dict[str, DomainRow] = {}
        self.domains = 0  # ever seen
        self.reasons: dict[str, Reason] = {}
        self.skips: dict[str, int] = {}
        self.bugs: dict[str, int] = {}  # callback errors by exception and place
        self.events: deque[Event] = deque(maxlen=200)
        self.latency_buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.latency_sum_s = 0.0
        self.words = Words()
        self.counts_from_at: float | None = None  # the moment that outcomes are counted from
        self._traced = 0
        self.held_s = (
            0.0  # time in which we held the crawl ourselves: it counts for no domain's rate
        )

    def row(self, name: str) -> DomainRow:
        """The row of a domain; a new one where there is none."""
        row = self.rows.get(name)
        if row is None:
            if len(self.rows) >= MAX_ROWS:
                self._fold()
            row = self.rows[name] = DomainRow(name)
            self.domains += 1
        return row

    # -- what happens ------------------------------------------------------------------------------

    def taken(self, domain: str, count: int = 1) -> None:
        """So many distinct requests were taken on."""
        self.asked += count
        self.row(domain).asked += count

    def put_off(self, domain: str) -> None:
        """A request waits for its time."""
        self.delayed[domain] = self.delayed.get(domain, 0) + 1

    def came_due(self, domain: str) -> None:
        """Its time has come. One of an earlier process was not counted then, and is not now."""
        left = self.delayed.get(domain, 0) - 1
        if left > 0:
            self.delayed[domain] = left
        else:
            self.delayed.pop(domain, None)

    def replaced(self, domain: str) -> None:
        """A retry or a redirect goes on in a request's place: it was counted twice."""
        self.asked -= 1
        self.row(domain).asked -= 1

    def parsed(self, domain: str, *, now: float, now_at: float) -> None:
        """A request ended as a page."""
        self.got += 1
        row = self.row(domain)
        row.got += 1
        row.last_at = now_at
        row.goodput.count(now - self.held_s)

    def left_out(self, domain: str, reason: str) -> None:
        """A request was skipped on purpose."""
        self.skipped += 1
        self.row(domain).skipped += 1
        key = reason if reason in self.skips or len(self.skips) < MAX_REASONS else OTHER
        self.skips[key] = self.skips.get(key, 0) + 1

    def buried(self, domain: str, reason: str, *, url: str, now_at: float) -> bool:
        """A request became a dead letter; is it the first of this reason on this domain?"""
        self.dead += 1
        self.row(domain).dead += 1
        return self._reason(domain, reason, url, now_at)

    def buried_item(self, domain: str, reason: str, *, url: str, now_at: float) -> bool:
        """An item became a dead letter; is it the first of this reason on this domain?"""
        self.dead_items += 1
        return self._reason(domain, reason, url, now_at)

    def failed_in_spider(self, place: str) -> None:
        """A callback raised: *place* is the exception's type and the innermost frame."""
        self.errors += 1
        key = place if place in self.bugs or len(self.bugs) < MAX_REASONS else OTHER
        self.bugs[key] = self.bugs.get(key, 0) + 1

    def answered(
        self,
        domain: str,
        outcome: Outcome,
        *,
        latency_s: float,
        note: str = "",
        what: str = "",
        now_at: float = 0.0,
        held_s: float = 0.0,
    ) -> None:
        """A request came back from its host, or did not.

        Args:
            domain: Whose.
            outcome: How it went.
            latency_s: After how long.
            note: What a refusal or failure said.
            what: Its status, or the name of the failure.
            now_at: When.
            held_s: For how long the domain is asked nothing because of it.
        """
        row = self.row(domain)
        if note:
            row.note = note
        self.answers += 1
        row.answers += 1
        if outcome is Outcome.REFUSED:
            self.refused += 1
            row.refused += 1
        elif outcome is Outcome.OVERLOADED:
            self.overloaded += 1
        row.took(latency_s)
        self.latency_sum_s += latency_s
        self.latency_buckets[bisect_left(LATENCY_BOUNDS_S, latency_s)] += 1
        kept = row.outcomes if row.outcomes is not None else self._trace(row, now_at)
        if kept is not None:
            if self.counts_from_at is None:
                self.counts_from_at = now_at
            after_s, word = now_at - self.counts_from_at, self.words.number(what or outcome.value)
            kept.add(after_s, word, outcome, latency_s=latency_s, held_s=held_s)

    def changed(self, at: float, domain: str | None, text: str) -> None:
        """Keep a line for "What changed"."""
        self.events.append(Event(at, domain, text))

    # -- over a restart ----------------------------------------------------------------------------

    def totals(self, *, results: int = 0) -> dict[str, int]:
        """The totals, to be committed with the changes they count and with so many new *results*."""
        totals: dict[str, int] = {name: getattr(self, name) for name in TOTALS}
        totals["results"] += results
        return totals

    def restore(self, totals: Mapping[str, Any]) -> None:
        """Go on from an earlier process's totals."""
        for name in TOTALS:
            value = totals.get(name, 0)
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)
        self.seeds_before = self.seeds

    def reconcile(self, left: int) -> int:
        """Make the sum come out after a crash, where *left* requests are still to come.

        What was in memory only (it could not be stored) died with the process.

        Returns:
            How many requests are gone.
        """
        gone = self.asked - self.got - self.dead - self.skipped - left
        self.asked -= gone
        return max(0, gone)

    def unread(self, left: int) -> int:
        """How many new seeds the *left* ones hold that `start()` has not yielded yet.

        A resumed job's `start()` begins anew, and yields first what earlier processes have taken on.
        """
        if self.seeds > self.seeds_before:
            return left
        return max(0, left - max(0, self.seeds_before - self.seeds_again))

    # -- bounds ------------------------------------------------------------------------------------

    def _reason(self, domain: str, reason: str, url: str, now_at: float) -> bool:
        key = reason if reason in self.reasons or len(self.reasons) < MAX_REASONS else OTHER
        kept = self.reasons.setdefault(key, Reason())
        kept.count += 1
        kept.last_at = now_at
        if not kept.example:
            kept.example = url[:2000]
        if domain in kept.domains:
            return False
        if len(kept.domains) < MAX_ROWS:
            kept.domains.add(domain)
        return True

    def _trace(self, row: DomainRow, now_at: float) -> Outcomes | None:
        """A place for the outcomes of *row*, while there is room; its line begins."""
        if self._traced >= MAX_TRACED:
            if self.domains % 1000:
                return None  # to look for room costs a look at every row
            for other in self.rows.values():
                if other.state == "done":
                    other.outcomes = other.line = None
            self._traced = sum(other.outcomes is not None for other in self.rows.values())
            if self._traced >= MAX_TRACED:
                return None
        self._traced += 1
        row.outcomes, row.line = Outcomes(), PaceLine(now_at, row.got)
        return row.outcomes

    def _fold(self) -> None:
        """Drop the rows of domains that are done and lost nothing, the oldest first."""
        goal = MAX_ROWS - MAX_ROWS // 10
        done = [n for n, row in self.rows.items() if row.state == "done" and not row.dead]
        for name in done[: len(self.rows) - goal]:
            del self.rows[name]


LATENCY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0)
