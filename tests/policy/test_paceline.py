"""The line of a domain's pace: bounded, and no page is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.paceline import FIRST_STEP_S, KEPT, PaceLine


def test_a_steady_pace_is_a_level_line() -> None:
    """Ten pages a second, marked each second for half a minute."""
    line = PaceLine(1000.0)
    for second in range(31):
        line.mark(1000.0 + second, 10 * second, 12.5)
    found = line.stretches()
    assert len(found) == 15
    assert [round(each.pages_per_s) for each in found[1:]] == [10] * 14
    assert {each.pace for each in found} == {12.5}


def test_no_known_limit_is_none() -> None:
    """A domain that has met no limit has none."""
    line = PaceLine(0.0)
    line.mark(0.0, 0, None)
    line.mark(5.0, 5, None)
    assert {each.pace for each in line.stretches()} == {None}


def test_days_are_kept_in_few_stretches() -> None:
    """What is kept is bounded, and reaches from the first to the last mark."""
    line = PaceLine(0.0)
    for minute in range(3 * 24 * 60):
        line.mark(60.0 * minute, 30 * minute, 1.0)
    assert KEPT // 2 <= len(line.stretches()) <= KEPT
    assert len(line.stretches()) * line.step_s == pytest.approx(3 * 86400, rel=0.05)
    assert [each.pages_per_s for each in line.stretches()][5:] == pytest.approx(
        [0.5] * (len(line.stretches()) - 5), rel=0.01
    )


@given(
    st.lists(
        st.tuples(st.floats(0.0, 5000.0), st.integers(0, 50)), min_size=1, max_size=80
    )
)  # fmt: skip
def test_no_page_is_lost(steps: list[tuple[float, int]]) -> None:
    """However marks lie, the area under the line is the number of pages, but for the stretch under way."""
    line, at, got = PaceLine(0.0), 0.0, 0
    line.mark(at, got, None)
    for waits_s, pages in steps:
        at, got = at + waits_s, got + pages
        line.mark(at, got, None)
    line.mark(at + 4 * line.step_s, got, None)  # the last stretch under way ends, and holds nothing
    found = line.stretches()
    assert len(found) <= KEPT
    assert line.step_s >= FIRST_STEP_S
    area = sum(each.pages_per_s for each in found) * line.step_s
    assert area == pytest.approx(got, rel=0.02, abs=0.5)
