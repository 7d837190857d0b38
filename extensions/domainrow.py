"""One domain as it is shown: its counters, and its state at the last look.

The rule it keeps: a row takes little room, since there may be fifty thousand.
"""

from __future__ import annotations

import statistics
from array import array
from typing import TYPE_CHECKING

from .policy.eta import Goodput
from .policy.outcome import Outcome

if TYPE_CHECKING:
    from .policy.outcomes import Outcomes
    from .policy.paceline import PaceLine

LATENCIES = 15


class DomainRow:
    """One domain as it is shown. The counters are exact; the state is that of the last look."""

    __slots__ = (
        "answers", "asked", "cause", "dead", "delayed", "goodput", "got", "growing",
        "hold_since_at", "hold_told", "in_flight", "last_at", "latencies", "left_s", "limit", "line", "name", "next_at",
        "note", "outcomes", "pace", "pending", "refused", "seen_pass", "skipped", "state", "why",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = self.got = self.dead = self.skipped = 0
        self.answers = self.refused = 0
        self.goodput = Goodput()
        self.latencies: array[float] | None = None
        self.pending = self.delayed = self.in_flight = 0
        self.limit = 0
        self.pace: float | None = None
        self.next_at: float | None = None
        self.left_s: float | None = None
        self.state = "ready"
        self.cause = "none"
        self.why = ""
        self.note = ""  # what the host said with its last refusal, or how it failed
        self.outcomes: Outcomes | None = None
        self.line: PaceLine | None = None
        self.growing = False
        self.hold_since_at: float | None = None
        self.hold_told = False  # in the log
        self.last_at = 0.0
        self.seen_pass = 0

    @property
    def left(self) -> int:
        """Requests still to come."""
        return self.pending + self.delayed + self.in_flight

    @property
    def refused_share(self) -> float:
        """Refusals among its answers, in 0..1."""
        return self.refused / self.answers if self.answers else 0.0

    @property
    def median_s(self) -> float | None:
        """Median of the last few latencies in seconds."""
        return statistics.median(self.latencies) if self.latencies else None

    def recent(self) -> tuple[int, int]:
        """How many of its last outcomes are kept, and how many of them are refusals."""
        kept = self.outcomes
        return (0, 0) if kept is None else (len(kept), kept.count(Outcome.REFUSED))

    def took(self, latency_s: float) -> None:
        """Remember how long an answer took."""
        if self.latencies is None:
            self.latencies = array("f")
        if len(self.latencies) < LATENCIES:
            self.latencies.append(latency_s)
        else:
            self.latencies[self.answers % LATENCIES] = latency_s
