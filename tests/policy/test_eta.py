"""The two times of crawls whose end is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.eta import Goodput, Horizon


def test_goodput_of_an_even_stream_is_its_rate() -> None:
    """Two pages a second stay two pages a second, however long it runs."""
    goodput = Goodput()
    for step in range(2000):
        goodput.count(step / 2)
    assert goodput.per_s(1999 / 2) == pytest.approx(2.0)


def test_goodput_follows_a_change_within_two_windows() -> None:
    """What was an hour ago does not count."""
    goodput = Goodput()
    for step in range(10_000):
        goodput.count(step / 100)
    for step in range(200):
        goodput.count(100 + step * 2)
    assert goodput.per_s(500) == pytest.approx(0.5, rel=0.05)


def test_no_goodput_before_the_second_page() -> None:
    """One page has no rate."""
    goodput = Goodput()
    assert goodput.per_s(5) is None
    goodput.count(5)
    assert goodput.per_s(9) is None


def test_a_fast_and_a_slow_domain_give_two_times() -> None:
    """9,900 pages at 10/s and 100 at 0.05/s: most at about 98% of the fast one, all at the slow."""
    horizon = Horizon()
    horizon.add("fast.example", left=9900, per_s=10)
    horizon.add("slow.example", left=100, per_s=0.05)
    times = horizon.times(ended=0)
    assert times.all_s == pytest.approx(2000)
    assert times.last == "slow.example"
    assert times.most_s == pytest.approx(9800 / 10.05, rel=0.01)


def test_a_domain_without_a_rate_is_counted_not_guessed() -> None:
    """An unreachable domain with more than 2% of the work makes the first time unknown."""
    horizon = Horizon()
    horizon.add("fast.example", left=90, per_s=1)
    horizon.add("down.example", left=10, per_s=None)
    times = horizon.times(ended=0)
    assert times.unknown == 1
    assert times.most_s is None
    assert times.all_s == pytest.approx(90)


def test_a_hold_comes_on_top() -> None:
    """A held domain starts later."""
    horizon = Horizon()
    horizon.add("held.example", left=10, per_s=1, hold_s=50)
    assert horizon.times(ended=0).all_s == pytest.approx(60)


def test_the_end_of_a_crawl_of_two_domains_is_told_to_a_tenth_after_a_quarter() -> None:
    """400 pages at 2/s and 300 at 0.5/s end after 600 s: after 150 s that is what is said."""
    rates, left = {"fast.example": 2.0, "slow.example": 0.5}, {}
    horizon, ended = Horizon(), 0
    for (name, per_s), pages in zip(rates.items(), (400, 300), strict=True):
        goodput = Goodput()
        got = int(150 * per_s)
        for page in range(got):
            goodput.count(page / per_s)
        left[name] = pages - got
        ended += got
        horizon.add(name, left=left[name], per_s=goodput.per_s(150))
    times = horizon.times(ended=ended)
    assert times.last == "slow.example"
    assert times.all_s == pytest.approx(450, rel=0.1)


domains = st.lists(
    st.tuples(st.floats(1, 1e6), st.floats(0.001, 1e3), st.floats(0, 1e4)), max_size=40
)


@given(domains, st.floats(0, 1e6))
def test_most_is_never_after_all_and_never_negative(
    rows: list[tuple[float, float, float]], ended: float
) -> None:
    """Whatever the domains, 98% comes no later than 100%."""
    horizon = Horizon()
    for number, (left, per_s, hold_s) in enumerate(rows):
        horizon.add(f"{number}.example", left=left, per_s=per_s, hold_s=hold_s)
    times = horizon.times(ended=ended)
    if rows:
        assert times.most_s is not None
        assert times.all_s is not None
        assert 0 <= times.most_s <= times.all_s * 1.021
        exact = max(hold + left / rate for left, rate, hold in rows)
        assert times.all_s == pytest.approx(exact)
    else:
        assert times == (None, None, None, 0)
