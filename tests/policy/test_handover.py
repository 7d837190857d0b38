"""What one holder of a domain tells the next: the next one asks for no more, and pays nothing again."""

from __future__ import annotations

import json
import random
import statistics

import pytest

from extensions.policy.governor import NOTHING, DomainGovernor
from extensions.policy.lab.servers import TokenBucket
from extensions.policy.lab.simulation import Client, Simulation, steady_latency
from extensions.policy.outcome import Outcome

GAP_S = 2.0
"""What it takes until a holder that died is missed."""


def governor(**settings) -> DomainGovernor:
    return DomainGovernor(max_concurrency=16, u=lambda: 0.0, **settings)


def answer(gov, now, outcome=Outcome.SUCCESS, **values):
    gov.next_send_due(now, 0)
    gov.finished(gov.sent(now), outcome, now + 0.05, latency_s=0.05, **values)


def heir(gov, now, *, age_s=0.0, died=False, **settings) -> DomainGovernor:
    kept = json.loads(json.dumps(gov.kept(now)))
    new = governor(**settings)
    new.take_over(kept, now + age_s, age_s=age_s, died=died)
    return new


def test_one_that_has_found_nothing_has_no_news():
    gov = governor()
    answer(gov, 0.0)
    assert gov.news == NOTHING
    answer(gov, 1.0, Outcome.REFUSED)
    assert gov.news != NOTHING


def test_a_wait_that_the_host_asked_for_goes_over_by_its_age():
    gov = governor()
    answer(gov, 0.0, Outcome.REFUSED, retry_after_s=60.0)
    new = heir(gov, 10.05, age_s=20.0)
    assert new.held_until == pytest.approx(60.05)
    assert heir(gov, 10.05, age_s=70.0).held_until is None


def test_refusals_in_a_row_go_on_where_they_were():
    gov = governor()
    for now in (0.0, 1.0, 5.0, 20.0):
        answer(gov, now, Outcome.REFUSED)
    assert gov.concurrency == 1
    new = heir(gov, 21.0, age_s=200.0)
    assert new.concurrency == 1
    assert new.next_send_due(221.0, 0) <= 221.0
    answer(new, 221.0, Outcome.REFUSED)
    assert new.held_until - 221.0 > gov.held_until - 20.0


def test_what_was_only_begun_is_told_more_carefully():
    """A first refusal shows little more than that there is a limit."""
    gov = governor()
    for n in range(20):
        answer(gov, 0.1 * n)
    answer(gov, 2.0, Outcome.REFUSED)
    new = heir(gov, 2.1, age_s=5.0)
    assert new.mark < gov.mark
    assert new.pace < gov.mark


def test_the_rest_before_a_probe_goes_over():
    gov = governor()
    now = 0.0
    while gov.mark is None or gov.held_until is not None or gov.pace >= gov.mark:
        now = max(now + 0.05, gov.next_send_due(now, 0))
        answer(gov, now, Outcome.REFUSED if int(now / 0.05) % 40 == 39 else Outcome.SUCCESS)
        assert now < 600
    new = heir(gov, now + 1.0)
    assert new.mark == gov.mark
    assert new.pace < new.mark


@pytest.mark.parametrize(("died", "due"), [(True, 105.0 + 60.0), (False, 60.0)])
def test_of_a_holder_that_died_nobody_knows_when_it_asked_last(died, due):
    gov = governor(min_interval_s=60.0)
    answer(gov, 0.0, Outcome.REFUSED)
    new = heir(gov, 5.0, age_s=100.0, died=died, min_interval_s=60.0)
    assert new.next_send_due(0.0, 0) == pytest.approx(due)


def test_what_cannot_be_meant_counts_as_not_said():
    new = governor()
    bad = {"mark": -1.0, "rest_s": float("nan"), "fails": -3, "held_s": None, "concurrency": 1e9}
    new.take_over(bad, 10.0, age_s=0.0, died=False)
    assert new.mark is None
    assert new.held_until is None
    assert 1 <= new.concurrency <= 16


class Relay:
    """Governs as one holder after another: each is killed *life_s* after it began, and is missed for a while."""

    def __init__(self, draw, *, life_s: float) -> None:
        self._draw = draw
        self._life_s = life_s
        self._gov = DomainGovernor(max_concurrency=16, u=draw)
        self._dies_due = life_s
        self._told = ({}, 0.0)
        self._news = NOTHING
        self._own = []

    def next_send_due(self, now, in_flight):
        if now >= self._dies_due:
            begins_due = self._dies_due + GAP_S
            if now < begins_due:
                return begins_due
            kept, told_due = self._told
            self._gov = DomainGovernor(max_concurrency=16, u=self._draw)
            self._gov.take_over(kept, now, age_s=now - told_due, died=True)
            self._dies_due, self._news, self._own = now + self._life_s, self._gov.news, []
        return self._gov.next_send_due(now, in_flight)

    def sent(self, now):
        self._own.append(self._gov.sent(now))
        return self._own[-1]

    def finished(self, ticket, outcome, now, **values):
        if now < self._dies_due and ticket in self._own:
            self._own.remove(ticket)
            self._gov.finished(ticket, outcome, now, **values)
            if self._gov.news != self._news:
                self._news = self._gov.news
                self._told = self._gov.kept(now), now

    def __getattr__(self, name):
        return getattr(self._gov, name)


@pytest.mark.parametrize("life_s", [1.0, 2.5, 4.0])
def test_a_limit_outlives_whoever_found_it(life_s):
    """Kills cost time, and no more refusals than a crawl that is left alone."""
    refused = {}
    for life in (1e9, life_s):
        refused[life] = []
        for seed in range(5):
            draw = random.Random(seed).random  # noqa: S311  a simulation, not a secret
            simulation = Simulation(draw=draw)
            client = Client(Relay(draw, life_s=life), latency_s=steady_latency(0.02), urls=400)
            simulation.add(client, TokenBucket(30, 10))
            assert simulation.run(600.0) < 600.0
            assert len(client.trace.accepted) == 400
            refused[life].append(len(client.trace.refused))
    assert statistics.mean(refused[life_s]) <= statistics.mean(refused[1e9]) + 1.0, refused
