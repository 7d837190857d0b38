"""Delays, watermarks and the retry budget, in virtual time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.delays import Delays
from extensions.policy.domains import domain_key
from extensions.policy.frontier import Entry
from extensions.policy.redact import redact_url
from extensions.policy.retry import MIN_RETRIES_PER_S, RESERVE, RetryBudget, delay_s
from extensions.policy.watermarks import AUTO_MAX, AUTO_MIN, Watermarks


def entry(number: int) -> Entry:
    return Entry(id=number, domain="a", priority=0, rank=0, request=object())


@given(st.lists(st.floats(0, 100), max_size=30), st.floats(0, 100))
def test_what_is_due_comes_out_in_order_of_time(dues: list[float], now: float) -> None:
    delays = Delays(window=100)
    for number, due in enumerate(dues):
        delays.push(entry(number), due)
    taken = [dues[e.id] for e in delays.take_due(now)]
    assert taken == sorted(due for due in dues if due <= now)
    assert delays.next_due == min((due for due in dues if due > now), default=math.inf)


def test_more_than_the_window_goes_to_disk_and_its_time_is_kept() -> None:
    delays = Delays(window=1)
    assert not delays.push(entry(1), 5.0)
    assert delays.push(entry(2), 3.0)
    assert (len(delays), delays.next_due) == (2, 3.0)
    assert not delays.wants_disk(2.9)
    assert delays.wants_disk(3.0)
    delays.took_from_disk(1, math.inf)
    assert (len(delays), delays.next_due) == (1, 5.0)


def test_who_waits_in_memory_is_known() -> None:
    delays = Delays(window=2)
    for number in range(3):
        delays.push(entry(number), float(number))
    assert [delays.holds(number) for number in range(3)] == [True, True, False]
    delays.take_due(0.5)
    assert [delays.holds(number) for number in range(3)] == [False, True, False]


def test_the_last_time_is_known_while_something_waits() -> None:
    """Until all have gone; rows of an earlier process tell their first time only."""
    delays = Delays(window=9)
    for due in (5.0, 9.0, 7.0):
        delays.push(entry(int(due)), due)
    assert delays.last_due == 9.0
    delays.take_due(10.0)
    delays.push(entry(1), 3.0)
    assert delays.last_due == 3.0
    delays.note_on_disk(20, 4.0)
    assert delays.last_due == math.inf


@given(
    st.integers(1, 100), st.floats(0, 10), st.floats(10, 1000), st.floats(0, 1, exclude_max=True)
)
def test_a_retry_delay_is_never_negative_and_never_over_the_cap(
    attempt: int, base_s: float, cap_s: float, u: float
) -> None:
    assert 0 <= delay_s(attempt, base_s=base_s, cap_s=cap_s, u=u) <= cap_s


def test_the_first_retry_is_attempt_one() -> None:
    with pytest.raises(ValueError, match="attempt=0"):
        delay_s(0, base_s=1, cap_s=2, u=0.5)


def test_retries_over_the_budget_are_postponed_at_the_minimum_rate() -> None:
    budget = RetryBudget(ratio=0.2, now=0.0)
    free = [budget.reserve(0.0) for _ in range(int(RESERVE))]
    assert free == [0.0] * int(RESERVE)
    assert budget.reserve(0.0) == pytest.approx(1 / MIN_RETRIES_PER_S)
    assert budget.reserve(0.0) == pytest.approx(2 / MIN_RETRIES_PER_S)


def test_traffic_pays_for_retries() -> None:
    budget = RetryBudget(ratio=0.5, now=0.0)
    for _ in range(int(RESERVE)):
        budget.reserve(0.0)
    budget.fresh()
    budget.fresh()
    assert budget.reserve(0.0) == 0.0


@given(st.integers(1, 50), st.lists(st.integers(0, 60)))
def test_the_gate_never_opens_at_the_high_mark_nor_stays_shut_at_nothing(
    cap: int, depths: list[int]
) -> None:
    marks = Watermarks(cap=cap)
    for depth in depths:
        if marks.is_open(depth):
            assert depth < cap
    assert marks.is_open(0)


def test_an_automatic_cap_follows_the_measured_rate_within_bounds() -> None:
    marks = Watermarks(cap=None)
    for rate, high in ((0.0, AUTO_MIN), (10.0, 1800), (10_000.0, AUTO_MAX)):
        marks.learn(rate)
        assert marks.high == high


def test_a_number_of_the_user_stays() -> None:
    marks = Watermarks(cap=4)
    marks.learn(1000.0)
    assert marks.high == 4


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://Example.COM/a", "example.com"),
        ("http://example.com:80/a", "example.com"),
        ("https://example.com:80/a", "example.com:80"),
        ("https://user:pw@example.com/a@b", "example.com"),
        ("http://example.com?q=http://x/", "example.com"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000"),
        ("http://[::1]:8000/", "::1:8000"),
        ("http://example.com:bad/", "example.com:bad"),
        ("data:,x", ""),
        ("file:///etc/x", ""),
    ],
)
def test_the_politeness_key_is_the_host_with_its_odd_port(url: str, key: str) -> None:
    assert domain_key(url) == key


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:pw@host/a", "http://host/a"),
        ("http://host/a@b?u=x@y", "http://host/a@b?u=x@y"),
        ("http://u:p@host?next=/", "http://host?next=/"),
        ("mailto:a@b", "mailto:a@b"),
    ],
)
def test_a_shown_url_has_no_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown
