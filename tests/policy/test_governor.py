"""The governor's promises, in virtual time: each test moves the clock by hand."""

import itertools
import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extensions.policy.blocked import Blocked
from extensions.policy.governor import DomainGovernor
from extensions.policy.law import Law
from extensions.policy.outcome import Outcome


def governor(**kwargs):
    return DomainGovernor(**({"max_concurrency": 8, "u": lambda: 0.5} | kwargs))


def answer(gov, ticket, now, outcome=Outcome.SUCCESS, **kwargs):
    gov.finished(ticket, outcome, now, **({"latency_s": now - ticket.sent_due} | kwargs))


def grown(gov, *, until=40, latency_s=0.02):
    """Answer requests kept at the limit until some were answered; the time then."""
    now, flying = 0.0, []
    for _ in range(until):
        while gov.next_send_due(now, len(flying)) <= now:
            flying.append(gov.sent(now))
        now += latency_s / max(1, len(flying))
        answer(gov, flying.pop(0), now, latency_s=latency_s)
    for ticket in flying:
        answer(gov, ticket, now, latency_s=latency_s)
    return now


def burst(gov, now, n=8):
    tickets = []
    for i in range(n):
        if gov.next_send_due(now, i) > now:
            break
        tickets.append(gov.sent(now))
    return tickets


def test_starts_with_two_and_no_pace():
    """A new domain gets two requests at once, then waits for an answer."""
    gov = governor()
    assert len(burst(gov, 0.0)) == 2
    assert gov.next_send_due(0.0, 2) == math.inf
    assert gov.pace is None
    assert gov.blocked_by(0.0, 2) is Blocked.CONCURRENCY


def test_reaches_the_ceiling_while_used():
    """An unlimited host gets the ceiling after a few windows."""
    gov = governor(max_concurrency=16)
    grown(gov, until=60)
    assert gov.concurrency == 16
    assert gov.blocked_by(9.0, 16) is Blocked.CEILING


def test_does_not_grow_unused():
    """Answers to one request at a time prove nothing about two."""
    gov = governor()
    now = 0.0
    for _ in range(100):
        assert gov.next_send_due(now, 0) <= now
        ticket = gov.sent(now)
        now += 0.02
        answer(gov, ticket, now)
    assert gov.concurrency == 2


def test_one_burst_of_refusals_is_one_step():
    """Eight parallel refusals cost one wait; a second strike after it one longer wait."""
    one, many = governor(), governor()
    waits = {}
    for name, gov, n in (("one", one, 1), ("many", many, 8)):
        start = grown(gov)
        tickets = burst(gov, start)
        for ticket in tickets[:n]:
            answer(gov, ticket, start + 0.05, Outcome.REFUSED)
        waits[name] = gov.next_send_due(start + 0.05, 0) - start - 0.05
        second = gov.next_send_due(start + 0.05, 0)
        answer(gov, gov.sent(second), second + 0.05, Outcome.REFUSED)
        waits[name, 2] = gov.next_send_due(second + 0.05, 0) - second - 0.05
    assert waits["many"] == pytest.approx(waits["one"])
    assert 0.1 <= waits["one"] <= 5.5
    assert waits["many", 2] == pytest.approx(1.7 * waits["many"], rel=0.01)


def test_a_late_success_does_not_end_the_wait():
    """A 200 from before the refusal arrives after it: the hold stands."""
    gov = governor()
    now = grown(gov)
    early, late = burst(gov, now)[:2]
    answer(gov, late, now + 0.05, Outcome.REFUSED, retry_after_s=3.0)
    answer(gov, early, now + 0.06)
    assert gov.next_send_due(now + 0.07, 0) >= now + 3.05


def test_release_is_gradual():
    """After a hold requests leave at a pace, not all at once."""
    gov = governor()
    now = grown(gov)
    for ticket in burst(gov, now):
        answer(gov, ticket, now + 0.05, Outcome.REFUSED, retry_after_s=2.0)
    now = gov.next_send_due(now + 0.05, 0)
    assert now < math.inf
    first = gov.sent(now)
    answer(gov, first, now + 0.05)
    assert len(burst(gov, now + 0.05)) <= 2


def test_user_delay_and_crawl_delay_are_floors():
    """Two requests are never closer than the larger of both, before and after a refusal."""
    gov = governor(min_interval_s=1.0)
    assert gov.next_send_due(5.0, 0) <= 5.0
    ticket = gov.sent(5.0)
    assert gov.next_send_due(5.5, 1) == 6.0
    assert gov.blocked_by(5.5, 1) is Blocked.USER_DELAY
    gov.set_floor(crawl_delay_s=3.0)
    assert gov.next_send_due(5.5, 1) == 8.0
    assert gov.blocked_by(5.5, 1) is Blocked.CRAWL_DELAY
    answer(gov, ticket, 5.6, Outcome.REFUSED)
    assert gov.next_send_due(5.6, 0) >= 8.0


