"""What is particular to the SQLite store: files, errors, clocks, sizes."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from extensions.stores import sqlitefile
from extensions.stores.base import (
    Batch,
    StagedItem,
    State,
    StoreBroken,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreTooNew,
)
from extensions.stores.sqlite import SqliteJobStore
from tests.stores.test_job_store_contract import request_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job" / "job.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteJobStore]:
    store = SqliteJobStore(path=path, busy_timeout_s=0.05)
    store.open()
    yield store
    store.close()


def test_a_temporary_store_leaves_nothing() -> None:
    store = SqliteJobStore(durable=False)
    store.open()
    folder = store.path.parent
    assert store.path.exists()
    store.close()
    assert not folder.exists()


def test_only_the_database_is_left_after_closing(store: SqliteJobStore, path: Path) -> None:
    store.commit(Batch(facts={"a": "1"}))
    store.close()
    assert [p.name for p in path.parent.iterdir()] == ["job.sqlite"]


def test_only_its_owner_may_read_a_job(store: SqliteJobStore, path: Path) -> None:
    store.commit(Batch(facts={"a": "1"}))
    modes = {p.name: p.stat().st_mode & 0o777 for p in path.parent.glob("job.sqlite*")}
    assert modes == {"job.sqlite": 0o600, "job.sqlite-wal": 0o600, "job.sqlite-shm": 0o600}


def test_an_older_schema_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteJobStore(path=path)
    store.open()
    store.commit(Batch(inserts=[request_row(1)]))
    store.close()
    monkeypatch.setattr(sqlitefile, "SCHEMA_VERSION", 2)
    steps = {1: lambda con: con.execute("ALTER TABLE request ADD COLUMN note TEXT")}
    monkeypatch.setattr(sqlitefile, "MIGRATIONS", steps)
    assert store.open().resumed
    assert store.counts().pending == 1
    store.close()
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("PRAGMA user_version").fetchone() == (2,)
        assert con.execute("SELECT note FROM request").fetchall() == [(None,)]


def test_a_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteJobStore(path=path)
    store.open()
    store.close()

    def broken(con: sqlite3.Connection) -> None:
        con.execute("CREATE TABLE half (a)")
        con.execute("CREATE TABLE half (a)")

    with monkeypatch.context() as newer:
        newer.setattr(sqlitefile, "SCHEMA_VERSION", 2)
        newer.setattr(sqlitefile, "MIGRATIONS", {1: broken})
        with pytest.raises(StoreError, match="half"):
            store.open()
    assert store.open().resumed
    store.close()


def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    store = SqliteJobStore(path=path)
    store.open()
    store.close()
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="schema 99"):
        store.open()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["job.sqlite"]


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\0"])
def test_what_is_no_database_is_refused_untouched(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreBroken, match="not a job store"):
        SqliteJobStore(path=path).open()
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE theirs (a)")
        con.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreBroken, match="another program"):
        SqliteJobStore(path=path).open()


def test_a_stump_of_a_creation_is_a_new_job(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"")
    store = SqliteJobStore(path=path)
    assert not store.open().resumed
    store.close()


def test_a_file_cut_short_is_named(path: Path) -> None:
    store = SqliteJobStore(path=path)
    store.open()
    store.commit(Batch(inserts=[request_row(i, payload=b"x" * 500) for i in range(1, 500)]))
    store.close()
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(StoreBroken):
        store.open()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreBroken, match="file"):
        SqliteJobStore(path=tmp_path / "file" / "job.sqlite").open()


def test_a_vanished_file_is_noticed_at_the_next_commit(store: SqliteJobStore, path: Path) -> None:
    path.unlink()
    with pytest.raises(StoreBroken, match="vanished"):
        store.commit(Batch(facts={"a": "1"}))


def test_a_replaced_file_is_noticed_at_the_next_commit(store: SqliteJobStore, path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.write_bytes(b"")
    with pytest.raises(StoreBroken, match="replaced"):
        store.commit(Batch(facts={"a": "1"}))


def test_the_job_of_another_spider_is_refused_and_left_as_it_is(path: Path) -> None:
    first = SqliteJobStore(path=path, spider="books")
    first.open()
    first.commit(Batch(inserts=[request_row(1)]))
    first.close()
    with pytest.raises(StoreError, match=r"spider books, not of quotes\. .*scrapy job clean"):
        SqliteJobStore(path=path, spider="quotes").open()
    again = SqliteJobStore(path=path, spider="books")
    assert [backlog.count for backlog in again.open().backlogs] == [1]
    again.close()


def test_a_kill_from_outside_that_meets_a_lone_request_does_not_blame_it(path: Path) -> None:
    def die_with(*ids: int) -> list[int]:
        store = SqliteJobStore(path=path)
        crashed = [row.id for row in store.open().crashed]
        if not crashed:
            store.refill("a.example", 9)
            store.commit(Batch(moved=[(State.LEASED, id_) for id_ in ids]))
        store._con, con = None, store._con  # as if killed: nothing is folded, nothing said
        assert con is not None
        con.close()
        store.close()
        return crashed

    store = SqliteJobStore(path=path)
    store.open()
    store.commit(Batch(inserts=[request_row(1), request_row(2), request_row(3)]))
    store.close()
    for ids in ((1, 2), (1, 2), (1,), (2,), (1,), (2, 3), (2,), (2,)):
        assert die_with(*ids) == []
    assert die_with() == [2]


def test_a_foreign_write_lock_is_named_and_passes(store: SqliteJobStore, path: Path) -> None:
    batch = Batch(facts={"a": "1"})
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another program"):
            store.commit(batch)
        other.execute("ROLLBACK")
    store.commit(batch)
    assert store.fact("a") == "1"


def test_a_full_store_takes_the_same_batch_when_there_is_room(path: Path) -> None:
    store = SqliteJobStore(path=path, max_pages=200)
    store.open()
    rows = iter([request_row(i, payload=b"x" * 3000) for i in range(1, 1000)])
    committed = 0
    with pytest.raises(StoreFull, match="no room"):
        while True:
            store.commit(Batch(inserts=[next(rows)], seen=[b"%20d" % committed]))
            committed += 1
    assert store.counts().pending == committed
    assert not store.seen(b"%20d" % committed)
    store.commit(Batch(done=list(range(1, 21))))
    store.commit(Batch(inserts=[request_row(5000, payload=b"x" * 3000)]))
    assert store.counts().pending == committed - 19
    store.close()


def test_a_clock_set_back_does_not_stretch_delays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteJobStore(path=path)
    store.open()
    now = time.time()
    store.commit(Batch(inserts=[request_row(1, state=State.DELAYED, due_at=now + 5)]))
    store.close()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    next_due_at = store.open().next_due_at
    store.close()
    assert next_due_at is not None
    assert next_due_at - time.time() <= 5.1


def test_a_reader_beside_a_running_job_sees_what_was_committed(
    store: SqliteJobStore, path: Path
) -> None:
    store.commit(Batch(inserts=[request_row(1)], items=[StagedItem("{}")]))
    with closing(sqlitefile.connect_to_read(path)) as con:
        assert con.execute("SELECT pending, outbox FROM tally").fetchone() == (1, 1)
        with pytest.raises(sqlite3.OperationalError):
            con.execute("DELETE FROM request")


def test_a_drained_job_shrinks(store: SqliteJobStore, path: Path) -> None:
    for first in range(1, 4000, 400):
        rows = [request_row(i, payload=b"x" * 1000) for i in range(first, first + 400)]
        store.commit(Batch(inserts=rows))
    store.checkpoint()
    full = path.stat().st_size
    store.commit(Batch(done=list(range(1, 4001))))
    store.checkpoint()
    assert path.stat().st_size < full / 2


def test_the_log_starts_over_after_a_checkpoint(store: SqliteJobStore, path: Path) -> None:
    wal = path.with_name("job.sqlite-wal")
    for first in range(1, 12_001, 400):
        rows = [request_row(i, payload=b"x" * 1000) for i in range(first, first + 400)]
        store.commit(Batch(inserts=rows))
        if store.checkpoint_due():
            store.checkpoint()
            assert not store.checkpoint_due()
        assert wal.stat().st_size < 8 << 20


def test_merged_fingerprints_are_still_seen_and_counted_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extensions.stores.sqliteseen.MERGE_AT", 100)
    rng = random.Random(1)  # noqa: S311
    store = SqliteJobStore(path=path)
    store.open()
    committed = [rng.randbytes(20) for _ in range(250)]
    for i in range(0, 250, 50):
        store.commit(Batch(seen=committed[i : i + 50]))
        if store.checkpoint_due():
            store.checkpoint()
    store.commit(Batch(seen=committed[:3]))  # in the table already
    assert all(store.seen(f) for f in committed)
    assert not any(store.seen(rng.randbytes(20)) for _ in range(250))
    store.commit(Batch(seen=[rng.randbytes(20) for _ in range(100)]))
    store.checkpoint()
    assert store.counts().seen == 350
    store.close()
    store.open()
    assert all(store.seen(f) for f in committed)
    store.close()


def test_commits_go_on_beside_a_checkpoint_in_a_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extensions.stores.sqliteseen.MERGE_AT", 500)
    store = SqliteJobStore(path=path)
    store.open()
    stop = threading.Event()
    errors: list[Exception] = []

    def checkpoint() -> None:
        while not stop.is_set():
            try:
                store.checkpoint()
            except StoreError as e:
                errors.append(e)

    thread = threading.Thread(target=checkpoint)
    thread.start()
    try:
        for i in range(300):
            rows = [request_row(i * 10 + k + 1) for k in range(10)]
            store.commit(Batch(inserts=rows, seen=[b"%020d" % r.id for r in rows]))
            store.refill("a.example", 3)
    finally:
        stop.set()
        thread.join()
    assert not errors
    assert all(store.seen(b"%020d" % i) for i in range(1, 3001))
    counts = store.counts()
    assert (counts.pending, counts.window, counts.seen) == (2100, 900, 3000)
    store.close()
