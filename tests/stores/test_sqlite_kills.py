"""A process that is killed while it commits loses at most the batch that it was committing."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from extensions.stores.base import State
from extensions.stores.sqlite import SqliteJobStore
from extensions.stores.sqliterows import Tally

if TYPE_CHECKING:
    from pathlib import Path

# Batch n inserts two requests, leases the first and acknowledges its predecessor with an item.
WORK = """
import sys, threading
from extensions.stores import sqliteseen
from extensions.stores.base import Batch, StagedItem, State, StoredRequest
from extensions.stores.sqlite import SqliteJobStore

sqliteseen.MERGE_AT = 200
store = SqliteJobStore(path=sys.argv[1])
store.open()
n = int(store.fact("n") or 0)
said = n
while True:
    n += 1
    first, second = 2 * n - 1, 2 * n
    rows = [StoredRequest(i, "a.example", 0, i, b"x" * 400) for i in (first, second)]
    batch = Batch(inserts=rows, seen=[b"%020d" % first, b"%020d" % second], facts={"n": str(n)})
    batch.moved = [(State.LEASED, first)]
    if n > 1:
        batch.done = [first - 2]
        batch.items = [StagedItem(str(n - 1), first - 2)]
    store.commit(batch)
    print(n, flush=True)
    if store.checkpoint_due():
        threading.Thread(target=store.checkpoint).start()
"""


def live_and_die(path: Path, after_s: float) -> int:
    """One life; returns the last batch that it said was committed."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = int(child.stdout.readline())
        time.sleep(after_s)
        child.kill()
        rest = child.stdout.read().split("\n")[:-1]  # the last line may be torn
        return int(rest[-1]) if rest else said


@pytest.mark.parametrize("seed", range(2))
def test_every_batch_is_there_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (no secret)
    path = tmp_path / "job.sqlite"
    for life in range(3):
        said = live_and_die(path, rng.uniform(0.0, 0.4))
        store = SqliteJobStore(path=path, max_crashes=99)
        assert store.open().died
        n = int(store.fact("n") or 0)
        assert n in {said, said + 1}, "what was committed is there; at most one more was"
        assert store.seen(b"%020d" % (2 * n))
        assert not store.seen(b"%020d" % (2 * n + 1))
        items = [item for _, item in store.outbox(0, 10**6)]
        assert [item.payload for item in items] == [str(i) for i in range(1, n)]
        counts = store.counts()
        assert (counts.pending, counts.leased) == (n + 1, 0), f"life {life}"
        assert counts.seen == 2 * n
        assert counts.outbox == n - 1
        rows = store.refill("a.example", 10**6)
        assert [r.id for r in rows if r.crashes] == [2 * n - 1]
        store.close()
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        states = dict(con.execute("SELECT state, count(*) FROM request GROUP BY state"))
        tally = Tally.read(con)
    assert (
        states.get(State.PENDING, 0) + states.get(State.WINDOW, 0) == tally.pending + tally.window
    )
