"""How the last requests to a domain ended, in eleven bytes each.

The rule it keeps: a domain that was asked three times takes the room of three outcomes, one that was asked for days that
of fifty; adding one costs a few hundred nanoseconds. Latencies and waits are kept to three digits, moments to 0.1 s.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from .outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = 50
MAX_WORDS = 1000
OTHER = "other"
_FORM = struct.Struct("<IeeHB")
_LARGEST = 65_504.0
"""Of a number in two bytes. A longer wait is shown as this one, 18 hours."""
_OUTCOMES = tuple(Outcome)
_NUMBERS = {outcome: number for number, outcome in enumerate(_OUTCOMES)}


class Words:
    """Short texts by number: statuses and names of failures come again and again. Over `MAX_WORDS`: "other"."""

    def __init__(self) -> None:
        self._texts = [OTHER]
        self._numbers = {OTHER: 0}

    def number(self, text: str) -> int:
        """The number of *text*."""
        number = self._numbers.get(text)
        if number is None:
            if len(self._texts) >= MAX_WORDS:
                return 0
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def text(self, number: int) -> str:
        """The text of *number*."""
        return self._texts[number]


class Ended(NamedTuple):
    """How one request ended.

    Attributes:
        after_s: When, in seconds after the moment from which the crawl counts.
        what: An HTTP status, or how it failed.
        outcome: What that says of the host.
        latency_s: How long it took.
        held_s: For how long the host is asked nothing because of it; 0: it is.
    """

    after_s: float
    what: str
    outcome: Outcome
    latency_s: float
    held_s: float


class Outcomes:
    """The last `KEPT` outcomes of one domain."""

    __slots__ = ("_bytes", "_next")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._next = 0  # where the oldest lies, once all places are taken

    def add(
        self, after_s: float, word: int, outcome: Outcome, *, latency_s: float, held_s: float
    ) -> None:
        """Keep one more; *word*: the number of what it was, of the crawl's `Words`."""
        packed = _FORM.pack(
            max(0, int(after_s * 10)) & 0xFFFFFFFF,
            min(max(latency_s, 0.0), _LARGEST),
            min(max(held_s, 0.0), _LARGEST),
            word,
            _NUMBERS[outcome],
        )
        if len(self._bytes) < KEPT * _FORM.size:
            self._bytes += packed
            return
        start = self._next * _FORM.size
        self._bytes[start : start + _FORM.size] = packed
        self._next = (self._next + 1) % KEPT

    def __len__(self) -> int:
        return len(self._bytes) // _FORM.size

    def count(self, outcome: Outcome) -> int:
        """How many of them ended as *outcome*."""
        return self._bytes[_FORM.size - 1 :: _FORM.size].count(_NUMBERS[outcome])

    def newest_first(self, words: Words) -> Iterator[Ended]:
        """All of them."""
        kept = len(self)
        for back in range(1, kept + 1):
            place = (self._next - back) % kept
            tenths, latency_s, held_s, word, number = _FORM.unpack_from(
                self._bytes, place * _FORM.size
            )
            yield Ended(tenths / 10, words.text(word), _OUTCOMES[number], latency_s, held_s)
