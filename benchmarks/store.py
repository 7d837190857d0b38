"""What the job store and the codec cost for each request, and with a million of them waiting.

    python -m benchmarks.store [--rows 1000000] [--domains 50]

No crawl runs: these are the store's own calls, in batches as a busy crawl makes them. Figures are
for each request, medians over slices: of this thread's processor time, and of time by the clock.
Checkpoints, which run in a thread of their own, are apart.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import Request, Spider

from extensions.codec import RequestCodec
from extensions.stores.base import Batch, StagedItem, State, StoredRequest
from extensions.stores.sqlite import STORE_FILE, SqliteJobStore

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 500  # links of a busy flush
IN_FLIGHT = 16  # ends of one flush
LEASES = 4000
REFILL = 50


class Bench(Spider):
    """Has the callback that the requests name."""

    name = "bench"

    def parse_item(self, response: object) -> None:
        """Never called."""


def example(number: int, spider: Bench) -> Request:
    """A link as spiders yield them: callback, referer, depth."""
    return Request(
        f"https://www.example.com/catalogue/section/item-{number:08}.html",
        callback=spider.parse_item,
        headers={"Referer": "https://www.example.com/catalogue/"},
        meta={"depth": 3},
    )


def resident_mib() -> float:
    """Memory of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Watch:
    """Collects slices of work under a name, and prints a line for it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._busy_us: list[float] = []
        self._clock_us: list[float] = []

    @contextmanager
    def slice(self, requests: int) -> Iterator[None]:
        """Time what is done for so many requests."""
        busy, clock = time.thread_time(), time.perf_counter()
        yield
        self._busy_us.append((time.thread_time() - busy) / requests * 1e6)
        self._clock_us.append((time.perf_counter() - clock) / requests * 1e6)

    def show(self) -> None:
        """One line of the table."""
        if not self._busy_us:
            return
        busy, clock = statistics.median(self._busy_us), statistics.median(self._clock_us)
        print(f"{self._what:50} {busy:9.1f} us busy {clock:9.1f} us by the clock", flush=True)


def codec() -> None:
    """Writing and reading one request."""
    spider = Bench()
    worker = RequestCodec(spider=spider)
    requests = [example(n, spider) for n in range(2000)]
    plain = [Request(r.url, callback=spider.parse_item) for r in requests]
    for name, some in (("url and callback", plain), ("with referer and depth", requests)):
        writing, reading = Watch(f"write {name}"), Watch(f"read {name}")
        for _ in range(5):
            with writing.slice(len(some)):
                payloads = [worker.encode(r) for r in some]
            with reading.slice(len(some)):
                for payload in payloads:
                    worker.decode(payload)
        writing.show()
        reading.show()


def fill(store: SqliteJobStore, rows: int, domains: int) -> None:
    """Duplicate check and insert of *rows* links, in batches."""
    spider = Bench()
    payload = RequestCodec(spider=spider).encode(example(0, spider))
    checks, commits = Watch("duplicate check"), Watch(f"insert, {BATCH} links to a commit")
    checkpoints_s = []
    for first in range(0, rows, BATCH):
        prints = [hashlib.sha1(b"%d" % n).digest() for n in range(first, first + BATCH)]  # noqa: S324
        with checks.slice(BATCH):
            batch = Batch(seen=[f for f in prints if not store.seen(f)])
        with commits.slice(BATCH):
            batch.inserts = [
                StoredRequest(n + 1, f"{n % domains}.example.com", 0, n, payload)
                for n in range(first, first + BATCH)
            ]
            store.commit(batch)
        if store.checkpoint_due():
            began = time.perf_counter()
            store.checkpoint()
            checkpoints_s.append(time.perf_counter() - began)
    checks.show()
    commits.show()
    if checkpoints_s:
        middle = statistics.median(checkpoints_s)
        print(
            f"{len(checkpoints_s)} checkpoints: {middle:.3f} s, at most {max(checkpoints_s):.3f} s"
        )


def pass_through(store: SqliteJobStore, domains: int) -> None:
    """Refill, lease and acknowledge."""
    spider = Bench()
    worker = RequestCodec(spider=spider)
    refills = Watch(f"refill, {REFILL} rows at a time, and reading them")
    leases = Watch(f"lease, {IN_FLIGHT} to a commit")
    acks = Watch(f"acknowledge with an item, {IN_FLIGHT} to a commit")
    ids: list[int] = []
    for turn in range(LEASES // REFILL):
        with refills.slice(REFILL):
            rows = store.refill(f"{turn % domains}.example.com", REFILL)
            for row in rows:
                worker.decode(row.payload)
        ids += [row.id for row in rows]
    for first in range(0, LEASES, IN_FLIGHT):
        some = ids[first : first + IN_FLIGHT]
        with leases.slice(IN_FLIGHT):
            store.commit(Batch(moved=[(State.LEASED, i) for i in some]))
        with acks.slice(IN_FLIGHT):
            store.commit(Batch(done=some, items=[StagedItem('{"url": "x"}', i) for i in some]))
    for watch in (refills, leases, acks):
        watch.show()


def opened(path: Path) -> None:
    """Time and memory of opening what is there, in this fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        empty = SqliteJobStore(path=Path(folder, STORE_FILE))
        empty.open()  # what every job costs
        empty.close()
    before = resident_mib()
    store = SqliteJobStore(path=path)
    began = time.perf_counter()
    recovered = store.open()
    seconds = time.perf_counter() - began
    store.refill(recovered.backlogs[0].domain, 8)
    first = time.perf_counter() - began
    counts = store.counts()
    print(
        f"opened {counts.pending:,} pending of {len(recovered.backlogs)} domains in "
        f"{seconds:.2f} s, first rows after {first:.2f} s, "
        f"memory {resident_mib() - before:+.1f} MiB over an empty job",
        flush=True,
    )
    store.close()


def main() -> None:
    """Run all of it and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--domains", type=int, default=50)
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.open:
        opened(args.open)
        return
    codec()
    with tempfile.TemporaryDirectory(prefix="sluice-store-") as folder:
        path = Path(folder, STORE_FILE)
        store = SqliteJobStore(path=path)
        store.open()
        with closing(store):
            fill(store, args.rows, args.domains)
            print(f"{args.rows:,} pending: {path.stat().st_size / 2**20:,.0f} MiB on disk")
            pass_through(store, args.domains)
        command = [sys.executable, "-m", "benchmarks.store", "--open", str(path)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
