"""The small parts of the law: counting, judging, measuring."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.doubt import Doubt
from extensions.policy.law import LAW
from extensions.policy.limit import Cycle, Limit
from extensions.policy.meter import Meter
from extensions.policy.score import Score


def bucket_cycle(rate, burst, pace, *, sit=0.0, hold_s=0.0, pause_s=0.0, told=False):
    """A cycle against a real token bucket: a hold at *sit*, then at *pace* until it refuses."""
    meter, tokens, now = Meter(), burst, 0.0
    meter.restart(0.0)
    while now < hold_s:
        meter.accept(now)
        now += 1.0 / sit
    while tokens >= 1.0:
        tokens -= 1.0
        meter.accept(now)
        now += 1.0 / pace
        tokens = min(burst, tokens + rate / pace)
    return Cycle(
        meter=meter,
        since_due=0.0,
        cut_due=now,
        known_due=now,
        end_due=now + pause_s,
        accepted=meter.total + 1,
        pause_s=pause_s,
        lead=0,
        lead_s=0.0,
        pace=pace,
        paced=True,
        told=told,
        noise=LAW.refusal_noise,
    )


def test_score_convicts_a_burst_and_forgives_a_trickle():
    """Four failures in a row convict; one in fifty never does."""
    score = Score(noise=LAW.failure_noise, step=LAW.failure_step)
    assert max(score.failed() for _ in range(4)) >= LAW.score
    score.clear()
    for i in range(2000):
        if i % 50:
            score.passed()
        else:
            assert score.failed() < LAW.score


@given(st.lists(st.booleans(), max_size=300))
def test_score_is_never_negative(passes):
    """However many pass, the next failure starts from zero."""
    score = Score(noise=0.01, step=0.2)
    for passed in passes:
        if passed:
            score.passed()
        else:
            score.failed()
        assert score.value >= 0.0


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=500))
def test_meter_counts_all_in_few_bins(gaps):
    """Nothing is lost when bins merge, and their number is bounded."""
    meter, now = Meter(), 0.0
    for gap in gaps:
        meter.accept(now)
        now += gap
    assert meter.total == len(gaps) == sum(meter._counts)
    assert len(meter._starts) <= 33
    assert meter._starts == sorted(meter._starts)


def test_meter_finds_the_rate_behind_the_burst():
    """A bucket that was full and is empty: accepted less burst, over the time."""
    cycle = bucket_cycle(20.0, 10.0, 40.0)
    rate, count, took_s = cycle.meter.best_stretch(cycle.cut_due, burst=10.0)
    assert rate == pytest.approx(20.0, rel=0.1)
    assert count == cycle.meter.total
    assert took_s == pytest.approx(cycle.cut_due)


@pytest.mark.parametrize("rate", [0.5, 5.0, 50.0])
def test_a_steady_cycle_over_the_limit_measures_it(rate):
    """From an empty bucket, a little too fast: the cycle's own rate is the limit."""
    limit = Limit()
    limit.mark = 1.05 * rate
    cycle = bucket_cycle(rate, 10.0, 1.04 * rate)
    cycle.accepted -= 9  # the bucket had been emptied before: its burst is not there
    limit.fallen(cycle)
    assert limit.mark == pytest.approx(rate, rel=0.06)
    assert limit.exact


def test_few_answers_take_off_a_quarter_at_most():
    """Three accepted requests do not prove that a limit fell to nothing."""
    limit = Limit()
    limit.mark = 40.0
    limit.fallen(bucket_cycle(1.0, 3.0, 40.0, pause_s=1.0))
    assert limit.mark == pytest.approx(30.0)
    assert not limit.exact


def test_a_refused_probe_raises_the_mark_only_if_the_limit_rose():
    """The same ceiling leaves an exact mark alone; a far higher one moves it there."""
    limit = Limit()
    limit.mark, limit.exact, limit.burst = 20.0, True, 10.0
    limit._slack = 10.0
    assert limit.risen(bucket_cycle(20.0, 10.0, 26.0, sit=19.8, hold_s=20.0))
    assert limit.mark == pytest.approx(20.0, rel=0.01)
    assert not limit.risen(bucket_cycle(60.0, 10.0, 90.0, sit=19.8, hold_s=20.0))
    assert 30.0 < limit.mark < 90.0


