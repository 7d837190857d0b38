"""The hold: nothing goes to a host for a while, then one request asks for all.

One hold a domain, whatever caused it: a refusal (the host's own Retry-After, or a wait that grows
with each refusal in a row) or a silence (failures only). Several in a row leave a single probe.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .handover import number
from .law import LAW, Law

if TYPE_CHECKING:
    from collections.abc import Callable

    from .handover import Kept


class Hold:
    """Until when a domain is left alone, and how often in a row that was for nothing."""

    __slots__ = ("_law", "_u", "fails", "parked", "until_due")

    def __init__(self, *, u: Callable[[], float], law: Law = LAW) -> None:
        self._law = law
        self._u = u
        self.fails = 0
        self.until_due = -math.inf
        self.parked = False

    @property
    def single(self) -> bool:
        """Only one request at a time may ask."""
        return self.fails >= self._law.single_probe_fails

    def fail(self, now: float, *, rate: float) -> None:
        """One more failure in a row at *now*; wait longer than for the one before."""
        law = self._law
        self.fails += 1
        first_s = min(max(1.0 / rate, law.first_pause_s), law.longest_first_pause_s)
        grown = law.pause_growth ** min(self.fails - 1, 60)
        wait_s = min(first_s * grown, law.max_pause_s) * (1.0 + law.jitter * self._u())
        self.until_due = max(self.until_due, now + wait_s)

    def silence(self, now: float) -> None:
        """Failures only, none of them a refusal: single probes from now on."""
        self.fails = max(self.fails, self._law.single_probe_fails - 1)
        self.fail(now, rate=math.inf)

    def obey(self, now: float, retry_after_s: float) -> None:
        """The host said how long: never earlier, a little later (crawlers part ways)."""
        extra_s = min(self._law.jitter * self._u() * retry_after_s, 0.5)
        self.until_due = max(self.until_due, now + retry_after_s + extra_s)
        self.parked = self.parked or retry_after_s > self._law.max_pause_s

    def kept(self, now: float) -> Kept:
        """What a new holder of the domain must go on with."""
        return {
            "fails": self.fails,
            "held_s": max(0.0, self.until_due - now),
            "parked": int(self.parked),
        }

    def take(self, kept: Kept, now: float, age_s: float) -> None:
        """Go on with what another holder kept *age_s* seconds ago."""
        self.fails = int(number(kept, "fails"))
        self.parked = bool(kept.get("parked"))
        held_s = number(kept, "held_s") - age_s
        if held_s > 0.0:
            self.until_due = now + held_s

    def passed(self) -> None:
        """The host answers again."""
        self.fails = 0
        self.parked = False
