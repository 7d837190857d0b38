"""Rows of the shared frontier as Redis keeps them, and back.

The rule it keeps: what the scripts must read stands in a header of its own; the payload is bytes to them, and JSON to the
codec. Nothing that comes out of Redis is ever run.
"""

from __future__ import annotations

from typing import Final

from .base import State, StoredRequest

_MAX_SCORE: Final = 1 << 53
"""A sorted set's score is a double: whole numbers are exact up to here."""
_RANK_SHIFT: Final = 1 << 63


def priority_of(row: StoredRequest) -> int:
    """Its priority, within what a score can hold."""
    return max(-_MAX_SCORE, min(_MAX_SCORE, row.priority))


def rank_of(row: StoredRequest) -> str:
    """Its rank as text that sorts as the number does."""
    return f"{max(0, min((1 << 64) - 1, row.rank + _RANK_SHIFT)):016x}"


def read_row(id_: bytes, value: bytes) -> StoredRequest:
    """A row as `fetch.lua` returns it.

    Raises:
        ValueError: it was not written by this program.
    """
    head, _, payload = value.partition(b"\n")
    domain, priority, rank, crashes = head.split(b"\t")
    return StoredRequest(
        id=int(id_),
        domain=domain.decode(),
        priority=int(priority),
        rank=int(rank, 16) - _RANK_SHIFT,
        payload=payload,
        state=State.WINDOW,
        crashes=int(crashes),
    )
