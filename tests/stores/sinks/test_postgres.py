"""The SQL sink on a real PostgreSQL: outages, unknown outcomes, poison, rights."""

import json
import threading
import time

import psycopg
import pytest

from extensions.stores.sinks import SinkDown, SinkError, SinkGone
from extensions.stores.sinks.sql import SqlSink
from tests.databases import CuttingProxy, running_postgres


def row(number, **fields):
    return number, json.dumps({"url": f"http://h/{number}", "n": number, **fields})


def rows(first, last):
    return [row(number) for number in range(first, last + 1)]


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


@pytest.fixture
def open_sink(postgres):
    sinks = []
    postgres.ask("DROP TABLE IF EXISTS results")

    def make(url=None, **more):
        sink = SqlSink(url=url or postgres.url(), spider="shop", job="a", **more)
        sinks.append(sink)
        sink.open(None)
        return sink

    yield make
    for sink in sinks:
        sink.close()


def ids(postgres):
    return [id_ for (id_,) in postgres.ask("SELECT id FROM results ORDER BY id")]


def test_rows_can_be_queried_by_field(open_sink, postgres):
    open_sink().write(rows(1, 250))
    query = (
        "SELECT url, item ->> 'n', pg_typeof(item)::text FROM results WHERE item @> '{\"n\": 7}'"
    )
    assert postgres.ask(query) == [("http://h/7", "7", "jsonb")]
    assert len(ids(postgres)) == 250


def test_a_batch_sent_again_changes_nothing(open_sink, postgres):
    sink = open_sink()
    sink.write(rows(1, 150))
    sink.write(rows(100, 200))
    assert ids(postgres) == list(range(1, 201))


def test_poison_rows_cost_no_other(open_sink, postgres):
    """JSONB cannot hold a NUL character, nor text half a surrogate pair."""
    batch = rows(1, 300)
    batch[6] = row(7, text="a\0b")
    batch[200] = (201, '{"text": "\ud800"}')
    written = open_sink().write(batch)
    assert [p.row for p in written.poison] == [7, 201]
    assert "Unicode" in written.poison[0].reason
    assert "INSERT" not in written.poison[0].reason
    assert ids(postgres) == [n for n in range(1, 301) if n not in {7, 201}]


def test_a_constraint_of_the_users_refuses_single_rows(open_sink, postgres):
    sink = open_sink()
    postgres.ask("ALTER TABLE results ADD CHECK ((item ->> 'n')::int <> 5)")
    written = sink.write(rows(1, 10))
    assert [p.row for p in written.poison] == [5]
    assert len(ids(postgres)) == 9


def test_a_server_that_stops_and_starts_again(open_sink, postgres):
    sink = open_sink()
    sink.write(rows(1, 10))
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(SinkDown):
                sink.write(rows(11, 20))
    finally:
        postgres.start()
    sink.write(rows(11, 20))
    assert ids(postgres) == list(range(1, 21))


def test_a_connection_lost_while_idle_is_made_anew(open_sink, postgres):
    sink = open_sink()
    sink.write(rows(1, 10))
    postgres.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice'"
    )
    sink.write(rows(11, 20))
    assert ids(postgres) == list(range(1, 21))


def test_a_commit_whose_answer_is_lost_is_sent_again(open_sink, postgres):
    proxy = CuttingProxy(postgres)
    sink = open_sink(proxy.url)
    proxy.cuts_wanted = 2
    batch = rows(1, 200)
    for _ in range(2):
        with pytest.raises(SinkDown) as caught:
            sink.write(batch)
        assert "secret" not in str(caught.value)
        assert ids(postgres) == list(range(1, 201))  # it was committed, and the sink cannot know
    sink.write(batch)
    assert ids(postgres) == list(range(1, 201))
    assert proxy.cuts == 2
    proxy.close()


def test_no_transaction_is_left_open(open_sink, postgres):
    sink = open_sink()
    sink.write(rows(1, 10))
    query = "SELECT state FROM pg_stat_activity WHERE application_name = 'sluice'"
    assert set(postgres.ask(query)) == {("idle",)}


def test_a_locked_table_is_waited_for(open_sink, postgres):
    sink = open_sink()
    info = f"host={postgres.socket_folder} user=postgres dbname=postgres"
    with psycopg.connect(info) as blocker:
        blocker.execute("LOCK TABLE results")
        writing = threading.Thread(target=sink.write, args=(rows(1, 10),))
        writing.start()
        deadline = time.monotonic() + 10
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not postgres.ask(waits)[0][0]:
            assert time.monotonic() < deadline
        blocker.rollback()
        writing.join(10)
    assert ids(postgres) == list(range(1, 11))


def test_missing_rights_are_for_good(open_sink, postgres):
    sink = open_sink()
    postgres.ask("DROP ROLE IF EXISTS reader")
    postgres.ask("CREATE ROLE reader LOGIN")
    other = SqlSink(url=postgres.url("reader"), spider="shop", job="b")
    with pytest.raises(SinkGone, match="permission denied"):
        other.open(None)
        other.write(rows(1, 1))
    other.close()
    sink.write(rows(1, 1))


def test_a_user_without_the_right_to_create_tables(open_sink, postgres):
    open_sink()
    postgres.ask("DROP ROLE IF EXISTS writer")
    postgres.ask("CREATE ROLE writer LOGIN")
    postgres.ask("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    postgres.ask("GRANT SELECT, INSERT, UPDATE ON results TO writer")
    open_sink(postgres.url("writer")).write(rows(1, 3))
    assert ids(postgres) == [1, 2, 3]
    postgres.ask("DROP TABLE results")
    with pytest.raises(SinkGone, match="permission denied"):
        open_sink(postgres.url("writer"))
    postgres.ask("DROP ROLE writer")


def test_ten_crawls_create_the_table_at_once(open_sink, postgres):
    sinks = [SqlSink(url=postgres.url(), spider="shop", job=f"{n}") for n in range(10)]
    failures = []

    def work(sink):
        try:
            sink.open(None)
            sink.write(rows(1, 5))
        except SinkError as error:
            failures.append(error)
        sink.close()

    threads = [threading.Thread(target=work, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert postgres.ask("SELECT count(*) FROM results") == [(50,)]


def test_a_database_that_is_not_there_is_named_without_credentials(postgres):
    proxy = CuttingProxy(postgres)
    url = f"postgresql://postgres:hunter2@127.0.0.1:{proxy.port}/nosuch"
    sink = SqlSink(url=url, spider="shop", job="b")
    with pytest.raises(SinkError, match='database "nosuch" does not exist') as caught:
        sink.open(None)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in sink.name
    sink.close()
    proxy.close()


def test_nobody_listens():
    sink = SqlSink(url="postgresql://u:hunter2@127.0.0.1:1/d", spider="shop", job="b")
    with pytest.raises(SinkDown, match="refused") as caught:
        sink.open(None)
    assert "hunter2" not in str(caught.value)
    sink.close()


def test_a_table_in_a_schema(open_sink, postgres):
    postgres.ask("DROP SCHEMA IF EXISTS crawl CASCADE")
    postgres.ask("CREATE SCHEMA crawl")
    open_sink(table="crawl.pages").write(rows(1, 3))
    assert postgres.ask("SELECT count(*) FROM crawl.pages") == [(3,)]