def test_long_retry_after_parks():
    """A wait over the law's own longest is obeyed and shown."""
    gov = governor()
    ticket = gov.sent(0.0)
    answer(gov, ticket, 1.0, Outcome.REFUSED, retry_after_s=86_400.0)
    assert gov.parked
    assert gov.blocked_by(2.0, 0) is Blocked.PARK
    assert gov.held_until >= 86_401.0


def test_silent_host_gets_single_probes():
    """A host that only fails gets one request at a time, ever more rarely."""
    gov = governor()
    now = grown(gov)
    for _ in range(3):
        for ticket in burst(gov, now):
            answer(gov, ticket, now + 0.005, Outcome.OVERLOADED)
        now += 0.01
    probes = []
    while now < 30.0:
        due = gov.next_send_due(now, 0)
        now = max(now, due)
        ticket = gov.sent(now)
        assert gov.next_send_due(now, 1) == math.inf
        assert gov.blocked_by(now, 1) is Blocked.PROBE
        probes.append(now)
        now += 0.005
        answer(gov, ticket, now, Outcome.OVERLOADED)
    gaps = [b - a for a, b in itertools.pairwise(probes)]
    assert gaps == sorted(gaps)
    assert len(probes) < 15
    now = gov.next_send_due(now, 0)
    answer(gov, gov.sent(now), now + 0.02)
    assert len(burst(gov, now + 0.02)) >= 2


def test_an_abandoned_probe_makes_room():
    """A probe that never reached the host does not block the next one."""
    gov = governor()
    for _ in range(6):
        answer(gov, gov.sent(0.0), 0.0, Outcome.OVERLOADED)
    now = gov.next_send_due(0.0, 0)
    ticket = gov.sent(now)
    assert gov.next_send_due(now, 1) == math.inf
    gov.abandoned(ticket, now)
    assert gov.next_send_due(now, 1) <= now


def test_a_few_failures_among_many_answers_move_nothing():
    """Two failures in a hundred leave the concurrency alone."""
    gov = governor(max_concurrency=16)
    now = grown(gov, until=80)
    for i in range(400):
        assert gov.next_send_due(now, 3) <= now
        ticket = gov.sent(now)
        now += 0.02
        answer(gov, ticket, now, Outcome.OVERLOADED if i % 50 == 0 else Outcome.SUCCESS)
    assert gov.concurrency == 16
    assert gov.pace is None


def test_snapshot_is_json_and_restores():
    """What was learned survives as plain JSON; the restored governor starts from it."""
    gov = governor()
    now = grown(gov)
    for ticket in burst(gov, now):
        answer(gov, ticket, now + 0.05, Outcome.REFUSED)
    kept = json.loads(json.dumps(gov.snapshot()))
    again = DomainGovernor.restore(kept, max_concurrency=8, u=lambda: 0.0)
    assert again.mark == pytest.approx(gov.mark)
    bad = DomainGovernor.restore(
        {"mark": -1.0, "concurrency": None}, max_concurrency=8, u=lambda: 0.0
    )
    assert bad.mark is None


def test_forgettable():
    """A fresh governor may go; one that knows a limit or holds may not."""
    gov = governor()
    assert gov.forgettable(0.0)
    ticket = gov.sent(0.0)
    answer(gov, ticket, 1.0, Outcome.REFUSED)
    assert not gov.forgettable(1000.0)


@pytest.mark.parametrize(
    "kwargs", [{"max_concurrency": 0}, {"min_interval_s": -1.0}, {"min_interval_s": math.nan}]
)
def test_impossible_values_are_refused(kwargs):
    """A wrong number is named at once."""
    with pytest.raises(ValueError, match="_"):
        governor(**kwargs)


OUTCOMES = st.sampled_from(list(Outcome))
STEPS = st.lists(
    st.tuples(
        OUTCOMES,
        st.floats(0.0, 5.0),
        st.none() | st.floats(0.001, 1e6),
        st.integers(0, 7),
        st.booleans(),
    ),
    max_size=200,
)


