"""Whose fault a few refusals are: slow down by a quarter and see whether they stop.

A host that refuses a few percent at random cannot be told from one that is a little over its limit
by watching; it can by acting. If the refusals go on at three quarters of the pace, they are noise.
"""

from __future__ import annotations

from .law import LAW, Law

_SUSPECT = 3  # refusals ...
_WITHIN = 120  # ... among so many answers that start a test
_APART = 6  # answers between two of them: closer ones are one event
_CHANCE = 2  # refusals in a test that may be chance, or another crawler's probe
_FEW = 60  # answers under which a test gives no verdict
_MOST_NOISE = 0.12  # a larger share is a limit, whatever the test says


class Doubt:
    """Counts lone refusals, and tests them."""

    __slots__ = ("_answers", "_hits", "_law", "_since", "_when", "active")

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self._answers = 0
        self._when: tuple[int, ...] = ()
        self.active = False
        self._since = 0
        self._hits = 0

    @property
    def watching(self) -> bool:
        """Whether answers need to be counted at all."""
        return self.active or bool(self._when)

    def passed(self) -> bool:
        """Count an answer; True if a verdict may be due."""
        self._answers += 1
        return self.active and self._answers - self._since >= _FEW

    def refused(self) -> bool:
        """Count a lone refusal; True if a verdict may be due."""
        self._answers += 1
        if self._when and self._answers - self._when[-1] < _APART:
            return False
        if self.active:
            self._hits += 1
            return self._answers - self._since >= _FEW
        self._when = (*self._when, self._answers)[-_SUSPECT:]
        within = self._answers - self._when[0]
        if len(self._when) == _SUSPECT and within <= _WITHIN:
            self.active = True
            self._since, self._hits = self._answers, 0
        return False

    def verdict(self) -> float | None:
        """The share that is noise, 0 for a limit, None while unknown; ends the test."""
        if not self.active:
            return None
        answers = self._answers - self._since
        if answers < (_WITHIN, 2 * _WITHIN, 2 * _WITHIN, _FEW)[min(self._hits, 3)]:
            return None
        share = (self._hits - 0.5) / answers
        noise = self._hits > _CHANCE and share <= _MOST_NOISE
        self.drop()
        return share if noise else 0.0

    def drop(self) -> None:
        """Something clearer happened: forget the suspicion."""
        self.active = False
        self._when = ()
        self._answers = 0
