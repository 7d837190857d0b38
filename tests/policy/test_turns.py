"""Whose turn it is."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.turns import Turns


def drain(turns: Turns) -> list[str]:
    order = []
    while (name := turns.next_ready()) is not None:
        order.append(name)
    return order


def test_equals_take_turns() -> None:
    turns = Turns()
    for name in "abc":
        turns.ready(name, 0)
    first = turns.next_ready()
    turns.ready(str(first), 0)
    assert drain(turns) == ["b", "c", "a"]


def test_the_more_urgent_goes_first() -> None:
    turns = Turns()
    turns.ready("a", 0)
    turns.ready("b", 5)
    assert drain(turns) == ["b", "a"]


def test_new_work_makes_a_ready_domain_more_urgent() -> None:
    turns = Turns()
    turns.ready("a", 1)
    turns.ready("b", 0)
    turns.work_came("b", 2)
    assert drain(turns) == ["b", "a"]


def test_new_work_wakes_neither_sleepers_nor_the_blocked() -> None:
    turns = Turns()
    turns.sleep("a", 10.0)
    turns.sleep("b", math.inf)
    turns.work_came("a", 9)
    turns.work_came("b", 9)
    assert turns.next_ready() is None
    assert turns.woken(10.0) == ["a"]


def test_a_later_move_makes_the_earlier_one_stale() -> None:
    turns = Turns()
    turns.sleep("a", 1.0)
    turns.sleep("a", 5.0)
    assert turns.next_wake_due() == 5.0
    assert turns.woken(2.0) == []
    turns.ready("a", 0)
    assert turns.next_wake_due() == math.inf
    assert drain(turns) == ["a"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.sampled_from(["ready", "sleep", "block", "take", "forget"])
        )
    )
)
def test_a_domain_stands_in_at_most_one_place(moves: list[tuple[str, str]]) -> None:
    turns = Turns()
    for name, move in moves:
        if move == "ready":
            turns.ready(name, 0)
        elif move == "sleep":
            turns.sleep(name, 1.0)
        elif move == "block":
            turns.sleep(name, math.inf)
        elif move == "forget":
            turns.forget(name)
        else:
            turns.next_ready()
    seen = [*drain(turns), *turns.woken(math.inf)]
    assert len(seen) == len(set(seen))
