"""Which proxies may take one more request, and how loaded each is: sets of places, kept as bits.

The rule it keeps: a proxy stands in exactly one place: at its load among those that may take one more, or nowhere. So a
choice among hundreds costs a few operations on whole numbers, however many of them are left out.
"""

from __future__ import annotations

NOWHERE = -1


class Places:
    """The places of one pool.

    Attributes:
        alive: Bit set of the healthy.
    """

    __slots__ = ("_level_of", "_levels", "_turn", "alive")

    def __init__(self) -> None:
        self._levels: list[int] = [0]  # at [load]: bit set of those that may take one more
        self._level_of: list[int] = []  # by place
        self._turn = 0
        self.alive = 0

    def put(self, place: int, load: int, *, alive: bool) -> None:
        """It carries *load* and may take one more, or, with `NOWHERE`, may not."""
        bit = 1 << place
        while len(self._level_of) <= place:
            self._level_of.append(NOWHERE)
        before = self._level_of[place]
        if load != before:
            if before >= 0:
                self._levels[before] &= ~bit
            if load >= 0:
                while len(self._levels) <= load:
                    self._levels.append(0)
                self._levels[load] |= bit
            self._level_of[place] = load
        if alive:
            self.alive |= bit
        else:
            self.alive &= ~bit

    def least_loaded(self, allowed: int) -> int | None:
        """The place among *allowed* whose turn it is at the lowest load; None where none may take one more."""
        for level in self._levels:
            found = level & allowed
            if found:
                break
        else:
            return None
        later = found >> self._turn
        place = self._turn + _lowest(later) if later else _lowest(found)
        self._turn = place + 1
        return place


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
