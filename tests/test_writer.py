"""Results reach every sink once and in order, whatever it does; and the crawl is told to wait."""

import asyncio
import json
import sqlite3
import threading

import pytest
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.stores.base import Counts, StagedItem
from extensions.stores.sinks import JsonLinesSink, PoisonRow, SinkDown, SinkGone, Written
from extensions.stores.sinks.sql import SqlSink
from extensions.writer import ResultsWriter, SinkStatus, WriterHooks


class MemoryOutbox:
    """The part of a job store that the writer uses, with its promises and nothing else."""

    def __init__(self):
        self.rows = {}
        self.facts = {}
        self.last = 0
        self.threads = set()

    def add(self, count, size=0):
        for _ in range(count):
            self.last += 1
            fields = {"url": f"http://h/{self.last}", "n": self.last, "text": "x" * size}
            self.rows[self.last] = StagedItem(json.dumps(fields))
        return count

    def outbox(self, after, limit):
        self.threads.add(threading.current_thread())
        return [(row, item) for row, item in self.rows.items() if row > after][:limit]

    def forget_items(self, up_to):
        self.threads.add(threading.current_thread())
        self.rows = {row: item for row, item in self.rows.items() if row > up_to}

    def fact(self, name):
        return self.facts.get(name)

    def counts(self):
        return Counts(0, 0, 0, 0, 0, 0, outbox=len(self.rows), dead=0)


class ScriptedSink:
    """A real implementation of the protocol that fails when it is told to."""

    def __init__(self, name="scripted"):
        self.name = name
        self.got = []
        self.failures = []
        self.poison = set()
        self.may_write = threading.Event()
        self.may_write.set()
        self.opened_with = []
        self.closed = 0
        self.open_error = None

    def open(self, mark):
        self.opened_with.append(mark)
        if self.open_error:
            raise self.open_error

    def write(self, rows):
        self.may_write.wait(10)
        if self.failures:
            raise self.failures.pop(0)
        self.got += [row for row, _ in rows if row not in self.poison and row not in self.got]
        bad = [PoisonRow(row, "no") for row, _ in rows if row in self.poison]
        return Written(json.dumps({"row": rows[-1][0]}), bad)

    def close(self):
        self.closed += 1


class Owner:
    """What the scheduler does for the writer: a batch, a commit, and the news of it."""

    def __init__(self, store, sinks, **more):
        self.store = store
        self.facts = {}
        self.letters = []
        self.gone = []
        self.rooms = 0
        self.dirty = asyncio.Event()
        hooks = WriterHooks(self.record, self.letters.append, self.gone.append, self.room)
        self.writer = ResultsWriter(
            store=store, sinks=sinks, hooks=hooks, job="j", spider="shop", **more
        )

    def record(self, name, value):
        self.facts[name] = value
        self.dirty.set()

    def room(self):
        self.rooms += 1

    def commit(self, items=0, requests=0):
        self.store.facts.update(self.facts)
        self.facts = {}
        self.writer.committed(items, requests)

    async def until(self, condition, within_s=10):
        """Commit whenever there is something, as the flush timer does."""

        async def flush():
            while not condition():
                try:
                    await asyncio.wait_for(self.dirty.wait(), 0.01)
                except TimeoutError:
                    continue
                self.dirty.clear()
                self.commit()

        await asyncio.wait_for(flush(), within_s)


def jsonl_numbers(path):
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


@deferred_f_from_coro_f
async def test_results_reach_every_sink_and_are_forgotten(tmp_path):
    store = MemoryOutbox()
    sinks = [
        JsonLinesSink(path=tmp_path / "x.jsonl", job="j"),
        SqlSink(url=f"sqlite:///{tmp_path}/x.db", spider="shop", job="j"),
    ]
    owner = Owner(store, sinks)
    await owner.writer.open()
    owner.commit(store.add(1200), 1200)
    assert owner.writer.waiting == 1200
    await owner.until(lambda: not store.rows)
    assert owner.writer.waiting == 0
    assert await owner.writer.close() == 0
    assert jsonl_numbers(tmp_path / "x.jsonl") == list(range(1, 1201))
    connection = sqlite3.connect(tmp_path / "x.db")
    assert connection.execute("SELECT count(*) FROM results").fetchone() == (1200,)
    connection.close()
    assert store.threads == {threading.current_thread()}


