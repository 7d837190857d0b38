"""What every job store promises, run over each of them. A new store adds itself to `FACTORIES`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import pytest

from extensions.stores.base import (
    Batch,
    DeadLetter,
    JobLocked,
    JobStore,
    Recovered,
    StagedItem,
    State,
    StoredRequest,
    StoreError,
)
from extensions.stores.sqlite import SqliteJobStore
from tests.stores.settled import SettledRedisStore
from tests.valkey import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Factory(Protocol):
    """Makes a store over the job in *folder*, not yet open."""

    def __call__(self, folder: Path, *, max_crashes: int = 3) -> JobStore: ...


def sqlite(folder: Path, *, max_crashes: int = 3) -> JobStore:
    return SqliteJobStore(path=folder / "job.sqlite", max_crashes=max_crashes)


def sqlite_not_durable(folder: Path, *, max_crashes: int = 3) -> JobStore:
    return SqliteJobStore(path=folder / "job.sqlite", durable=False, max_crashes=max_crashes)


def redis_shared(folder: Path, *, max_crashes: int = 3) -> JobStore:
    return SettledRedisStore(server(folder).url, folder, max_crashes=max_crashes)  # type: ignore[return-value]


FACTORIES: list[Factory] = [sqlite, sqlite_not_durable, redis_shared]
SERVERS: dict[Path, ValkeyServer] = {}


def server(folder: Path) -> ValkeyServer:
    """The server of the test whose folder this is."""
    if folder not in SERVERS:
        SERVERS[folder] = ValkeyServer(folder / "valkey")
        SERVERS[folder].start()
    return SERVERS[folder]


class Job:
    """One job over several openings."""

    def __init__(self, factory: Factory, folder: Path) -> None:
        self.factory = factory
        self.folder = folder
        self.recovered: Recovered
        self.store = self.open()

    def open(self, **settings: int) -> JobStore:
        store = self.factory(self.folder, **settings)
        self.recovered = store.open()
        return store

    def reopen(self, **settings: int) -> Recovered:
        self.store.close()
        self.store = self.open(**settings)
        return self.recovered


@pytest.fixture(params=FACTORIES, ids=lambda f: f.__name__)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    job = Job(request.param, tmp_path)
    yield job
    job.store.close()
    if tmp_path in SERVERS:
        SERVERS.pop(tmp_path).close()


def request_row(id_: int, domain: str = "a.example", **values: object) -> StoredRequest:
    defaults: dict[str, object] = {"priority": 0, "rank": id_, "payload": b'{"url":"x"}'}
    return StoredRequest(id=id_, domain=domain, **(defaults | values))  # type: ignore[arg-type]


def letter(uid: str, **values: object) -> DeadLetter:
    defaults: dict[str, object] = {
        "kind": "request",
        "key": "k" + uid,
        "spider": "s",
        "url": "http://a.example/",
        "domain": "a.example",
        "reason": "http 503",
        "detail": "",
        "attempts": 3,
        "status": 503,
        "exception": None,
        "first_at": 1.0,
        "last_at": 2.0,
        "payload": b"{}",
        "dead_letter_id": None,
    }
    return DeadLetter(uid=uid, **(defaults | values))  # type: ignore[arg-type]


def ids(rows: list[StoredRequest]) -> list[int]:
    return [r.id for r in rows]


def test_a_new_store_is_empty(job: Job) -> None:
    assert not job.recovered.resumed
    assert job.recovered.backlogs == []
    assert job.recovered.delayed == 0
    assert job.recovered.next_due_at is None
    assert job.recovered.last_id % (1 << 32) == 0  # workers that share a job count from their own
    assert not job.recovered.crashed
    assert set(vars_of(job.store.counts()).values()) == {0}


def vars_of(counts: object) -> dict[str, int]:
    return {name: getattr(counts, name) for name in counts.__slots__}  # type: ignore[attr-defined]


def test_a_row_comes_back_as_it_was(job: Job) -> None:
    row = request_row(7, priority=-3, rank=11, payload=b"\x00\xff not even JSON")
    job.store.commit(Batch(inserts=[row]))
    (back,) = job.store.refill("a.example", 10)
    row.state = State.WINDOW
    assert back == row


def test_refill_goes_by_priority_then_rank_within_a_domain(job: Job) -> None:
    rows = [
        request_row(1, priority=0, rank=5),
        request_row(2, priority=9, rank=6),
        request_row(3, priority=0, rank=1),
        request_row(4, priority=9, rank=2),
        request_row(5, domain="b.example", priority=99),
    ]
    job.store.commit(Batch(inserts=rows))
    assert ids(job.store.refill("a.example", 3)) == [4, 2, 3]
    assert ids(job.store.refill("a.example", 3)) == [1]
    assert job.store.refill("a.example", 3) == []
    assert ids(job.store.refill("b.example", 3)) == [5]
    assert job.store.counts().window == 5


def test_a_priority_beyond_64_bits_keeps_its_order(job: Job) -> None:
    rows = [request_row(1, priority=-(10**30)), request_row(2), request_row(3, priority=10**400)]
    job.store.commit(Batch(inserts=rows))
    assert ids(job.store.refill("a.example", 9)) == [3, 2, 1]


def test_seen_holds_committed_fingerprints_only_once(job: Job) -> None:
    assert not job.store.seen(b"1" * 20)
    job.store.commit(Batch(seen=[b"1" * 20, b"2" * 20, b"1" * 20]))
    job.store.commit(Batch(seen=[b"1" * 20]))
    assert job.store.seen(b"1" * 20)
    assert not job.store.seen(b"3" * 20)
    assert job.store.counts().seen == 2
    job.reopen()
    assert job.store.seen(b"2" * 20)
    assert job.store.counts().seen == 2


def test_delayed_rows_come_when_they_are_due(job: Job) -> None:
    now = time.time()
    job.store.commit(Batch(inserts=[request_row(i) for i in (1, 2, 3)]))
    job.store.commit(Batch(delayed=[(now + 30, 1), (now + 10, 2), (now + 20, 3)]))
    assert job.store.counts().delayed == 3
    assert job.store.refill_due(now, 9) == ([], now + 10)
    rows, next_due_at = job.store.refill_due(now + 25, 9)
    assert ids(rows) == [2, 3]
    assert [(r.state, r.due_at) for r in rows] == [(State.WINDOW, None)] * 2
    assert next_due_at == now + 30
    rows, next_due_at = job.store.refill_due(now + 99, 9)
    assert (ids(rows), next_due_at) == ([1], None)


def test_no_more_delayed_rows_come_than_were_asked_for(job: Job) -> None:
    rows = [request_row(i, state=State.DELAYED, due_at=100.0 + i) for i in range(1, 5)]
    job.store.commit(Batch(inserts=rows))
    first, next_due_at = job.store.refill_due(1000.0, 3)
    assert (ids(first), next_due_at) == ([1, 2, 3], 104.0)


def test_an_acknowledgement_frees_the_children_that_were_held(job: Job) -> None:
    children = [request_row(i, state=State.HELD, parent=1) for i in (2, 3)]
    job.store.commit(Batch(inserts=[request_row(1, state=State.LEASED), *children]))
    assert job.store.refill("a.example", 9) == []
    assert job.store.counts().held == 2
    job.store.commit(Batch(done=[1]))
    freed = job.store.refill("a.example", 9)
    assert ids(freed) == [2, 3]
    assert [r.parent for r in freed] == [None, None]
    assert job.store.counts().held == 0


def test_a_held_child_moved_in_the_same_batch_is_not_freed_twice(job: Job) -> None:
    child = request_row(2, state=State.HELD, parent=1)
    job.store.commit(Batch(inserts=[request_row(1, state=State.LEASED), child]))
    job.store.commit(Batch(moved=[(State.WINDOW, 2)], done=[1]))
    assert job.store.refill("a.example", 9) == []
    assert job.store.counts().window == 1


def test_lists_of_a_batch_are_applied_in_order(job: Job) -> None:
    batch = Batch(
        inserts=[request_row(1), request_row(2), request_row(3)],
        moved=[(State.WINDOW, 1), (State.LEASED, 1), (State.WINDOW, 2), (State.PENDING, 2)],
        delayed=[(50.0, 3)],
        done=[1],
    )
    job.store.commit(batch)
    counts = job.store.counts()
    assert (counts.pending, counts.window, counts.leased, counts.delayed) == (1, 0, 0, 1)
    assert ids(job.store.refill("a.example", 9)) == [2]


def test_unknown_ids_change_nothing(job: Job) -> None:
    job.store.commit(Batch(moved=[(State.LEASED, 77)], delayed=[(1.0, 78)], done=[79, 79]))
    assert set(vars_of(job.store.counts()).values()) == {0}


def test_an_error_leaves_nothing_of_the_batch(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(1)]))
    bad = Batch(
        inserts=[request_row(2), request_row(1)], seen=[b"x" * 20], items=[StagedItem("{}")]
    )
    with pytest.raises(StoreError):
        job.store.commit(bad)
    counts = job.store.counts()
    assert (counts.pending, counts.seen, counts.outbox) == (1, 0, 0)
    assert not job.store.seen(b"x" * 20)
    bad.inserts.pop()
    job.store.commit(bad)
    assert job.store.counts().pending == 2
    assert job.store.seen(b"x" * 20)


def test_items_leave_in_order_and_their_ids_are_never_used_again(job: Job) -> None:
    job.store.commit(Batch(items=[StagedItem('{"n":1}', 5), StagedItem('{"n":2}', None)]))
    job.store.commit(Batch(items=[StagedItem('{"n":3}', 6)]))
    rows = job.store.outbox(0, 2)
    assert [item for _, item in rows] == [StagedItem('{"n":1}', 5), StagedItem('{"n":2}', None)]
    last = job.store.outbox(rows[-1][0], 9)
    assert [item.payload for _, item in last] == ['{"n":3}']
    job.store.forget_items(last[0][0])
    assert job.store.counts().outbox == 0
    job.reopen()
    job.store.commit(Batch(items=[StagedItem("{}")]))
    assert job.store.outbox(0, 9)[0][0] > last[0][0]


def test_dead_letters_are_stored_once_by_uid_and_come_back_whole(job: Job) -> None:
    first = letter("1", payload=b"\xff", exception="ValueError", dead_letter_id=4, status=None)
    job.store.commit(Batch(dead=[first, letter("2")]))
    job.store.commit(Batch(dead=[letter("1")]))
    rows = job.store.dead_outbox(9)
    assert [d for _, d in rows] == [first, letter("2")]
    assert job.store.dead_outbox(1) == rows[:1]
    assert job.store.counts().dead == 2
    job.store.forget_dead([rows[0][0]])
    job.reopen()
    assert [d.uid for _, d in job.store.dead_outbox(9)] == ["2"]
    assert job.store.counts().dead == 1


def test_facts_are_kept_and_replaced(job: Job) -> None:
    assert job.store.fact("start") is None
    job.store.commit(Batch(facts={"start": "1", "other": '"x"'}))
    job.store.commit(Batch(facts={"start": "2"}))
    job.reopen()
    assert job.store.fact("start") == "2"
    assert job.store.fact("other") == '"x"'


def test_a_reopened_job_names_its_backlogs(job: Job) -> None:
    rows = [
        request_row(1, priority=1, rank=9),
        request_row(2, priority=5, rank=8),
        request_row(3, priority=5, rank=3),
        request_row(4, domain="b.example", rank=2),
        request_row(5, domain="c.example", state=State.DELAYED, due_at=123.0),
    ]
    job.store.commit(Batch(inserts=rows))
    job.store.commit(Batch(done=[4], inserts=[request_row(6, domain="d.example")]))
    recovered = job.reopen()
    assert recovered.resumed
    assert [(b.domain, b.count, b.best_priority, b.best_rank) for b in recovered.backlogs] == [
        ("a.example", 3, 5, 3),
        ("d.example", 1, 0, 6),
    ]
    assert (recovered.delayed, recovered.next_due_at) == (1, 123.0)
    assert recovered.last_id >= 6


def test_whoever_closes_did_not_die(job: Job) -> None:
    assert not job.recovered.died
    assert not job.reopen().died
    job.store.commit(Batch(inserts=[request_row(1)]))
    assert not job.reopen().died


def test_the_last_id_outlives_its_row(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(41)]))
    job.store.commit(Batch(done=[41]))
    assert job.reopen().last_id >= 41


def test_what_was_in_flight_or_in_the_window_is_pending_again_and_what_was_held_is_gone(
    job: Job,
) -> None:
    rows = [
        request_row(1, state=State.LEASED, priority=2),
        request_row(2, state=State.WINDOW),
        request_row(3, state=State.HELD, parent=1),
        request_row(4),
        request_row(5, state=State.DELAYED, due_at=50.0),
    ]
    job.store.commit(Batch(inserts=rows))
    job.store.refill("a.example", 1)
    job.reopen()
    counts = job.store.counts()
    assert (counts.pending, counts.window, counts.leased, counts.delayed, counts.held) == (
        3,
        0,
        0,
        1,
        0,
    )
    back = job.store.refill("a.example", 9)
    assert [(r.id, r.crashes) for r in back] == [(1, 1), (2, 0), (4, 0)]


def test_a_request_in_flight_at_too_many_crashes_is_reported(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(1), request_row(2)]))
    for crash in (1, 2):
        job.store.refill("a.example", 1)
        job.store.commit(Batch(moved=[(State.LEASED, 1)]))
        assert not job.reopen().crashed, crash
    job.store.refill("a.example", 1)
    job.store.commit(Batch(moved=[(State.LEASED, 1)]))
    (crashed,) = job.reopen().crashed
    assert (crashed.id, crashed.crashes, crashed.state) == (1, 3, State.LEASED)
    assert ids(job.store.refill("a.example", 9)) == [2]
    job.store.commit(Batch(done=[1], dead=[letter("crash")]))
    assert not job.reopen().crashed


def test_a_request_that_was_never_alone_at_a_crash_is_not_blamed(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(1), request_row(2)]))
    for _ in range(5):
        job.store.refill("a.example", 2)
        job.store.commit(Batch(moved=[(State.LEASED, 1), (State.LEASED, 2)]))
        assert not job.reopen().crashed
    assert [r.crashes for r in job.store.refill("a.example", 2)] == [2, 2]
    job.store.commit(Batch(moved=[(State.LEASED, 2)]))
    assert not job.reopen().crashed  # a crash from outside may meet it alone
    assert job.store.refill("a.example", 2)[-1].id == 2
    job.store.commit(Batch(moved=[(State.LEASED, 2)]))
    assert [r.id for r in job.reopen().crashed] == [2]


def test_two_lone_crashes_that_are_not_in_a_row_prove_nothing(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(1), request_row(2)]))
    for together in ([1, 2], [1], [1, 2], [1]):
        job.store.refill("a.example", 2)
        job.store.commit(Batch(moved=[(State.LEASED, id_) for id_ in together]))
        assert not job.reopen().crashed
    assert [r.crashes for r in job.store.refill("a.example", 2)] == [2, 2]
    job.store.commit(Batch(moved=[(State.LEASED, 1)]))
    assert [r.id for r in job.reopen().crashed] == [1]


def test_a_lease_given_back_counts_no_crash(job: Job) -> None:
    job.store.commit(Batch(inserts=[request_row(1, state=State.LEASED)]))
    job.store.commit(Batch(moved=[(State.PENDING, 1)]))
    job.reopen()
    assert job.store.refill("a.example", 1)[0].crashes == 0


def test_counts_stay_true_over_a_checkpoint_and_a_reopening(job: Job) -> None:
    rows = [request_row(i, domain=f"{i % 3}.example") for i in range(1, 50)]
    job.store.commit(Batch(inserts=rows, seen=[bytes([i]) * 20 for i in range(49)]))
    job.store.commit(Batch(done=[1, 2, 3], moved=[(State.PENDING, 9)], delayed=[(1e10, 5)]))
    job.store.checkpoint()
    before = job.store.counts()
    assert (before.pending, before.delayed, before.seen) == (45, 1, 49)
    job.reopen()
    assert job.store.counts() == before


@pytest.mark.parametrize(
    "job", [sqlite, sqlite_not_durable], indirect=True, ids=lambda f: f.__name__
)
def test_a_second_store_on_the_same_job_is_refused_until_the_first_is_closed(job: Job) -> None:
    """A shared frontier is opened by many workers: it is left out."""
    second = job.factory(job.folder)
    with pytest.raises(JobLocked, match="works on this job"):
        second.open()
    job.store.commit(Batch(inserts=[request_row(1)]))
    job.store.close()
    assert second.open().resumed
    second.close()


def test_closing_twice_is_harmless_and_a_closed_store_says_so(job: Job) -> None:
    job.store.close()
    job.store.close()
    with pytest.raises(StoreError, match="not open"):
        job.store.commit(Batch(facts={"a": "1"}))
