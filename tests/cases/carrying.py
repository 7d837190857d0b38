"""A process to kill: it commits results to a job store and carries them to sinks.

usage: python -m tests.cases.carrying FOLDER TARGETS ITEMS DIE

DIE says where it kills itself: ``before:N`` or ``after:N`` the N-th write to the first sink,
``torn:N`` in the middle of that write, or ``never``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from extensions.results import encode_item
from extensions.stores.base import Batch, StagedItem
from extensions.stores.sinks import JsonLinesSink, make_sinks
from extensions.stores.sqlite import SqliteJobStore
from extensions.writer import ResultsWriter, WriterHooks

COMMIT_ITEMS = 40


def item(number: int) -> str:
    text = f"čísla {number} \u2028 \u2029 \x85 漢字 🐎 " * 40
    return encode_item({"url": f"http://h/{number}", "n": number, "text": text})


class Dying:
    """A sink that ends the process at one of its writes."""

    def __init__(self, sink: object, die: str) -> None:
        self.name = sink.name
        self.open = sink.open
        self.close = sink.close
        self._sink = sink
        self._where, _, count = die.partition(":")
        self._left = int(count or 0)

    def write(self, rows):
        self._left -= 1
        if self._left:
            return self._sink.write(rows)
        if self._where == "torn":
            assert isinstance(self._sink, JsonLinesSink)
            os.write(self._sink._fd, "".join(text + "\n" for _, text in rows).encode()[:-1000])
        if self._where == "after":
            self._sink.write(rows)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


async def carry(folder: Path, targets: str, items: int, die: str) -> None:
    store = SqliteJobStore(path=folder / "job.sqlite")
    store.open()
    batch = Batch()
    first, *others = make_sinks(targets, spider="shop", job="the job")
    writer = ResultsWriter(
        store=store,
        sinks=[Dying(first, die), *others],
        hooks=WriterHooks(
            record=batch.facts.__setitem__,
            dead=batch.dead.append,
            gone=sys.exit,
            room=lambda: None,
        ),
        job="the job",
        spider="shop",
        bound=500,
    )
    await writer.open()

    def commit() -> None:
        store.commit(batch)
        count = len(batch.items)
        batch.items.clear()
        batch.facts.clear()
        writer.committed(count, count)

    made = int(store.fact("made") or 0)
    while made < items:
        if writer.room_for(0):
            more = range(made + 1, min(items, made + COMMIT_ITEMS) + 1)
            batch.items += [StagedItem(item(number)) for number in more]
            made = more[-1]
            batch.facts["made"] = str(made)
        commit()
        await asyncio.sleep(0)
    left = await writer.close(60)
    commit()
    assert left == 0
    assert not store.outbox(0, 1)
    store.close()


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