def test_closed_for_long_counts_whole_cycles():
    """A window: what one cycle gave, over the cycle with its wait."""
    limit = Limit()
    limit.mark = 50.0
    cycle = bucket_cycle(0.0, 100.0, 50.0, pause_s=8.0)
    limit.shut(cycle, above=False)
    assert limit.mark == pytest.approx(101 / 10.0, rel=0.02)


def doubt_after(gap):
    doubt = Doubt()
    for _ in range(LAW.suspect):
        for _ in range(gap):
            doubt.passed()
        doubt.refused()
    return doubt


def test_doubt_needs_lone_refusals_close_enough():
    """Three in a hundred answers start a test; rare ones and one burst do not."""
    assert doubt_after(30).active
    assert not doubt_after(200).active
    assert not doubt_after(1).active


def test_doubt_tells_noise_from_a_limit():
    """Refused as often when slower: noise, and how much. Never again: a limit."""
    doubt, verdict = doubt_after(30), None
    for i in range(1, 400):
        due = doubt.refused() if i % 30 == 0 else doubt.passed()
        if due and (verdict := doubt.verdict()) is not None:
            break
    assert verdict == pytest.approx(0.03, abs=0.01)
    doubt, verdict = doubt_after(30), None
    while verdict is None:
        verdict = doubt.verdict() if doubt.passed() else None
    assert verdict == 0.0
    assert not doubt.active


def test_the_law_says_why():
    """No constant without its reason: each is followed by a docstring in the source."""
    assert all(math.isfinite(getattr(LAW, name)) for name in LAW.__slots__)


def start_cycle(*, accepted, took_s, blocked_s, pace=math.inf):
    """A cycle of a few answers, refused at its end, and open again after *blocked_s*."""
    meter = Meter()
    for i in range(accepted):
        meter.accept(i * took_s / accepted)
    return Cycle(
        meter=meter,
        since_due=0.0,
        cut_due=took_s,
        known_due=took_s,
        end_due=took_s + blocked_s,
        accepted=accepted + 1,
        pause_s=0.0,
        lead=0,
        lead_s=0.0,
        pace=pace,
        paced=True,
        told=False,
        noise=LAW.refusal_noise,
    )


def test_a_guess_falls_as_far_as_few_answers_show():
    """Behind the first mark stands a burst: no care is taken with it, only with a measured one."""
    limit = Limit(law=LAW)
    limit.first(start_cycle(accepted=5, took_s=0.3, blocked_s=0.5), shut=False)
    guessed = limit.mark
    limit.fallen(start_cycle(accepted=1, took_s=0.2, blocked_s=1.0, pace=guessed))
    assert limit.mark == pytest.approx(3 / 1.2)
    assert limit.mark < 0.5 * guessed
    limit.fallen(start_cycle(accepted=20, took_s=10.0, blocked_s=0.5, pace=limit.mark))
    measured = limit.mark
    limit.fallen(start_cycle(accepted=1, took_s=0.2, blocked_s=5.0, pace=measured))
    assert limit.mark == pytest.approx(LAW.quarter * measured)


def test_a_burst_and_a_long_wait_are_not_a_rate():
    """Five at once, then shut for four seconds: less than six in four seconds, not under one in four."""
    limit = Limit(law=LAW)
    limit.first(start_cycle(accepted=5, took_s=0.3, blocked_s=4.0), shut=True)
    assert 1 / 4.0 < limit.mark < 0.75 * 6 / 4.3
    window = Limit(law=LAW)
    window.first(start_cycle(accepted=100, took_s=0.9, blocked_s=59.0), shut=True)
    assert window.mark == pytest.approx(101 / 59.9)