@deferred_f_from_coro_f
async def test_nothing_is_forgotten_before_its_mark_is_committed():
    store, sink = MemoryOutbox(), ScriptedSink()
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.writer.committed(store.add(10), 10)
    await asyncio.wait_for(owner.dirty.wait(), 5)
    assert owner.facts
    assert len(store.rows) == 10
    owner.commit()
    assert not store.rows
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_start_goes_on_from_the_committed_mark():
    store, sink = MemoryOutbox(), ScriptedSink()
    store.add(10)
    store.facts["sink:scripted"] = json.dumps({"row": 4, "mark": "M"})
    owner = Owner(store, [sink])
    await owner.writer.open()
    assert sink.opened_with == ["M"]
    assert owner.writer.waiting == 6
    await owner.until(lambda: not store.rows)
    assert sink.got == [5, 6, 7, 8, 9, 10]
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_sink_that_is_down_is_tried_until_it_works_again(caplog):
    caplog.set_level("INFO")
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.failures = [SinkDown("no room"), SinkDown("no room")]
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.commit(store.add(3), 3)
    await owner.until(lambda: owner.writer.states[0].status is SinkStatus.DOWN)
    assert owner.writer.states[0].message == "no room"
    await owner.until(lambda: not store.rows)
    assert sink.got == [1, 2, 3]
    assert owner.writer.states[0].status is SinkStatus.OK
    assert caplog.text.count("a sink is down") == 1
    assert "works again" in caplog.text
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_sink_that_is_gone_is_told_once_and_keeps_its_rows(caplog):
    store, sink, other = MemoryOutbox(), ScriptedSink(), ScriptedSink("other")
    sink.failures = [SinkGone("no rights")]
    owner = Owner(store, [sink, other])
    await owner.writer.open()
    owner.commit(store.add(3), 3)
    await owner.until(lambda: owner.gone and other.got)
    assert owner.gone == ["no rights"]
    assert owner.writer.states[0].status is SinkStatus.GONE
    owner.commit()
    assert len(store.rows) == 3
    assert await owner.writer.close() == 3
    assert "a sink is gone" in caplog.text.lower()


@deferred_f_from_coro_f
async def test_a_sink_that_stays_down_too_long_is_gone(caplog):
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.failures = [SinkDown("no room")] * 100
    owner = Owner(store, [sink], give_up_after_s=0)
    await owner.writer.open()
    owner.commit(store.add(3), 3)
    await owner.until(lambda: owner.gone)
    assert "no room" in owner.gone[0]
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_sink_that_cannot_be_opened_ends_the_start():
    good, bad = ScriptedSink("good"), ScriptedSink("bad")
    bad.open_error = SinkDown("bad: no connection")
    owner = Owner(MemoryOutbox(), [good, bad])
    with pytest.raises(SinkDown, match="no connection"):
        await owner.writer.open()
    assert good.closed == 1


