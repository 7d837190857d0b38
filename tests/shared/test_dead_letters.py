"""Dead letters of all workers in one place: seen, replayed, exported and purged from anywhere."""

from __future__ import annotations

import json
import time

import pytest

from extensions.stores.redisletters import RedisDeadLetters
from tests.shared.workers import Worker
from tests.sites import Answer, Host, Route, Site
from tests.stores.test_deadletter_contract import letter
from tests.valkey import valkey

BROKEN = Host(latency_s=0.02, routes=(Route("/page/*", (Answer(status=404, body="gone"),)),))
SHARED = {"SLUICE_LEASE_S": "3", "SCHEDULER_PERSIST": "True"}


@pytest.fixture
def broken():
    with Site(BROKEN) as site:
        yield site


def letters(server, spider="pages"):
    with RedisDeadLetters(client=server.client, key=f"{spider}:deadletters", place="p") as place:
        return sorted(place.rows(), key=lambda row: row.id)


def crawl(folder, server, seeds, **settings):
    return Worker(
        folder, "pages", f"seeds={seeds}", SLUICE_FRONTIER=server.url, **SHARED, **settings
    )


def arguments(seeds):
    return json.dumps({"seeds": str(seeds)})


def results(*folders):
    return sorted(
        json.loads(line)["url"]
        for folder in folders
        for line in (folder / "results/pages.jsonl").read_text().splitlines()
    )


def test_what_two_workers_gave_up_is_replayed_once_each(server, broken, tmp_path, scrapy_cli):
    urls = broken.urls(60)
    seeds = tmp_path / "s"
    seeds.write_text("\n".join(urls))
    two = [crawl(tmp_path / name, server, seeds) for name in "ab"]
    assert {worker.wait(60) for worker in two} <= {0, 3}
    assert len(letters(server)) == 60
    assert not list(tmp_path.glob("*/deadletters"))
    where = ("-s", f"SLUICE_FRONTIER={server.url}")
    for words in (where, ("--redis", server.url)):
        out = scrapy_cli("deadletters", "list", "--limit", "3", *words).out
        assert out.count("http 404") == 3
        assert "... and 57 more" in out
    shown = scrapy_cli("deadletters", "show", "7", *where)
    assert "http 404" in shown.out, shown.err
    done = scrapy_cli("deadletters", "export", "-o", "out.jsonl", "--url", "/page/1", *where)
    assert "11 dead letters written" in done.out, done.err
    done = scrapy_cli("deadletters", "purge", "--url", "/page/59", *where)
    assert done.out == "1 dead letters deleted\n"
    broken.change(routes=())
    broken.forget()
    # The seeds are read again: what was seen is a duplicate, and what is replayed is not.
    done = scrapy_cli(
        "deadletters", "replay", *where, "-s", "SLUICE_LEASE_S=3", "-s", "SCHEDULER_PERSIST=True"
    )
    assert done.code == 0, done.err
    pages = {t: n for t, n in broken.stats().hits.items() if t.startswith("/page/")}
    assert len(pages) == 59
    assert set(pages.values()) == {1}
    assert letters(server) == []


def test_a_running_worker_takes_a_replay_within_seconds(server, broken, tmp_path, scrapy_cli):
    """And one that is killed with it in its hands loses nothing: it is fetched by the other."""
    urls = broken.urls(40)
    seeds = tmp_path / "s"
    seeds.write_text("\n".join(urls))
    first = crawl(tmp_path / "a", server, seeds)
    assert first.wait(60) in {0, 3}
    broken.change(routes=(), latency_s=0.5)
    broken.forget()
    with Site(Host(latency_s=0.5)) as other:
        with seeds.open("a") as more:
            more.write("\n" + "\n".join(other.urls(1500)))
        two = [
            crawl(tmp_path / name, server, seeds, CONCURRENT_REQUESTS_PER_DOMAIN="1")
            for name in "bc"
        ]
        deadline = time.monotonic() + 30
        while other.stats().received < 4:
            assert time.monotonic() < deadline, two[0].text()
            time.sleep(0.05)
        told = time.monotonic()
        done = scrapy_cli("deadletters", "replay", "--redis", server.url)
        assert done.out == "40 go to the running crawl of pages\n", done.err
        while broken.stats().received < 3:
            assert time.monotonic() < told + 20
            time.sleep(0.05)
        print(f"the first three were fetched {time.monotonic() - told:.1f} s after the command")
        # Whoever asks the host dies.
        [holder] = server.client.hmget("pages:requests:claims", broken.domain())
        note = server.client.hget(f"pages:requests:worker:{holder.decode()}", "note")
        victim = next(worker for worker in two if str(worker.process.pid) in note.decode())
        victim.kill()
        while letters(server):
            assert time.monotonic() < told + 120, [row.state for row in letters(server)]
            time.sleep(0.2)
        left = next(worker for worker in two if worker is not victim)
        left.stop()
        left.wait(60)
        hits = broken.stats().hits
        assert {f"/page/{n}" for n in range(40)} <= set(hits)
        assert max(hits.values()) <= 2  # what was in flight at the kill


def test_the_oldest_go_where_there_are_too_many(server):
    with RedisDeadLetters(client=server.client, key="k", place="p", most=10) as place:
        place.put_many([letter(n) for n in range(25)])
        assert sorted(int(row.url.rpartition("/")[2]) for row in place.rows()) == [*range(15, 25)]
        assert server.client.hget("k", "dropped") == b"15"


def test_messages_name_no_password(tmp_path, scrapy_cli):
    with valkey(tmp_path / "locked", "--requirepass", "right") as server:
        url = server.url.replace("//", "//:s3cret@")
        for words in (("--redis", url), ("-s", f"SLUICE_DEAD_LETTERS={url}")):
            done = scrapy_cli("deadletters", "list", *words)
            assert done.code == 2
            assert "Redis refuses this worker" in done.err
            assert "s3cret" not in done.err + done.out


def test_what_is_no_dead_letters_is_left_alone(server, scrapy_cli):
    server.client.set("pages:deadletters", "mine")
    server.client.sadd("sluice:deadletters", "pages:deadletters")
    done = scrapy_cli("deadletters", "list", "--redis", server.url)
    assert done.code == 2
    assert "is something else, and is left as it is" in done.err
    assert server.client.get("pages:deadletters") == b"mine"
