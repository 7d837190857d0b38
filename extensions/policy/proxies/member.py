"""One proxy as its own failures show it: healthy, resting, or on probation with a single request.

The rule it keeps: a proxy is judged by what it carries. A failure that is surely its own has it rest at once, two doubtful
ones in a row do; each rest in a row is twice as long as the one before; after a rest one request alone goes through, and an
answer to it ends the matter. A proxy that is well alone and fails under load carries half as much from then on, and more
again, a step at a time.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .address import Address
    from .cohort import Cohort

DOUBTS = 2
"""Doubtful failures in a row that make a rest: one may be the page's, and a tenth of a percent of resets must rest nobody."""
FIRST_REST_S = 1.0
LAST_REST_S = 60.0
REFUSED_US_REST_S = 30.0
"""First rest after a 407: no password mends itself within seconds."""
RELAPSE_S = 2.0
"""A proxy that fails so soon after it came back, with more than one request on it, carries less than it was given."""
GROW_AFTER = 20
"""Answers, times its limit, after which a lowered limit grows by one."""
MAX_STRAIN = 3


class Health(enum.Enum):
    """What a proxy may carry."""

    HEALTHY = "healthy"
    RESTING = "resting"
    TRYING = "trying"  # one request, to see


class Member:
    """One proxy of the pool.

    Args:
        address: Where it is.
        place: Its bit in the pool's sets.
        ceiling: Requests that it may carry at once, at least 1.
    """

    __slots__ = (
        "_answers", "_back_due", "_cut_from", "_doubts", "_rests", "address", "answered", "answered_due", "ceiling", "cohort",
        "failed", "gone", "health", "in_flight", "limit", "place", "probe_out", "rest_due",
        "strain", "unwelcome",
    )  # fmt: skip

    def __init__(self, *, address: Address, place: int, ceiling: int) -> None:
        self.address = address
        self.place = place
        self.ceiling = self.limit = ceiling
        self.health = Health.HEALTHY
        self.in_flight = 0
        self.rest_due = -math.inf  # until when it rests
        self.cohort: Cohort | None = None  # those that it fell with
        self.probe_out = False
        self.gone = False  # no longer in the list
        self.unwelcome = False  # it wants other credentials
        self.answered = self.failed = 0
        self.answered_due = -math.inf
        self.strain = 0  # 0 to MAX_STRAIN: how doubtful it has been of late
        self._doubts = 0
        self._rests = 0
        self._answers = 0
        self._cut_from = 0  # its limit before a cut that no answer has confirmed yet
        self._back_due = -math.inf

    @property
    def load(self) -> int:
        """Where it stands among others, less is better; -1: it takes nothing now."""
        if self.health is Health.HEALTHY:
            if self.in_flight >= self.limit:
                return -1
            # An idle one is asked as soon as any other, or it could never show that it is well.
            return self.in_flight + self.strain if self.in_flight else 0
        if self.health is Health.TRYING and not self.probe_out:
            return 0
        return -1

    def passed(self, now: float, *, probe: bool) -> bool:
        """The proxy has carried an answer. Returns whether that ended a row of rests."""
        self.answered += 1
        self.answered_due = now
        self._doubts = self._cut_from = 0
        self._answers += 1
        if self.strain and self._answers % 8 == 0:
            self.strain -= 1
        back = self.health is Health.TRYING and probe
        if back:
            self.health = Health.HEALTHY
            self.strain = 0
            self._back_due = now
            self.unwelcome = False
        elif self._rests and now - self._back_due > RELAPSE_S:
            self._rests = 0
        if self.limit < self.ceiling and self._answers >= GROW_AFTER * self.limit:
            self.limit += 1
            self._answers = 0
        return back

    def failure(
        self, now: float, *, sure: bool, probe: bool, sent_due: float, u: Callable[[], float]
    ) -> bool:
        """A request came to nothing through it. Returns whether it rests from now on."""
        self.failed += 1
        self.strain = min(MAX_STRAIN, self.strain + 1)
        if self.health is Health.RESTING or (self.health is Health.TRYING and not probe):
            return False  # sent before it fell
        if probe:
            self._rest(now, u)
            return True
        if sent_due < self._back_due:
            return False  # sent before its last rest
        self._doubts += 1
        if not sure and self._doubts < DOUBTS:
            return False
        if not sure and self.in_flight and now - self.answered_due <= RELAPSE_S:
            # It worked a moment ago, so that it may only have more than it takes; if it is dead the next two will tell.
            self._cut_from = self.limit
            self.limit = self.in_flight
            self._doubts = self._answers = 0
            return False
        if self._cut_from:
            self.limit, self._cut_from = self._cut_from, 0
        if now - self._back_due <= RELAPSE_S and self.limit > 1:
            self.limit = max(1, self.limit // 2)
            self._answers = 0
        self._rest(now, u)
        return True

    def _rest(self, now: float, u: Callable[[], float]) -> None:
        first_s = REFUSED_US_REST_S if self.unwelcome else FIRST_REST_S
        rest_s = min(LAST_REST_S, first_s * 2.0 ** min(self._rests, 10))
        self._rests += 1
        self._doubts = 0
        self.health = Health.RESTING
        self.rest_due = now + rest_s * (0.8 + 0.4 * u())
        self.probe_out = False

    def rest_again(self, now: float) -> None:
        """A probe that told nothing of the proxy: try again soon."""
        self.health = Health.RESTING
        self.rest_due = now + FIRST_REST_S
        self.probe_out = False

    def try_now(self) -> None:
        """Its rest is over: the next request is its probe."""
        self.health = Health.TRYING
        self.probe_out = False
