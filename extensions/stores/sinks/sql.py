"""Results in a SQL database: one table, one row an item, each once.

The rule it keeps: a row's key is (job, id), so that a batch whose commit ended in silence can be
sent again. Nothing is held open between batches: no transaction, no lock. A batch with a row that
the database refuses is halved until that row is found.

The table is the same for every kind of item: the item itself is JSON, which each database can look
into (``item ->> 'title'``), beside the columns that every query needs. A field that a site adds
tomorrow needs no migration.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from .base import PoisonRow, SinkDown, SinkGone, Written
from .sqlerrors import Trouble, explain, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .base import Row

_TABLE_IS_WRONG_AFTER = 20  # refused rows with none stored between them
_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "sqlite": "sqlite",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
_PATIENCE: dict[str, dict[str, Any]] = {
    # A server that vanishes without a word is noticed within a minute and a half.
    "postgresql": {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
        "application_name": "sluice",
    },
    "sqlite": {"timeout": 5.0},
    "mysql": {"connect_timeout": 10},
    "mariadb": {"connect_timeout": 10},
}
_COLUMNS = ("job", "id", "spider", "url", "item", "stored_at")


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return sa.URL.create("sqlite", database=str(path)).render_as_string()


class SqlSink:
    """A table in SQLite, PostgreSQL, or (untested) MySQL or MariaDB, through SQLAlchemy Core."""

    def __init__(self, *, url: str, spider: str, job: str, table: str = "results") -> None:
        self._url = _parse(url)
        dialect = self._url.get_backend_name()
        self.name = f"{dialect}:{_place(self._url)}:{table}"
        self._spider = spider
        self._job = job
        self._table = _table(table)
        # Payloads are JSON text already: SQLAlchemy must not encode them again.
        self._engine = _engine(
            self._url,
            json_serializer=str,
            pool_size=1,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={
                name: value
                for name, value in _PATIENCE.get(dialect, {}).items()
                if name not in self._url.query
            },
        )
        self._upsert = _upsert(self._table, dialect)
        logging.getLogger("psycopg").addFilter(_is_news)
        self._refused = 0

    def open(self, mark: str | None) -> None:  # noqa: ARG002 - the key in the table is the mark
        """Connect; create the table or check it."""
        with self._failures():
            if self._url.get_backend_name() == "sqlite":
                self._prepare_sqlite()
            if not self._has_table():
                self._create_table()
            found = {
                column["name"]
                for column in sa.inspect(self._engine).get_columns(
                    self._table.name, schema=self._table.schema
                )
            }
        if missing := [name for name in _COLUMNS if name not in found]:
            raise SinkGone(
                f"{self.name} has no column {', '.join(missing)}: "
                "give SLUICE_RESULTS_TABLE the name of a table that is free"
            )

    def write(self, rows: Sequence[Row]) -> Written:
        """Insert *rows*; those that are there already stay one row each."""
        stored_at = dt.datetime.now(dt.UTC).replace(tzinfo=None)
        poison: list[PoisonRow] = []
        values = [
            {
                "job": self._job,
                "id": row,
                "spider": self._spider,
                "url": _url_of(text),
                "item": text,
                "stored_at": stored_at,
            }
            for row, text in rows
        ]
        with self._failures():
            self._store(values, poison)
        return Written(json.dumps({"row": rows[-1][0]}), poison)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(Exception):
            self._engine.dispose()

    def _has_table(self) -> bool:
        return sa.inspect(self._engine).has_table(self._table.name, schema=self._table.schema)

    def _create_table(self) -> None:
        """Create it, unless another crawl does so at the same moment."""
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.schema.CreateTable(self._table, if_not_exists=True))
        except sa.exc.DBAPIError:
            if not self._has_table():
                raise

    def _store(self, values: list[dict[str, Any]], poison: list[PoisonRow]) -> None:
        try:
            with self._engine.begin() as connection:
                connection.execute(self._upsert, values)
        except (sa.exc.SQLAlchemyError, UnicodeError) as error:
            if judge(error) is not Trouble.ROW:
                raise
            if len(values) > 1:
                half = len(values) // 2
                self._store(values[:half], poison)
                self._store(values[half:], poison)
                return
            self._refused += 1
            reason = explain(error, self._url)
            if self._refused >= _TABLE_IS_WRONG_AFTER:
                raise SinkGone(f"{self.name} refuses every row: {reason}") from error
            poison.append(PoisonRow(values[0]["id"], reason))
        else:
            self._refused = 0

    def _prepare_sqlite(self) -> None:
        """A new file gets a write-ahead log, so that a reader never stops the writer."""
        path = Path(self._url.database or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.SQLAlchemyError, UnicodeError) as error:
            kind = SinkGone if judge(error) is Trouble.GONE else SinkDown
            raise kind(f"{self.name}: {explain(error, self._url)}") from None
        except OSError as error:
            raise SinkGone(f"{self.name}: {error.strerror or error}") from None


def _engine(url: sa.URL, **options: Any) -> sa.Engine:
    try:
        return sa.create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"results to {url.get_backend_name()}: its driver is missing (pip install {error.name})"
        ) from None


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        raise ValueError("results to a database: the URL cannot be read") from None
    scheme = url.split("://", 1)[0]
    if backend == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise ValueError("results to a SQLite database in memory would be lost: name a file")
    if "+" not in scheme:
        parsed = parsed.set(drivername=_DRIVERS[scheme])
    return parsed


def _place(url: sa.URL) -> str:
    host = "" if url.host is None else url.host + (f":{url.port}" if url.port else "") + "/"
    return f"{host}{url.database or ''}"


def _table(name: str) -> sa.Table:
    schema, _, plain = name.rpartition(".")
    json_type = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    when = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    return sa.Table(
        plain,
        sa.MetaData(schema=schema or None),
        sa.Column("job", sa.String(64), primary_key=True),
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("spider", sa.String(255), nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("item", json_type, nullable=False),
        sa.Column("stored_at", when, nullable=False),
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Not what psycopg warns of when a batch is refused, which is judged and told here."""
    return "error ignored terminating" not in str(record.msg)


def _upsert(table: sa.Table, dialect: str) -> sa.Insert:
    """Insert a row; one that is there gets the same values again.

    Updating instead of ignoring matters after a power cut that took the job store's last commits:
    the id is given again, to another item. One statement for a row, many rows at a time: it is
    compiled once, and costs 11 to 24 microseconds of CPU a row; one with many rows in it, 140.
    """
    if dialect in {"mysql", "mariadb"}:
        change = mysql.insert(table)
        return change.on_duplicate_key_update({n: change.inserted[n] for n in _COLUMNS[2:]})
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    upsert = insert(table)
    return upsert.on_conflict_do_update(
        index_elements=["job", "id"], set_={n: upsert.excluded[n] for n in _COLUMNS[2:]}
    )


def _url_of(text: str) -> str | None:
    """The item's own ``url``, if it has one that a column can hold."""
    url = json.loads(text).get("url") if text.startswith("{") else None
    return url if isinstance(url, str) else None
