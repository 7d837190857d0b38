"""One code for any state, in at most 110 characters, and seconds that add up."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.bottleneck import (
    LEVELS,
    RULES,
    Cause,
    Code,
    Readings,
    code_of,
)
from extensions.policy.sentences import MAX_CLAUSE, MAX_SENTENCE, NAMES, clause, sentence
from extensions.policy.shown import AT_ONCE, Bottleneck

counts = st.integers(0, 10**13)
shares = st.floats(0, 1)
seconds = st.floats(0, 1e9)
moments = st.none() | st.floats(0, 4e9)
names = st.none() | st.text(max_size=300)
any_readings = st.builds(
    Readings,
    now_at=st.floats(0, 4e9),
    running_s=seconds,
    asked=counts,
    pages=counts,
    lost=counts,
    skipped=counts,
    pending=counts,
    delayed=counts,
    next_due_at=moments,
    last_due_at=moments,
    closed=st.booleans(),
    complete=st.booleans(),
    lost_domain=names,
    lost_there=counts,
    stopping=st.booleans(),
    stop_within_s=seconds,
    paused_since_at=moments,
    paused_by=st.text(max_size=99),
    disk_full=st.booleans(),
    free_bytes=counts,
    disk=st.text(max_size=300),
    store=st.text(max_size=99),
    store_silent_s=seconds,
    network_down=st.booleans(),
    sink=st.text(max_size=300),
    sink_down_s=seconds,
    sink_says=st.text(max_size=999),
    results_waiting=counts,
    results_bound=counts,
    results_share=shares,
    results_per_s=seconds,
    pages_would_per_s=seconds,
    backout_share=shares,
    backout_bytes=counts,
    cpu_share=shares,
    lag_s=seconds,
    rss_bytes=counts,
    rss_limit_bytes=counts,
    in_flight=counts,
    max_in_flight=counts,
    in_flight_share=shares,
    blocked=st.dictionaries(st.sampled_from(Cause), counts),
    growing=counts,
    domains=counts,
    slowest=names,
    slowest_per_s=st.none() | seconds,
    slowest_left_s=st.none() | seconds,
    held=names,
    held_why=st.text(max_size=99),
    held_until_at=moments,
    crawl_delay_domain=names,
    crawl_delay_s=seconds,
    user_delay_s=seconds,
    proxies=counts,
    healthy_proxies=counts,
    next_proxy_at=moments,
    seeds_done=st.booleans(),
    seed_wait_share=shares,
    seeds_per_s=seconds,
    pending_low=counts,
    gate_open=st.booleans(),
    robots_domains=counts,
    waits_for_seeds=st.booleans(),
    idle_since_at=moments,
    idle_until_at=moments,
    source=st.text(max_size=99),
)

NOW = 1_796_047_591.0
BUSY = {
    "now_at": NOW,
    "pages": 100,
    "asked": 900,
    "pending": 700,
    "domains": 33,
    "max_in_flight": 64,
}


def blocked(**by_cause: int) -> dict[Cause, int]:
    return {Cause(name): number for name, number in by_cause.items()}


CASES = {
    Code.FINISHED: {"closed": True, "complete": True, "stopping": True},
    Code.INCOMPLETE: {"closed": True, "lost": 3},
    Code.STOPPING: {"stopping": True, "paused_since_at": NOW},
    Code.PAUSED: {"paused_since_at": NOW - 60, "disk_full": True},
    Code.DISK_FULL: {"disk_full": True, "store_silent_s": 10},
    Code.STORE_UNREACHABLE: {"store_silent_s": 3.1, "network_down": True},
    Code.NETWORK_DOWN: {"network_down": True, "sink_down_s": 9},
    Code.SINK_DOWN: {"sink_down_s": 5.1, "results_share": 0.9},
    Code.WRITER_BEHIND: {"results_share": 0.51, "backout_share": 0.9},
    Code.PARSING_BEHIND: {"backout_share": 0.51, "cpu_share": 0.99, "lag_s": 1},
    Code.MACHINE_BUSY: {"cpu_share": 0.91, "lag_s": 0.11, "rss_bytes": 95, "rss_limit_bytes": 100},
    Code.MEMORY_NEAR: {"rss_bytes": 91, "rss_limit_bytes": 100, "in_flight_share": 1},
    Code.SLOTS_FULL: {"in_flight_share": 0.97, "in_flight": 63, "blocked": blocked(none=1, pace=9)},
    Code.NO_PROXY: {"blocked": blocked(proxy=4), "proxies": 20},
    Code.ONLY_WAITING: {"blocked": blocked(hold=1, down=2), "in_flight": 1, "pending": 9},
    Code.RETRIES_ONLY: {"pending": 0, "delayed": 214, "next_due_at": NOW + 180},
    Code.FEW_DOMAINS: {"blocked": blocked(pace=2, concurrency=1), "in_flight": 3},
    Code.POOL_LIMIT: {"blocked": blocked(pool=3, pace=2), "proxies": 20, "healthy_proxies": 12},
    Code.USER_LIMIT: {"blocked": blocked(user_delay=17, pace=16), "user_delay_s": 2.0},
    Code.CRAWL_DELAY: {"blocked": blocked(crawl_delay=21, pace=12)},
    Code.SITES_LIMIT: {"blocked": blocked(pace=20, concurrency=7, hold=6)},
    Code.SEEDS_SLOW: {"seeds_done": False, "pending": 1, "pending_low": 9, "seed_wait_share": 0.6},
    Code.STARTING: {"pages": 0, "robots_domains": 4, "domains": 13},
    Code.SPEEDING_UP: {"blocked": blocked(none=40), "growing": 20, "domains": 40},
    Code.IDLE: {
        "pending": 0,
        "waits_for_seeds": True,
        "source": "pages:start_urls",
        "seeds_done": False,
        "seed_wait_share": 1.0,
    },
    Code.MIXED: {"blocked": blocked(pace=12, hold=9, none=8)},
}


def readings(**changes: object) -> Readings:
    return Readings(**(BUSY | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("code", Code)
def test_each_row_of_the_table_can_be_reached_past_the_rows_below_it(code: Code) -> None:
    """Each code has a state of its own, which a later row would also claim."""
    assert code_of(readings(**CASES[code])) is code


def test_the_table_names_every_code_once() -> None:
    """No code is missing or double, and each has a short name."""
    assert [rule.code for rule in RULES] == list(Code)
    assert set(LEVELS) == set(NAMES) == set(Code)


@given(any_readings)
def test_any_state_has_one_code_and_a_sentence_that_fits(state: Readings) -> None:
    """Whatever the counters and names are, one code is found and its words fit."""
    said = sentence(code_of(state), state)
    assert len(said.text) <= MAX_SENTENCE
    assert said.text.isprintable()
    assert 0 < len(clause(said.text)) <= MAX_CLAUSE
    assert "nan" not in said.text
    assert len(said.domains) <= 3


@given(any_readings, st.sampled_from(Code))
def test_every_code_can_be_said_with_any_numbers(state: Readings, code: Code) -> None:
    """A code stays shown for seconds after its counters have moved on: it must still be sayable."""
    assert len(sentence(code, state).text) <= MAX_SENTENCE


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            Code.SITES_LIMIT,
            "Sites set the pace: 27 of 33 domains with work are at their own limit.",
        ),
        (Code.STARTING, "Starting: robots.txt read for 4 of 13 domains, no page yet."),
        (Code.MIXED, "Nothing dominates: 12 domains at their limit, 9 held, 8 could send."),
        (
            Code.POOL_LIMIT,
            "The proxies set the pace: 12 of 20 are healthy and carry all they may.",
        ),
        (Code.USER_LIMIT, "Your DOWNLOAD_DELAY of 2 s sets the pace on 17 of 33 domains."),
        (Code.IDLE, "Idle: no seed in pages:start_urls."),
    ],
)
def test_the_words_are_the_agreed_ones(code: Code, text: str) -> None:
    """The wording is an interface: screens and readers rely on it."""
    assert sentence(code, readings(**CASES[code])).text == text


CALM = readings(**CASES[Code.SITES_LIMIT])
SLOW = readings(**CASES[Code.WRITER_BEHIND])


def test_a_code_is_shown_after_three_of_five_samples() -> None:
    """A flicker of two samples is not shown; the third makes it a state."""
    shown = Bottleneck()
    for _ in range(10):
        shown.sample(CALM, elapsed_s=1)
    assert not shown.sample(SLOW, elapsed_s=1)
    assert not shown.sample(SLOW, elapsed_s=1)
    assert shown.sample(SLOW, elapsed_s=1)
    assert shown.code is Code.WRITER_BEHIND


def test_a_code_stays_for_five_seconds() -> None:
    """What was just shown does not go before it could be read."""
    shown = Bottleneck()
    shown.sample(CALM, elapsed_s=1)
    changes = [shown.sample(SLOW, elapsed_s=1) for _ in range(6)]
    assert changes == [False, False, False, False, True, False]


@pytest.mark.parametrize("code", sorted(AT_ONCE))
def test_a_fact_or_a_wish_shows_and_ends_at_once(code: Code) -> None:
    """Pause, stop, full disk: no one waits three seconds to see what they did."""
    shown = Bottleneck()
    shown.sample(CALM, elapsed_s=1)
    assert shown.sample(readings(**CASES[code]), elapsed_s=1)
    assert shown.code is code
    assert shown.sample(CALM, elapsed_s=1)
    assert shown.code is Code.SITES_LIMIT


@given(st.lists(st.tuples(st.sampled_from(Code), st.floats(0, 10)), max_size=60))
def test_the_seconds_add_up_and_the_spans_join(steps: list[tuple[Code, float]]) -> None:
    """Every second belongs to exactly one code, and the ribbon has no hole."""
    shown, now_at, total = Bottleneck(), NOW, 0.0
    for number, (code, elapsed_s) in enumerate(steps):
        now_at += elapsed_s
        total += elapsed_s if number else 0.0
        shown.sample(readings(**CASES[code], now_at=now_at), elapsed_s=elapsed_s)
    assert sum(shown.seconds.values()) == pytest.approx(total)
    spans = list(shown.spans)
    assert all(a.end_at == b.start_at for a, b in itertools.pairwise(spans))
    assert not spans or spans[-1].end_at == now_at


def test_the_seconds_of_an_earlier_process_are_added() -> None:
    """A resumed job tells of the whole job; names of another version do no harm."""
    shown = Bottleneck()
    shown.sample(CALM, elapsed_s=1)
    shown.sample(CALM, elapsed_s=2)
    later = Bottleneck()
    later.restore({**shown.snapshot(), "of_another_version": 9.0})
    assert later.seconds == {Code.SITES_LIMIT: 2.0}


def test_a_wait_that_is_over_is_not_counted_as_no_domains() -> None:
    """The code stays for some seconds after its cause: the sentence must be true then, too."""
    text = sentence(Code.ONLY_WAITING, readings(blocked=blocked(pace=1))).text
    assert text == "The hosts that were waited for may be asked again."


@pytest.mark.parametrize("code", [Code.USER_LIMIT, Code.CRAWL_DELAY, Code.SITES_LIMIT])
def test_a_code_that_outlasts_its_cause_counts_no_domains(code: Code) -> None:
    """No "0 of 2 domains", in the second in which nothing is kept so any more."""
    assert " 0 " not in sentence(code, readings(blocked=blocked(none=2), slowest="")).text


def test_a_sink_that_takes_nothing_says_why() -> None:
    """In the second line, so that nobody has to look for it in the log."""
    state = Readings(
        sink="PostgreSQL", sink_down_s=22, sink_says="connection refused.", results_waiting=4
    )
    assert sentence(Code.SINK_DOWN, state).hint.startswith("connection refused. Results are kept")
    assert sentence(Code.SINK_DOWN, Readings(sink_down_s=22)).hint.startswith("Results are kept")