@given(STEPS, st.integers(1, 16), st.floats(0.0, 0.99))
@settings(max_examples=150, deadline=None)
def test_never_over_the_ceiling_never_a_wait_into_the_past(steps, ceiling, u):
    """Whatever ends how and when: the answer is a time or inf, and the ceiling holds."""
    gov = DomainGovernor(max_concurrency=ceiling, u=lambda: u)
    now, flying = 0.0, []
    for outcome, dt, wait, which, gone in steps:
        now += dt
        due = gov.next_send_due(now, len(flying))
        assert not math.isnan(due)
        if due <= now:
            assert len(flying) < ceiling
            flying.append(gov.sent(now))
        elif not flying:
            assert due < math.inf, "nothing runs, so nothing would ever wake it"
        if flying and which < len(flying):
            ticket = flying.pop(which)
            if gone:
                gov.abandoned(ticket, now)
            else:
                answer(gov, ticket, now, outcome, retry_after_s=wait)
                if wait is not None:
                    assert gov.next_send_due(now, 0) >= now + wait
        assert 1 <= gov.concurrency <= ceiling
        assert gov.pace is None or gov.pace > 0.0
        assert gov.mark is None or 0.0 < gov.mark < math.inf


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_always_recovers(steps):
    """After any history a healthy host is crawled again: a hundred answers within two days."""
    gov = governor()
    now, flying = 0.0, []
    for outcome, dt, _, which, _ in steps:
        now += dt
        if gov.next_send_due(now, len(flying)) <= now:
            flying.append(gov.sent(now))
        if flying and which < len(flying):
            answer(gov, flying.pop(which), now, outcome)
    for ticket in flying:
        answer(gov, ticket, now)
    start = now
    for _ in range(100):
        now = max(now, gov.next_send_due(now, 0))
        ticket = gov.sent(now)
        now += 0.01
        answer(gov, ticket, now)
    assert now - start < 3 * 86_400


@given(st.floats(0.01, 1e5), st.floats(0.0, 1e5))
def test_monotone_in_retry_after(wait, more):
    """A longer Retry-After is never a shorter wait."""
    ends = []
    for asked in (wait, wait + more):
        gov = governor()
        ticket = gov.sent(0.0)
        answer(gov, ticket, 0.1, Outcome.REFUSED, retry_after_s=asked)
        ends.append(gov.next_send_due(0.1, 0))
    assert ends[0] <= ends[1]
    assert ends[0] >= 0.1 + wait


@given(STEPS, st.floats(0.0, 2e9))
@settings(max_examples=60, deadline=None)
def test_no_dependence_on_the_clocks_origin(steps, origin):
    """The same history at another origin gives the same waits (up to the clock's own rounding)."""
    dues = []
    for shift in (0.0, float(int(origin))):
        gov = governor()
        now, flying, seen = shift, [], []
        for outcome, dt, wait, which, _ in steps:
            now += round(dt * 16) / 16
            due = gov.next_send_due(now, len(flying))
            seen.append(round(min(due, 1e12) - now, 1) if due < math.inf else due)
            if len(seen) < 4:
                flying.append(gov.sent(now))
            if flying and which < len(flying):
                answer(
                    gov,
                    flying.pop(which),
                    now,
                    outcome,
                    retry_after_s=wait and float(int(wait) + 1),
                )
        dues.append(seen)
    assert dues[0] == pytest.approx(dues[1], abs=0.2)


@given(st.integers(1, 8), st.integers(1, 8), st.none() | st.floats(0.5, 50.0), st.floats(0.0, 0.99))
@settings(max_examples=100, deadline=None)
def test_one_burst_is_one_step_whatever_its_size(few, many, wait, u):
    """However many requests of one moment are refused, in pace and wait it is one refusal."""
    ends = []
    for n in (few, many):
        gov = governor(u=lambda: u)
        now = grown(gov)
        tickets = burst(gov, now)
        for ticket in tickets[:n]:
            answer(gov, ticket, now + 0.05, Outcome.REFUSED, retry_after_s=wait)
        ends.append((gov.mark, gov.pace, gov.next_send_due(now + 0.05, 0)))
    assert ends[0] == ends[1]


def size_of(thing, seen):
    """How many values an object of slots, lists and numbers holds, itself included."""
    if id(thing) in seen or callable(thing) or isinstance(thing, Law):
        return 0
    seen.add(id(thing))
    if isinstance(thing, list | tuple):
        return 1 + sum(size_of(item, seen) for item in thing)
    names = getattr(type(thing), "__slots__", ())
    return 1 + sum(size_of(getattr(thing, name, None), seen) for name in names)


@given(st.integers(0, 2**32), st.floats(0.0, 0.4), st.floats(0.0, 0.4))
@settings(max_examples=15, deadline=None)
def test_state_is_bounded(seed, refused, failed):
    """Three thousand answers of any kind leave no more behind than a full set of counters."""
    draw = random.Random(seed).random  # noqa: S311  a simulation, not a secret
    gov = governor(u=draw)
    now, flying = 0.0, []
    for _ in range(3000):
        due = gov.next_send_due(now, len(flying))
        if due <= now:
            flying.append(gov.sent(now))
        if flying and (due > now or draw() < 0.5):
            at = draw()
            outcome = (
                Outcome.REFUSED
                if at < refused
                else Outcome.OVERLOADED
                if at < refused + failed
                else Outcome.SUCCESS
            )
            now += 0.05 * draw()
            answer(gov, flying.pop(0), now, outcome)
        elif due > now:
            now = min(due, now + 600.0)
    assert size_of(gov, set()) <= 300
