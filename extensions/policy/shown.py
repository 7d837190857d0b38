"""Which code is shown, since when, and how long each was: what holds the crawl back, without flicker.

The rule it keeps: what is shown has held for some seconds and stays for some, but a fact or somebody's wish is shown at
once; and every second is spent in exactly one code.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from .bottleneck import LEVELS, RULES, Code, Level, Readings, code_of

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_ONCE = frozenset(rule.code for rule in RULES[:7])


class Span(NamedTuple):
    """A time in which one code was shown."""

    code: Code
    start_at: float
    end_at: float


class Bottleneck:
    """Which code is shown, since when, and how long each was: fed once a second.

    A code must hold in 3 of the last 5 samples to be shown and stays for 5 seconds at least; those
    of `AT_ONCE` (they report a fact or somebody's wish) take effect and end at once, and the first page ends the start.

    Args:
        max_spans: How many spans are kept for the ribbon; the oldest go first.
    """

    WINDOW, NEEDED, STAYS_S = 5, 3, 5.0

    def __init__(self, *, max_spans: int = 4096) -> None:
        self.code: Code | None = None
        self.since_at = 0.0
        self.seconds: dict[Code, float] = {}
        self.spans: deque[Span] = deque(maxlen=max_spans)
        self._recent: deque[Code] = deque(maxlen=self.WINDOW)
        self._shown_for_s = 0.0

    def sample(self, readings: Readings, *, elapsed_s: float) -> bool:
        """Take one sample; did the shown code change?

        Args:
            readings: The counters now.
            elapsed_s: Monotonic seconds since the last sample, spent in the code shown until now.
        """
        if self.code is not None:
            self._spend(self.code, max(0.0, elapsed_s), readings.now_at)
        found = code_of(readings)
        self._recent.append(found)
        if found == self.code or not self._may_change(found):
            return False
        self.code, self.since_at, self._shown_for_s = found, readings.now_at, 0.0
        self.spans.append(Span(found, readings.now_at, readings.now_at))
        return True

    def _may_change(self, found: Code) -> bool:
        if self.code in {None, Code.STARTING} or AT_ONCE & {self.code, found}:
            return True
        return self._shown_for_s >= self.STAYS_S and self._recent.count(found) >= self.NEEDED

    def _spend(self, code: Code, elapsed_s: float, now_at: float) -> None:
        self._shown_for_s += elapsed_s
        self.seconds[code] = self.seconds.get(code, 0.0) + elapsed_s
        last = self.spans[-1]
        self.spans[-1] = Span(last.code, last.start_at, max(last.end_at, now_at))

    @property
    def level(self) -> Level:
        """The level of the code shown."""
        return LEVELS[self.code] if self.code is not None else Level.OK

    def snapshot(self) -> dict[str, float]:
        """The seconds by code, for a job that goes on in another process."""
        return {str(code): round(spent, 1) for code, spent in self.seconds.items()}

    def restore(self, seconds: Mapping[str, float]) -> None:
        """Add the seconds of an earlier process; codes of another version are left out."""
        known = {str(code): code for code in Code}
        for name, spent in seconds.items():
            if name in known and spent >= 0:
                code = known[name]
                self.seconds[code] = self.seconds.get(code, 0.0) + spent
