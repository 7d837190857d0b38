"""Whose fault a few refusals are: slow down by a quarter and see whether they stop.

A host that refuses a few percent at random cannot be told from one that is a little over its limit
by watching; it can by acting. If the refusals go on at three quarters of the pace, they are noise.

Source of the test: A. Wald, "Sequential Tests of Statistical Hypotheses", Annals of Mathematical
Statistics 16 (1945).
"""

from __future__ import annotations

import math

from .law import LAW, Law


class Doubt:
    """Counts lone refusals, and tests them."""

    __slots__ = (
        "_answers", "_hits", "_law", "_odds", "_share", "_since", "_when", "active",
    )  # fmt: skip

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self._answers = 0
        self._when: tuple[int, ...] = ()
        self.active = False
        self._since = 0
        self._hits = 0
        self._share = 0.0  # of refusals, as suspected
        self._odds = 0.0  # logarithm: noise against limit

    @property
    def watching(self) -> bool:
        """Whether answers need to be counted at all."""
        return self.active or bool(self._when)

    def passed(self) -> bool:
        """Count an answer; True if a verdict may be due."""
        self._answers += 1
        if self.active:
            self._odds += math.log((1.0 - self._share) / (1.0 - self._law.refusal_noise))
        return self.active

    def refused(self) -> bool:
        """Count a lone refusal; True if a verdict may be due."""
        law = self._law
        self._answers += 1
        if self._when and self._answers - self._when[-1] < law.apart:
            return False
        if self.active:
            self._hits += 1
            self._odds += math.log(self._share / law.refusal_noise)
            return True
        self._when = (*self._when, self._answers)[-law.suspect :]
        within = self._answers - self._when[0]
        if len(self._when) == law.suspect and within <= law.suspect_within:
            self.active = True
            self._since, self._hits = self._answers, 0
            self._share = min(law.suspect / within, law.refusal_step)
            self._odds = 0.0
        return False

    def verdict(self) -> float | None:
        """The share that is noise, 0 for a limit, None while unknown; ends the test."""
        if not self.active:
            return None
        law = self._law
        if abs(self._odds) < law.sure:
            return None
        noise = self._odds > 0.0
        answers = self._answers - self._since
        share = (self._hits - 0.5) / answers
        self.drop()
        return share if noise and share <= law.refusal_step else 0.0

    def drop(self) -> None:
        """Something clearer happened: forget the suspicion."""
        self.active = False
        self._when = ()
        self._answers = 0