@deferred_f_from_coro_f
async def test_poison_rows_become_dead_letters_with_the_mark():
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.poison = {2}
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.commit(store.add(3), 3)
    await owner.until(lambda: not store.rows)
    [letter] = owner.letters
    assert (letter.kind, letter.reason, letter.url) == ("item", "refused by sink", "http://h/2")
    assert (letter.domain, letter.uid) == ("h", "j:sink:scripted:2")
    assert sink.got == [1, 3]
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_the_bound_closes_the_gate_until_half_has_drained():
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.may_write.clear()
    owner = Owner(store, [sink], bound=100)
    await owner.writer.open()
    owner.commit(store.add(99), 99)
    assert not owner.writer.too_deep
    assert owner.writer.room_for(in_flight=0)
    assert not owner.writer.room_for(in_flight=1)
    owner.commit(store.add(1), 1)
    assert owner.writer.too_deep
    assert owner.writer.states[0].status is SinkStatus.BEHIND
    rooms = owner.rooms
    sink.may_write.set()
    await owner.until(lambda: not owner.writer.too_deep)
    assert owner.writer.waiting <= 50
    assert owner.rooms > rooms
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_few_results_wait_for_more_and_a_batch_or_the_end_for_nothing():
    store, sink = MemoryOutbox(), ScriptedSink()
    owner = Owner(store, [sink], linger_s=3600.0)
    await owner.writer.open()
    await asyncio.sleep(
        0
    )  # it looks once for what an earlier run has left, and that is not lingered over
    owner.commit(store.add(4), 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert sink.got == []
    owner.commit(store.add(500), 100)
    await owner.until(lambda: len(sink.got) == 504)
    owner.commit(store.add(2), 1)
    await owner.writer.close(10.0)
    assert sink.got == list(range(1, 507))


@deferred_f_from_coro_f
async def test_a_small_bound_is_not_waited_at():
    store, sink = MemoryOutbox(), ScriptedSink()
    owner = Owner(store, [sink], bound=4, linger_s=3600.0)
    await owner.writer.open()
    for _ in range(3):
        owner.commit(store.add(4), 1)
        assert owner.writer.too_deep
        await owner.until(lambda: not owner.writer.too_deep)
    assert sink.got == list(range(1, 13))
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_requests_in_flight_are_given_room_by_what_pages_hold():
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.may_write.clear()
    owner = Owner(store, [sink], bound=500)
    await owner.writer.open()
    owner.commit(store.add(100), 10)  # ten results a page
    assert owner.writer.room_for(in_flight=39)
    assert not owner.writer.room_for(in_flight=40)
    assert owner.writer.room_for(in_flight=39, staged=390)  # nearly all of them are there already
    assert not owner.writer.room_for(in_flight=39, staged=391)
    owner.writer.note_page(11)
    assert not owner.writer.room_for(in_flight=39)
    assert owner.writer.room_for(in_flight=35)
    sink.may_write.set()
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_one_page_over_the_bound_goes_alone():
    store, sink = MemoryOutbox(), ScriptedSink()
    owner = Owner(store, [sink], bound=10)
    await owner.writer.open()
    owner.commit(store.add(1000), 1)
    assert owner.writer.too_deep
    await owner.until(lambda: not store.rows)
    assert owner.writer.room_for(in_flight=0)
    assert not owner.writer.room_for(in_flight=1)
    await owner.writer.close()


@deferred_f_from_coro_f
async def test_a_hanging_sink_does_not_hold_the_end():
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.may_write.clear()
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.commit(store.add(5), 5)
    assert await owner.writer.close(within_s=0.05) == 5
    assert len(store.rows) == 5
    sink.may_write.set()


@deferred_f_from_coro_f
async def test_a_sink_that_is_down_at_the_end_can_be_left(caplog):
    store, sink = MemoryOutbox(), ScriptedSink()
    sink.failures = [SinkDown("no room")] * 1000
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.commit(store.add(5), 5)
    closing = asyncio.ensure_future(owner.writer.close(within_s=60))
    await asyncio.sleep(0)
    owner.writer.hurry()
    assert await asyncio.wait_for(closing, 5) == 5
    assert sink.closed == 1


@deferred_f_from_coro_f
async def test_the_end_drains_what_waits():
    store, sink = MemoryOutbox(), ScriptedSink()
    owner = Owner(store, [sink])
    await owner.writer.open()
    owner.commit(store.add(2000), 2000)
    assert await owner.writer.close() == 0
    assert sink.got == list(range(1, 2001))
    assert sink.closed == 1
    owner.commit()
    assert not store.rows


@deferred_f_from_coro_f
async def test_without_sinks_results_are_forgotten():
    store = MemoryOutbox()
    owner = Owner(store, [])
    await owner.writer.open()
    owner.commit(store.add(5), 5)
    assert not store.rows
    assert not owner.writer.too_deep
    assert await owner.writer.close() == 0
