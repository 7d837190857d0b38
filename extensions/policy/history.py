"""The last hour by seconds and the last two days by minutes, in constant memory.

The rule it keeps: a reload of the page loses nothing, and a crawl of a week takes no more room than
one of an hour. Ten series take about 490 kB.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ring:
    """Rows of float32 in a ring; each row has a running number, the first is 0."""

    __slots__ = ("_data", "rows", "seq", "width")

    def __init__(self, *, rows: int, width: int) -> None:
        self.rows, self.width = rows, width
        self.seq = 0  # number of the next row
        self._data = array("f", bytes(4 * rows * width))

    def append(self, row: Sequence[float]) -> None:
        """Add a row; the oldest goes when the ring is full."""
        start = (self.seq % self.rows) * self.width
        self._data[start : start + self.width] = array("f", row)
        self.seq += 1

    def since(self, seq: int) -> tuple[int, array[float]]:
        """Rows from number *seq* on: the number of the first one still there, and their values."""
        first = min(max(seq, self.seq - self.rows, 0), self.seq)
        found = array("f")
        low, high = first % self.rows, self.seq % self.rows
        if first == self.seq:
            return first, found
        if low < high:
            found.extend(self._data[low * self.width : high * self.width])
        else:
            found.extend(self._data[low * self.width :])
            found.extend(self._data[: high * self.width])
        return first, found

    def column(self, index: int, last: int) -> list[float]:
        """The *last* values of one series, oldest first."""
        _, values = self.since(self.seq - last)
        return values[index :: self.width].tolist()


class History:
    """One sample of several series a second, kept fine for an hour and coarse for two days.

    Args:
        series: The names, in the order of a sample's values.
    """

    SECONDS, MINUTES, FOLD = 3600, 2880, 60

    def __init__(self, series: Sequence[str]) -> None:
        self.series = tuple(series)
        width = len(self.series)
        self.fine = Ring(rows=self.SECONDS, width=width)
        self.low = Ring(rows=self.MINUTES, width=width)
        self.mean = Ring(rows=self.MINUTES, width=width)
        self.high = Ring(rows=self.MINUTES, width=width)
        self._gathered: list[Sequence[float]] = []

    @property
    def gathered(self) -> int:
        """Samples after the last whole minute."""
        return len(self._gathered)

    def append(self, values: Sequence[float]) -> None:
        """Add a sample; NaN where a value is not known."""
        self.fine.append(values)
        self._gathered.append(tuple(values))
        if len(self._gathered) < self.FOLD:
            return
        columns = [
            [value for value in column if not math.isnan(value)] or [math.nan]
            for column in zip(*self._gathered, strict=True)
        ]
        self.low.append([min(column) for column in columns])
        self.mean.append([sum(column) / len(column) for column in columns])
        self.high.append([max(column) for column in columns])
        self._gathered.clear()
