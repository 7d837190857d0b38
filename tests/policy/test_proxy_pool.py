"""The pool, in virtual time."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extensions.policy.governor import DomainGovernor
from extensions.policy.outcome import Outcome
from extensions.policy.proxies import Charge, LimitBy, News, ProxyPool, Ride, Wait, read_proxies
from extensions.policy.proxies.member import Health


def dice(seed: int):
    return random.Random(seed).random  # noqa: S311 - no secret


def pool_of(count: int, **what) -> ProxyPool:
    pool = ProxyPool(u=dice(7), **what)
    pool.replace(read_proxies(f"10.0.0.{n}:1" for n in range(1, count + 1))[0])
    return pool


def ride(pool: ProxyPool, domain: str = "d", now: float = 0.0) -> Ride:
    member = pool.choose(domain, now)
    assert not isinstance(member, Wait), member
    return pool.sent(member, domain, now)


def end(pool: ProxyPool, out: Ride, news: News, now: float, **more) -> Charge:
    return pool.finished(out, news, now, outcome=Outcome.SUCCESS, **more)


def fall(pool: ProxyPool, now: float = 0.0, news: News = News.PROXY) -> None:
    """Every proxy fails once."""
    for out in [ride(pool, now=now) for _ in range(len(pool))]:
        end(pool, out, news, now)


def test_load_is_spread_and_nothing_goes_over_a_proxys_limit():
    pool = pool_of(5, ceiling=2)
    out = [ride(pool) for _ in range(10)]
    assert set(Counter(r.name for r in out).values()) == {2}
    assert pool.choose("other", 0.0) == Wait(math.inf, none_good=False)
    end(pool, out[3], News.ANSWERED, 1.0)
    assert pool.choose("other", 1.0).address.name == out[3].name


def test_a_proxy_that_nobody_listens_on_rests_and_comes_back_with_one_probe():
    pool = pool_of(2)
    first = ride(pool)
    assert end(pool, first, News.PROXY, 0.0) is Charge.PROXY
    assert pool.healthy == 1
    assert {ride(pool, now=0.1).name for _ in range(5)} != {first.name}
    due = pool.next_due()
    assert 0.5 < due < 2.0
    names = [ride(pool, now=due).name for _ in range(3)]
    assert names.count(first.name) == 1  # the probe, and only one


def test_rests_grow_and_are_bounded():
    pool = pool_of(1)
    now, rests = 0.0, []
    for _ in range(12):
        found = pool.choose("d", now)
        while isinstance(found, Wait):
            now = found.until_due
            found = pool.choose("d", now)
        end(pool, pool.sent(found, "d", now), News.PROXY, now)
        rests.append(next(iter(pool)).rest_due - now)
    assert rests[3] > 3 * rests[0]
    assert max(rests) < 1.3 * 60


def test_one_doubtful_failure_rests_nobody_and_two_in_a_row_do():
    pool = pool_of(1)
    end(pool, ride(pool), News.SILENCE, 0.0)
    assert pool.healthy == 1
    end(pool, ride(pool, now=1.0), News.ANSWERED, 1.0)
    end(pool, ride(pool, now=2.0), News.SILENCE, 2.0)
    assert pool.healthy == 1
    end(pool, ride(pool, now=3.0), News.SILENCE, 3.0)
    assert pool.healthy == 0


def test_a_ban_is_the_pairs_and_not_the_proxys():
    pool = pool_of(2, ban_rest_s=10.0, ceiling=50)
    banned = ride(pool)
    assert end(pool, banned, News.BANNED, 0.0) is Charge.PAIR
    assert {ride(pool, now=1.0).name for _ in range(6)} != {banned.name}
    assert {ride(pool, "elsewhere", 1.0).name for _ in range(6)} >= {banned.name}
    assert pool.healthy == 2
    assert banned.name in {ride(pool, now=12.0).name for _ in range(4)}


def test_a_domain_that_has_banned_all_waits_for_the_first_to_be_forgiven():
    pool = pool_of(3, ban_rest_s=10.0)
    for out in [ride(pool) for _ in range(3)]:
        end(pool, out, News.BANNED, 0.0)
    wait = pool.choose("d", 1.0)
    assert wait.none_good
    assert 8.0 < wait.until_due < 12.0
    assert pool.none_good("d")
    assert not pool.none_good("elsewhere")


def test_bans_in_a_row_double_and_one_burst_counts_once():
    pool = pool_of(1, ban_rest_s=10.0)
    for out in [ride(pool) for _ in range(4)]:
        end(pool, out, News.BANNED, 0.0)
    first = pool.choose("d", 0.0).until_due
    assert first < 12.0
    end(pool, ride(pool, now=first), News.BANNED, first)
    assert pool.choose("d", first).until_due - first > 17.0


@pytest.mark.parametrize(
    ("by", "charge", "rests"),
    [
        (LimitBy.TARGET, Charge.TARGET, False),
        (LimitBy.BOTH, Charge.TARGET, True),
        (LimitBy.PROXY, Charge.PAIR, True),
    ],
)
def test_a_429_is_whose_the_setting_says(by, charge, rests):
    pool = pool_of(
        1,
        limit_by=by,
        pair_governor=lambda _: DomainGovernor(max_concurrency=8, u=dice(1)),
    )
    out = ride(pool)
    assert end(pool, out, News.REFUSED, 0.0, wait_s=2.0) is charge
    found = pool.choose("d", 0.5)
    assert isinstance(found, Wait) is rests


def test_half_of_the_pool_falls_and_few_requests_find_out_whether_it_is_back():
    """Ten dead of twenty, thirty seconds, then one probe brings all back."""
    pool = pool_of(20, ceiling=2)
    dead = {member.address.name for member in list(pool)[:10]}
    now, out, failures, sent = 0.0, [], 0, 0
    while now < 30.0:
        while not isinstance(found := pool.choose("d", now), Wait):
            out.append((now + 0.1, pool.sent(found, "d", now)))
            sent += now > 3.0
        due, first = out.pop(0)
        now = max(now, due)
        lost = first.name in dead
        failures += lost and now > 3.0
        end(pool, first, News.PROXY if lost else News.ANSWERED, now)
    assert pool.healthy == 10
    assert failures / sent < 0.01
    back = None
    while back is None:
        while not isinstance(found := pool.choose("d", now), Wait):
            out.append((now + 0.1, pool.sent(found, "d", now)))
        due, first = out.pop(0)
        now = max(now, due)
        end(pool, first, News.ANSWERED, now)
        back = now if pool.healthy == 20 else None
    assert back < 35.0


def test_when_all_fell_one_is_tried_soon_and_its_answer_brings_all_back():
    pool = pool_of(20)
    fall(pool)
    assert pool.healthy == 0
    now = 0.0
    for _ in range(10):
        wait = pool.choose("d", now)
        if isinstance(wait, Wait):
            assert wait.until_due - now < 4.1
            now = wait.until_due
            continue
        end(pool, pool.sent(wait, "d", now), News.PROXY, now)
    while isinstance(found := pool.choose("d", now), Wait):
        now = found.until_due
    end(pool, pool.sent(found, "d", now), News.ANSWERED, now)
    names = set()
    while not isinstance(found := pool.choose("d", now), Wait) and len(names) < 20:
        names.add(found.address.name)
        pool.sent(found, "d", now)
    assert len(names) == 20


def test_a_dead_host_does_not_kill_the_pool_that_answers_elsewhere():
    pool = pool_of(10)
    now, charges = 0.0, Counter()
    for step in range(600):
        now = step * 0.05
        good = pool.choose("good", now)
        if not isinstance(good, Wait):
            end(pool, pool.sent(good, "good", now), News.ANSWERED, now + 0.01)
        found = pool.choose("dead", now)
        if not isinstance(found, Wait):
            charges[end(pool, pool.sent(found, "dead", now), News.SILENCE, now + 0.02)] += now > 10
    assert pool.healthy >= 8
    assert charges[Charge.TARGET] > 0.9 * charges.total()


def test_a_page_that_kills_its_connection_is_to_blame_after_a_few_proxies():
    pool = pool_of(10)
    for tries in range(5):
        now = float(tries)
        other = ride(pool, now=now)
        bad = ride(pool, now=now)
        end(pool, other, News.ANSWERED, now + 0.1)
        charge = end(pool, bad, News.SILENCE, now + 0.2, tries=tries)
        assert charge is (Charge.TARGET if tries >= 3 else Charge.PROXY)
    assert pool.healthy >= 8


def test_a_proxy_that_answers_others_meanwhile_is_not_what_timed_out():
    pool = pool_of(1)
    slow, other = ride(pool, "slow"), ride(pool, "good")
    end(pool, other, News.ANSWERED, 9.0)
    assert end(pool, slow, News.SILENCE, 10.0) is Charge.TARGET
    dying, before = ride(pool, "slow", 20.0), ride(pool, "good", 20.0)
    end(pool, before, News.ANSWERED, 21.0)  # then it hangs
    assert end(pool, dying, News.SILENCE, 30.0) is Charge.PROXY


def test_with_nothing_to_compare_with_silence_is_the_proxies():
    pool = pool_of(3)
    now = 0.0
    for _ in range(40):
        found = pool.choose("only", now)
        if isinstance(found, Wait):
            now = found.until_due
            continue
        assert end(pool, pool.sent(found, "only", now), News.SILENCE, now, tries=50) is Charge.PROXY


def test_a_proxy_that_fails_under_load_carries_less():
    """It takes two at a time; what is over that fails at once."""
    pool = pool_of(1, ceiling=8)
    member = next(iter(pool))
    now, out = 0.0, []
    refused = Counter()
    for _ in range(3000):
        found = pool.choose("d", now)
        if isinstance(found, Wait) or len(out) > 6:
            if out:
                due, first = out.pop(0)
                now = max(now, due)
                end(pool, first, News.ANSWERED, now)
            else:
                now = found.until_due
            continue
        started = pool.sent(found, "d", now)
        if len(out) >= 2:
            refused[now > 60] += 1
            end(pool, started, News.PROXY, now)
        else:
            out.append((now + 0.1, started))
    assert member.limit <= 4
    assert refused[True] < 60


def test_cheaper_ones_go_first_and_dearer_ones_where_those_are_banned():
    pool = ProxyPool(u=dice(1), ban_rest_s=100.0, ceiling=2)
    pool.replace(read_proxies(["cheap:1", "dear:1 cost=10"])[0])
    out = ride(pool)
    assert out.name == "cheap:1"
    end(pool, out, News.BANNED, 0.0)
    assert ride(pool, now=1.0).name == "dear:1"
    assert ride(pool, "elsewhere", 1.0).name == "cheap:1"
    assert ride(pool, "elsewhere", 1.0).name == "cheap:1"
    assert pool.choose("elsewhere", 1.0) == Wait(math.inf, none_good=False)  # busy is not dead


def test_a_session_keeps_its_proxy_until_that_is_dead():
    pool = pool_of(5)
    found = {pool.choose("d", 0.0, "s").address.name for _ in range(10)}
    assert len(found) == 1
    out = pool.sent(pool.choose("d", 0.0, "s"), "d", 0.0)
    end(pool, out, News.PROXY, 0.0)
    assert pool.choose("d", 0.1, "s").address.name not in found


def test_a_changed_list_keeps_what_is_known_of_those_that_stay():
    pool = pool_of(3)
    fallen = ride(pool)
    end(pool, fallen, News.PROXY, 0.0)
    going = ride(pool, now=0.0)
    left = [m.address for m in pool if m.address.name != going.name]
    assert pool.replace([*left, *read_proxies(["new:1"])[0]]) == (1, 1)
    assert {m.address.name for m in pool if m.health is Health.RESTING} == {fallen.name}
    assert end(pool, going, News.ANSWERED, 1.0) is Charge.NOBODY
    names = {ride(pool, now=0.1).name for _ in range(8)}
    assert going.name not in names
    assert "new:1" in names


def test_by_proxy_each_pair_has_the_hosts_limit_of_its_own():
    pool = pool_of(
        3,
        limit_by=LimitBy.PROXY,
        pair_governor=lambda _: DomainGovernor(max_concurrency=1, min_interval_s=1.0, u=dice(1)),
    )
    out = [ride(pool) for _ in range(3)]
    assert len({r.name for r in out}) == 3
    assert isinstance(pool.choose("d", 0.0), Wait)
    end(pool, out[0], News.ANSWERED, 0.1)
    wait = pool.choose("d", 0.1)
    assert wait.until_due == pytest.approx(1.0)
    assert ride(pool, now=1.0).name == out[0].name


moves = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([*News, None, "replace"]),
        st.floats(0.0, 3.0),
        st.integers(0, 8),
    ),
    max_size=120,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves, st.sampled_from(list(LimitBy)))
def test_whatever_happens_limits_hold_and_nobody_waits_for_ever(steps, by):
    pool = pool_of(
        4,
        limit_by=by,
        ceiling=2,
        pair_governor=lambda _: DomainGovernor(max_concurrency=2, u=dice(1)),
    )
    now, out = 0.0, []
    for domain, news, passed, which in steps:
        now += passed
        found = pool.choose(f"d{domain}", now)
        if not isinstance(found, Wait):
            out.append(pool.sent(found, f"d{domain}", now))
        elif not out:
            assert now < found.until_due < math.inf  # nothing runs: time must bring somebody
        if news == "replace":
            pool.replace(read_proxies(f"10.0.0.{n}:1" for n in range(which % 3 + 1, 6))[0])
        elif out:
            gone = out.pop(which % len(out))
            if news is None:
                pool.abandoned(gone, now)
            else:
                end(pool, gone, news, now, tries=which)
        for member in pool:
            assert member.in_flight >= 0
            assert by is LimitBy.TARGET or member.in_flight <= 2
            assert (
                member.health is not Health.TRYING
                or sum(r.probe and r.member is member for r in out) <= 1
            )
    for gone in out:
        pool.abandoned(gone, now)
    found = pool.choose("d0", now)
    tries = 0
    while isinstance(found, Wait):
        assert now < found.until_due < math.inf
        now = found.until_due
        found = pool.choose("d0", now)
        tries += 1
        assert tries < 100
