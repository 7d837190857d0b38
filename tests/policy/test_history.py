"""The rings hold the last rows, fine and coarse."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.history import History, Ring


@given(st.integers(0, 50), st.integers(-5, 60))
def test_a_ring_gives_the_rows_asked_for_that_it_still_has(appended: int, since: int) -> None:
    """Like a list that forgets its beginning."""
    ring, model = Ring(rows=7, width=2), []
    for number in range(appended):
        ring.append((number, -number))
        model.append((float(number), float(-number)))
    first, values = ring.since(since)
    expected = model[max(since, appended - 7, 0) :]
    assert list(zip(values[::2], values[1::2], strict=True)) == expected
    assert first == appended - len(expected)


def test_minutes_keep_lowest_mean_and_highest() -> None:
    """After the hour a minute is three numbers; what was not known is left out."""
    history = History(("a", "b"))
    for number in range(60):
        history.append((number, float("nan")))
    assert history.low.column(0, 5) == [0.0]
    assert history.mean.column(0, 5) == [29.5]
    assert history.high.column(0, 5) == [59.0]
    assert history.high.seq == 1
