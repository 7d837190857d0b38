"""What one holder of a domain tells the next: plain numbers, free of clocks, fit for JSON.

The rule it keeps: a new holder never asks for more than the old one would have, and it knows how old the news is. A number
that cannot be meant counts as not said.
"""

from __future__ import annotations

import math

Kept = dict[str, float | int | None]
"""Seconds are counted from the moment of the telling."""


def number(kept: Kept, name: str) -> float:
    """The number *name* of *kept*, finite and not negative; 0 where it is not said."""
    value = kept.get(name)
    return float(value) if value is not None and 0.0 <= value < math.inf else 0.0
