"""How fast a domain was over its whole time, in a few hundred bytes.

The rule it keeps: at most `KEPT` stretches of equal length, from the first mark to the last. When they are full, two
and two become one, twice as long: a domain that was asked for a minute has stretches of two seconds, one that was asked
for days has some of an hour.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

KEPT = 60
FIRST_STEP_S = 2.0
_FORM = struct.Struct("<ee")
_LARGEST = 65_504.0
"""Of a number in two bytes."""


class Stretch(NamedTuple):
    """A part of a domain's time.

    Attributes:
        pages_per_s: Pages a second in it.
        pace: The most a second that it was asked for at its end; None: no limit was known.
    """

    pages_per_s: float
    pace: float | None


class PaceLine:
    """The line of one domain.

    Args:
        start_at: When it begins.
        got: Pages that were got before.
    """

    __slots__ = ("_bytes", "_got", "_pace", "_pages", "start_at", "step_s")

    def __init__(self, start_at: float, got: int = 0) -> None:
        self.start_at = start_at
        self.step_s = FIRST_STEP_S
        self._bytes = bytearray()  # whole stretches
        self._got = got
        self._pages = 0.0  # of the stretch under way
        self._pace: float | None = None

    def mark(self, at: float, got: int, pace: float | None) -> None:
        """So many pages so far, and so fast may it be asked; what came since the last mark came evenly."""
        more = max(0, got - self._got)
        self._got, self._pace = got, pace
        passed = max(0, int((at - self.start_at) / self.step_s) - self._whole)
        while self._whole + passed >= KEPT:
            self._fold()
            passed = max(0, int((at - self.start_at) / self.step_s) - self._whole)
        if not passed:
            self._pages += more
            return
        self._keep(self._pages)
        each = more / passed
        for _ in range(passed - 1):
            self._keep(each)
        self._pages = each

    def stretches(self) -> list[Stretch]:
        """The whole ones, the oldest first."""
        return [
            Stretch(pages_per_s, None if math.isnan(pace) else pace)
            for pages_per_s, pace in _FORM.iter_unpack(self._bytes)
        ]

    @property
    def _whole(self) -> int:
        return len(self._bytes) // _FORM.size

    def _keep(self, pages: float) -> None:
        self._add(pages / self.step_s, math.nan if self._pace is None else self._pace)

    def _add(self, pages_per_s: float, pace: float) -> None:
        self._bytes += _FORM.pack(min(pages_per_s, _LARGEST), min(pace, _LARGEST))

    def _fold(self) -> None:
        """Two and two become one. One that is left over is taken back into the stretch under way."""
        whole = list(_FORM.iter_unpack(self._bytes))
        self._bytes = bytearray()
        for first, second in zip(whole[::2], whole[1::2], strict=False):
            self._add((first[0] + second[0]) / 2, second[1])
        if len(whole) % 2:
            self._pages += whole[-1][0] * self.step_s
        self.step_s *= 2
