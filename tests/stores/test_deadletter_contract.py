"""One thing is one row, one row is replayed by one job, and a crash loses neither: in a file and in Redis."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from redis import Redis

from extensions.stores.deadletter_filters import LetterFilter
from extensions.stores.deadletters import DeadLetterFile, arguments_text, settled
from extensions.stores.redisletters import RedisDeadLetters
from tests.letters import letter
from tests.valkey import valkey


class Files:
    """Dead letters in a file."""

    def __init__(self, folder):
        self.path = folder / "deadletters" / "shop.sqlite"
        self.made = f"DeadLetterFile({str(self.path)!r})"

    def one(self):
        return DeadLetterFile(self.path)

    def make_dead(self, file):
        connection = sqlite3.connect(self.path)
        [holder] = connection.execute("SELECT holder FROM runs WHERE id = ?", (file._run,))
        holder = json.dumps(json.loads(holder[0]) | {"born": "another process"})
        connection.execute("UPDATE runs SET holder = ? WHERE id = ?", (holder, file._run))
        connection.commit()
        connection.close()
        file._connection.close()
        file._connection = None


class InRedis:
    """Dead letters in a real Valkey."""

    def __init__(self, server):
        self.server = server
        self.made = (
            f"RedisDeadLetters(client=Redis(port={server.port}), key='shop:deadletters', place='p')"
        )

    def one(self):
        client = Redis(port=self.server.port)
        return RedisDeadLetters(client=client, key="shop:deadletters", place="p")

    def make_dead(self, file):
        key = "shop:deadletters:runs"
        run = json.loads(self.server.client.hget(key, file._run))
        run["holder"] = json.dumps(json.loads(run["holder"]) | {"born": "another process"})
        self.server.client.hset(key, file._run, json.dumps(run))
        file._run = None
        file._client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with valkey(tmp_path_factory.mktemp("valkey")) as running:
        yield running


@pytest.fixture(params=["file", "redis"])
def place(request, tmp_path):
    if request.param == "file":
        yield Files(tmp_path)
    else:
        server = request.getfixturevalue("server")
        server.client.flushall()
        yield InRedis(server)


@pytest.fixture
def open_file(place):
    files = []

    def make(job="j1", **run):
        file = place.one().open()
        files.append(file)
        if job is not None:
            file.open_run(job=job, spider="shop", arguments=run.pop("arguments", {}), **run)
        return file

    yield make
    for file in files:
        file.close()


def states(file):
    return {row.url.rpartition("/")[2]: row.state for row in file.rows(newest_first=False)}


def test_letters_are_kept_with_all_their_fields(open_file):
    file = open_file(arguments={"url": "http://h/", "_job": "1"})
    file.put_many([letter(1, exception="x.Y", payload=b"\xff")])
    [row] = file.rows()
    assert (row.url, row.reason, row.status, row.attempts) == ("http://h/1", "http 503", 503, 3)
    assert (row.first_at, row.last_at, row.replays, row.state) == (1001.0, 2001.0, 0, "dead")
    assert (row.exception, row.payload) == ("x.Y", b"\xff")
    assert json.loads(row.arguments) == {"url": "http://h/"}


def test_a_letter_put_twice_is_one_failure(open_file):
    file = open_file()
    file.put_many([letter(1), letter(2)])
    file.put_many([letter(1), letter(2)])
    assert [row.attempts for row in file.rows()] == [3, 3]


def test_a_purged_letter_that_is_sent_again_stays_away(open_file):
    file = open_file()
    file.put_many([letter(1)])
    assert file.purge() == 1
    file.put_many([letter(1)])
    assert file.count() == 0


def test_the_same_thing_failing_in_another_run_updates_its_row(open_file):
    file = open_file()
    file.put_many([letter(1)])
    new = letter(1, uid="v", reason="timeout", status=None, first_at=5000.0, last_at=6000.0)
    file.put_many([new])
    [row] = file.rows()
    assert (row.attempts, row.reason, row.status) == (6, "timeout", None)
    assert (row.first_at, row.last_at, row.replays) == (1001.0, 6000.0, 0)


def test_a_replay_that_ends_well_removes_the_row(open_file):
    file = open_file()
    file.put_many([letter(1), letter(2)])
    assert file.request_replay(LetterFilter(url="/1")).groups == {("shop", "{}"): 1}
    claim = file.claim(10)
    assert [row.key for row in claim.rows] == ["k1"]
    assert states(file) == {"1": "replaying", "2": "dead"}
    file.put_many([settled(claim.rows[0].id, spider="shop")])
    assert states(file) == {"2": "dead"}


def test_a_replay_that_fails_again_updates_the_same_row(open_file):
    file = open_file()
    file.put_many([letter(1)])
    for replay in (1, 2):
        file.request_replay()
        [row] = file.claim(10).rows
        again = letter(
            9, uid=f"r{replay}", key="of the redirect's target", dead_letter_id=row.id, attempts=1
        )
        file.put_many([again, again])
        [row] = file.rows()
        assert (row.id, row.key, row.state, row.replays) == (1, "k1", "dead", replay)
        assert row.attempts == 3 + replay


def test_a_replay_fails_after_its_row_was_purged(open_file):
    file = open_file()
    file.put_many([letter(2, dead_letter_id=77)])
    assert [(row.key, row.replays) for row in file.rows()] == [("k2", 0)]


def test_two_jobs_never_claim_the_same_row(open_file, place):
    file = open_file(job=None)
    file.put_many([letter(number) for number in range(300)])
    file.request_replay()
    got = []

    def work(job):
        with place.one() as mine:
            mine.open_run(job=job, spider="shop", arguments={})
            while rows := mine.claim(7).rows:
                got.extend(row.id for row in rows)
            mine.settle(got)

    threads = [threading.Thread(target=work, args=(f"j{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(1, 301))


def test_a_claim_takes_only_what_this_spider_was_made_for(open_file):
    open_file("a", arguments={"url": "1"}).put_many([letter(1)])
    file = open_file("b", arguments={"url": "2"})
    file.put_many([letter(2), letter(3, spider="blog")])
    done = file.request_replay()
    assert done.groups == {
        ("shop", '{"url": "1"}'): 1,
        ("shop", '{"url": "2"}'): 1,
        ("blog", '{"url": "2"}'): 1,
    }
    assert [row.key for row in file.claim(10).rows] == ["k2"]


def test_what_a_durable_job_claimed_and_never_committed_is_requested_again(
    open_file, place, tmp_path
):
    file = open_file("j1", folder=tmp_path)
    file.put_many([letter(1), letter(2)])
    file.request_replay()
    first = file.claim(1)
    second = file.claim(1)
    assert second.number > first.number
    place.make_dead(file)
    other = open_file("j2")
    assert other.claim(10).rows == ()  # j1 can be resumed: its rows wait for it
    again = open_file("j1", folder=tmp_path, last_claim=first.number)
    assert states(again) == {"1": "replaying", "2": "requested"}
    assert [row.key for row in again.claim(10).rows] == ["k2"]


def test_a_job_that_cannot_be_resumed_gives_its_rows_back(open_file, place, tmp_path):
    for folder in (None, tmp_path / "gone"):
        file = open_file(f"j {folder}", folder=folder)
        file.put_many([letter(1, uid=f"u {folder}")])
        file.request_replay()
        assert len(file.claim(10).rows) == 1
        place.make_dead(file)
        other = open_file("other")
        assert states(other) == {"1": "requested"}
        other.close()


def test_a_living_job_keeps_its_rows(open_file):
    file = open_file("j1")
    file.put_many([letter(1)])
    file.request_replay()
    file.claim(1)
    other = open_file("j2")
    assert other.recover() == 0
    assert other.purge() == 0
    done = other.request_replay()
    assert (done.groups, done.busy) == ({}, 1)


def test_a_job_that_ends_gives_back_what_it_did_not_do(open_file, tmp_path):
    file = open_file("j1")
    file.put_many([letter(1)])
    file.request_replay()
    file.claim(1)
    file.close()
    assert states(open_file("j2")) == {"1": "requested"}


def test_items_cannot_be_replayed(open_file):
    file = open_file()
    file.put_many([letter(1, kind="item"), letter(2, kind="seed")])
    done = file.request_replay()
    assert done.not_replayable == 1
    assert [row.kind for row in file.claim(10).rows] == ["seed"]


def test_a_running_crawl_is_known(open_file):
    file = open_file("j1", arguments={"url": "1"})
    other = open_file(job=None)
    assert other.running("shop", arguments_text({"url": "1"}))
    assert not other.running("shop", arguments_text({}))
    file.close()
    assert not other.running("shop", arguments_text({"url": "1"}))


FILTERS = [
    (LetterFilter(), {1, 2, 3, 4}),
    (LetterFilter(ids=(1, 3)), {1, 3}),
    (LetterFilter(spider="blog"), {4}),
    (LetterFilter(domain="shop.example"), {1, 2}),
    (LetterFilter(domain="SHOP.example:8080"), {3}),
    (LetterFilter(reason="HTTP"), {1, 3, 4}),
    (LetterFilter(reason="timeout"), {2}),
    (LetterFilter(url="%"), {3}),
    (LetterFilter(url="/1"), {1}),
    (LetterFilter(older_than_s=150), {1, 4}),
    (LetterFilter(newer_than_s=150), {2, 3}),
    (LetterFilter(newer_than_s=150, reason="http"), {3}),
    (LetterFilter(kind="item"), set()),
    (LetterFilter(state="dead", spider="shop"), {1, 2, 3}),
]


@pytest.mark.parametrize(("where", "expected"), FILTERS)
def test_filters(open_file, where, expected):
    now = time.time()
    file = open_file()
    file.put_many(
        [
            letter(1, domain="shop.example", last_at=now - 200),
            letter(2, domain="www.shop.example", last_at=now - 100, reason="timeout"),
            letter(3, domain="shop.example:8080", last_at=now, url="http://x/%41"),
            letter(4, domain="notshop.example", last_at=now - 300, spider="blog"),
        ]
    )
    assert {row.id for row in file.rows(where)} == expected
    assert file.count(where) == len(expected)


def test_rows_come_in_pages_newest_first(open_file):
    file = open_file()
    file.put_many([letter(number) for number in range(1, 6)])
    assert [row.id for row in file.rows(limit=2, offset=1)] == [4, 3]


def test_a_killed_process_is_noticed(open_file, place):
    """A real process that claims and is killed with SIGKILL."""
    file = open_file(job=None)
    file.put_many([letter(1)])
    file.request_replay()
    code = (
        "import os, signal\n"
        "from redis import Redis\n"
        "from extensions.stores.deadletters import DeadLetterFile\n"
        "from extensions.stores.redisletters import RedisDeadLetters\n"
        f"file = {place.made}.open()\n"
        "file.open_run(job='killed', spider='shop', arguments={})\n"
        "assert len(file.claim(9).rows) == 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path.cwd())
    assert done.returncode == -9
    assert states(file) == {"1": "replaying"}
    assert file.recover() == 1
    assert states(file) == {"1": "requested"}
