"""Letters reach the file, replays come back, and a file that fails stops nothing."""

import asyncio
import json
import sqlite3

from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.deadletterpost import CLAIM_FACT, DeadLetterPost, PostHooks
from extensions.stores.deadletters import DeadLetterFile
from tests.stores.test_deadletter_contract import letter


class MemoryOutbox:
    """The part of a job store that the post uses."""

    def __init__(self):
        self.letters = {}
        self.facts = {}

    def add(self, *letters):
        for one in letters:
            self.letters[len(self.letters) + 1] = one

    def dead_outbox(self, limit):
        return list(self.letters.items())[:limit]

    def forget_dead(self, ids):
        for id_ in ids:
            del self.letters[id_]

    def fact(self, name):
        return self.facts.get(name)


class Owner:
    def __init__(self, path, store=None, folder=None):
        self.store = store or MemoryOutbox()
        self.revived = []
        self.facts = {}
        self.post = DeadLetterPost(
            place=DeadLetterFile(path),
            store=self.store,
            hooks=PostHooks(self.facts.__setitem__, self.revived.extend),
            job="j",
            spider="shop",
            arguments={},
            folder=folder,
        )


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), 10)


@deferred_f_from_coro_f
async def test_letters_are_carried_and_forgotten(tmp_path):
    owner = Owner(tmp_path / "x.sqlite")
    await owner.post.open()
    owner.store.add(*(letter(n) for n in range(500)))
    owner.post.committed()
    await until(lambda: not owner.store.letters)
    owner.store.add(letter(1000))
    assert await owner.post.close() == 0
    with DeadLetterFile(tmp_path / "x.sqlite") as file:
        assert file.count() == 501


@deferred_f_from_coro_f
async def test_what_is_requested_comes_back_at_the_start_and_later(tmp_path):
    with DeadLetterFile(tmp_path / "x.sqlite") as file:
        file.put_many(letter(n) for n in range(250))
        file.request_replay()
        owner = Owner(tmp_path / "x.sqlite")
        await owner.post.open()
        assert len(owner.revived) == 200
        assert owner.post.has_more
        await until(lambda: not owner.post.has_more)
        assert len(owner.revived) == 250
        assert json.loads(owner.facts[CLAIM_FACT]) == 2
        file.put_many([letter(999)])
        file.request_replay()
        await until(lambda: len(owner.revived) == 251)
        await owner.post.close()


@deferred_f_from_coro_f
async def test_a_claim_that_the_job_never_committed_comes_again(tmp_path):
    with DeadLetterFile(tmp_path / "x.sqlite") as file:
        file.put_many([letter(1)])
        file.request_replay()
    first = Owner(tmp_path / "x.sqlite", folder=tmp_path)
    await first.post.open()
    assert len(first.revived) == 1
    await first.post.close()
    for committed, expected in ((False, 1), (True, 0)):
        again = Owner(tmp_path / "x.sqlite", folder=tmp_path)
        if committed:
            again.store.facts = dict(first.facts)
        await again.post.open()
        assert len(again.revived) == expected
        await again.post.close()
        first = again


@deferred_f_from_coro_f
async def test_a_file_that_fails_keeps_letters_in_the_job(tmp_path, caplog):
    owner = Owner(tmp_path / "x.sqlite")
    await owner.post.open()
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    connection.execute("DROP TABLE letters")
    connection.close()
    owner.store.add(letter(1))
    owner.post.committed()
    await until(lambda: "wait in the job store" in caplog.text)
    assert await owner.post.close() == 1


@deferred_f_from_coro_f
async def test_it_closes_at_whatever_step_news_meet_it(tmp_path):
    for steps in range(8):
        owner = Owner(tmp_path / f"{steps}.sqlite")
        await owner.post.open()
        await asyncio.sleep(0.05)  # it waits for news now
        owner.store.add(letter(steps))
        owner.post.committed()
        for _ in range(steps):
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert await owner.post.close() == 0
