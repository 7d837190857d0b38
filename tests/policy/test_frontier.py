"""The frontier against a plain sorted list: same order, nothing lost, memory bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.frontier import Entry, Frontier


def entry(number: int, *, domain: str = "a", priority: int = 0, storable: bool = True) -> Entry:
    return Entry(
        id=number,
        domain=domain,
        priority=priority,
        rank=-number,
        request=object(),
        storable=storable,
    )


class Disk:
    """What the job store would hold: spilled entries by domain."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Entry]] = {}

    def keep(self, spilled: Entry | None) -> None:
        if spilled is not None:
            self.rows.setdefault(spilled.domain, []).append(spilled)

    def refill(self, frontier: Frontier) -> None:
        for domain, wanted in frontier.wanting():
            rows = sorted(self.rows.get(domain, []), key=lambda e: (-e.priority, e.rank))
            self.rows[domain] = rows[wanted:]
            frontier.refill(domain, rows[:wanted])


MOVES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.integers(-2, 2)),
        st.sampled_from("abc"),
    ),
    max_size=120,
)


@given(MOVES, st.integers(1, 12))
def test_each_domain_comes_out_in_order_whatever_was_spilled(
    moves: list[tuple[str, int] | str], window: int
) -> None:
    frontier, disk = Frontier(window=window), Disk()
    waiting: dict[str, list[Entry]] = {"a": [], "b": [], "c": []}
    for number, move in enumerate(moves):
        if isinstance(move, tuple):
            new = entry(number, domain=move[0], priority=move[1])
            waiting[move[0]].append(new)
            disk.keep(frontier.push(new))
        else:
            expected = sorted(waiting[move], key=lambda e: (-e.priority, e.rank))
            taken = frontier.pop(move)
            assert taken is (expected[0] if expected else None)
            if taken is not None:
                waiting[move].remove(taken)
        disk.refill(frontier)
        assert frontier.pending == sum(map(len, waiting.values()))
        assert frontier.on_disk == sum(map(len, disk.rows.values()))


@given(st.lists(st.sampled_from("abcdefgh"), max_size=200), st.integers(1, 20))
def test_memory_holds_at_most_a_share_for_each_domain(domains: list[str], window: int) -> None:
    frontier = Frontier(window=window)
    for number, domain in enumerate(domains):
        frontier.push(entry(number, domain=domain))
    for _, queue in frontier.domains():
        assert queue.in_memory <= window


def test_what_cannot_be_stored_stays_in_memory() -> None:
    frontier = Frontier(window=1)
    kept = entry(1, storable=False)
    frontier.push(kept)
    assert frontier.push(entry(2, priority=-1)) is not kept
    assert frontier.pop("a") is kept


def test_a_spill_that_cannot_be_stored_comes_back() -> None:
    frontier = Frontier(window=1)
    frontier.push(entry(1))
    spilled = frontier.push(entry(2))
    assert spilled is not None
    frontier.unspill(spilled)
    assert (frontier.in_memory, frontier.on_disk, frontier.pending) == (2, 0, 2)


def test_a_drained_domain_is_forgotten() -> None:
    frontier = Frontier(window=4)
    frontier.push(entry(1))
    frontier.pop("a")
    assert "a" not in frontier
    assert list(frontier.domains()) == []


def test_rows_that_vanished_from_the_store_do_not_keep_a_domain_waiting() -> None:
    frontier = Frontier(window=4)
    frontier.note_on_disk("a", 3, 0, 0)
    assert frontier.wanting() == [("a", 4)]
    frontier.refill("a", [])
    assert frontier.pending == 0
    assert "a" not in frontier
