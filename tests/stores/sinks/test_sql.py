"""A database gets each row once, and one bad row costs no other."""

import json
import sqlite3

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from extensions.stores.sinks import SinkDown, SinkGone, make_sinks
from extensions.stores.sinks.sql import SqlSink, _table, _upsert


def row(number, **fields):
    return number, json.dumps({"url": f"http://h/{number}", "n": number, **fields})


def rows(first, last):
    return [row(number) for number in range(first, last + 1)]


@pytest.fixture
def database(tmp_path):
    return tmp_path / "out" / "results.sqlite"


@pytest.fixture
def open_sink(database):
    sinks = []

    def make(job="a", **more):
        sink = SqlSink(url=f"sqlite:///{database}", spider="shop", job=job, **more)
        sinks.append(sink)
        sink.open(None)
        return sink

    yield make
    for sink in sinks:
        sink.close()


def ask(database, query):
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_rows_can_be_queried_by_field(open_sink, database):
    open_sink().write(rows(1, 250))
    assert ask(database, "SELECT count(*), min(spider), min(job) FROM results") == [
        (250, "shop", "a")
    ]
    query = "SELECT url, item ->> 'n' FROM results WHERE id = 7"
    assert ask(database, query) == [("http://h/7", 7)]


def test_a_batch_sent_again_changes_nothing(open_sink, database):
    sink = open_sink()
    sink.write(rows(1, 3))
    sink.write(rows(2, 5))
    assert ask(database, "SELECT id FROM results ORDER BY id") == [(n,) for n in range(1, 6)]


def test_two_jobs_share_a_table(open_sink, database):
    open_sink("a").write(rows(1, 2))
    open_sink("b").write(rows(1, 2))
    assert ask(database, "SELECT count(*) FROM results") == [(4,)]


def test_a_poison_row_costs_no_other(open_sink, database):
    sink = open_sink()
    connection = sqlite3.connect(database)
    connection.execute(
        "CREATE TRIGGER no_13 BEFORE INSERT ON results WHEN NEW.id = 13 "
        "BEGIN SELECT RAISE(ABORT, 'thirteen'); END"
    )
    connection.close()
    written = sink.write(rows(1, 200))
    assert [(p.row, p.reason) for p in written.poison] == [(13, "thirteen")]
    assert ask(database, "SELECT count(*) FROM results") == [(199,)]


def test_a_table_that_refuses_everything_is_gone(open_sink, database):
    sink = open_sink()
    connection = sqlite3.connect(database)
    connection.execute(
        "CREATE TRIGGER none BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    connection.close()
    with pytest.raises(SinkGone, match="refuses every row: no"):
        sink.write(rows(1, 200))


def test_a_lone_surrogate_is_a_poison_row(open_sink, database):
    written = open_sink().write([row(1), (2, '{"n": "\ud800"}'), row(3)])
    assert [p.row for p in written.poison] == [2]
    assert ask(database, "SELECT id FROM results ORDER BY id") == [(1,), (3,)]


def test_a_locked_database_is_down_and_works_again(database, tmp_path):
    sink = SqlSink(url=f"sqlite:///{database}?timeout=0.01", spider="shop", job="a")
    sink.open(None)
    blocker = sqlite3.connect(database, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(SinkDown, match="locked"):
        sink.write(rows(1, 2))
    blocker.execute("ROLLBACK")
    blocker.close()
    sink.write(rows(1, 2))
    sink.close()
    assert ask(database, "SELECT count(*) FROM results") == [(2,)]


def test_a_table_of_other_columns_is_refused(database, open_sink):
    database.parent.mkdir()
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE results (id INTEGER, title TEXT)")
    connection.close()
    with pytest.raises(SinkGone, match=r"no column job, spider, .*SLUICE_RESULTS_TABLE"):
        open_sink()
    open_sink(table="pages").write(rows(1, 1))
    assert ask(database, "SELECT count(*) FROM pages") == [(1,)]


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_the_statements_for_mysql_can_be_made(name):
    """No such server is at hand: this shows that SQLAlchemy has all that is asked of it."""
    dialect = mysql.dialect()
    table = _table("crawl.results")
    assert "ON DUPLICATE KEY UPDATE" in str(_upsert(table, name).compile(dialect=dialect))
    text = str(sa.schema.CreateTable(table).compile(dialect=dialect))
    assert "item JSON NOT NULL" in text
    assert "stored_at DATETIME(6) NOT NULL" in text


def test_a_table_dropped_meanwhile_is_gone(open_sink, database):
    sink = open_sink()
    connection = sqlite3.connect(database)
    connection.execute("DROP TABLE results")
    connection.close()
    with pytest.raises(SinkGone, match="no such table"):
        sink.write(rows(1, 1))


def test_a_file_that_is_no_database_is_gone(tmp_path):
    (tmp_path / "x.db").write_text("this is text, and more of it than a header" * 10)
    [sink] = make_sinks(str(tmp_path / "x.db"), spider="s", job="a")
    with pytest.raises(SinkGone, match="not a database"):
        sink.open(None)
    sink.close()


def test_nothing_is_held_between_batches(open_sink, database):
    open_sink().write(rows(1, 1))
    connection = sqlite3.connect(database, isolation_level=None, timeout=0)
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("ROLLBACK")
    connection.close()
