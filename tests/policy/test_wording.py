"""Numbers and times as a person reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy import wording as w


@pytest.mark.parametrize(
    ("per_s", "text"),
    [(19.2, "19.2 a second"), (3, "3 a second"), (0.6, "0.60 a second"), (0.1, "0.10 a second"),
     (0.0999, "6 a minute"), (1180.4, "1,180 a second"), (0.0005, "1.8 an hour"), (None, "unknown"),
     (math.nan, "unknown"), (0, "0 a second")],
)  # fmt: skip
def test_rates(per_s: float | None, text: str) -> None:
    """The unit is the one that shows digits."""
    assert w.rate(per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (12.4, "12 s"), (59.6, "1 min"), (3599, "1 h"), (10260, "2 h 51 min"),
     (None, "unknown"), (86400 * 3 + 4 * 3600, "3 d 4 h"),
     (1e9, "over 30 days"), (math.inf, "over 30 days"), (-5, "0 s")],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    """Two units at most, never negative, never absurd."""
    assert w.duration(seconds) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0, "0%"),
        (0.0001, "under 0.1%"),
        (0.006, "0.6%"),
        (0.75, "75%"),
        (0.9999, "99.9%"),
        (1, "100%"),
    ],
)
def test_shares(part: float, text: str) -> None:
    """Nothing that is lost is rounded to none, nothing unfinished to 100%."""
    assert w.share(part) == text


@given(st.text(max_size=500), st.integers(3, 60))
def test_a_name_fits_and_prints(name: str, width: int) -> None:
    """Control characters and length do no harm."""
    short = w.middle(name, width)
    assert len(short) <= width
    assert short.isprintable()


@given(st.floats(-1e300, 1e300) | st.sampled_from((math.nan, math.inf, -math.inf)))
def test_no_number_breaks_a_text(number: float) -> None:
    """Every form takes every float."""
    texts = (
        w.count(number), w.rate(number), w.duration(number), w.share(number), w.mebibytes(number),
        w.milliseconds(number), w.clock(number, now_at=0.0), w.when(number, now_at=0.0),
    )  # fmt: skip
    assert all("nan" not in text and "inf" not in text for text in texts)
