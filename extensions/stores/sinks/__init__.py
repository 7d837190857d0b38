"""Where results go: JSON Lines files and SQL databases, behind one protocol.

`make_sinks` turns what a user writes in `SLUICE_RESULTS` into sinks. The SQL part is imported only
where it is used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from .base import PoisonRow, Row, Sink, SinkDown, SinkError, SinkGone, Written
from .jsonl import JsonLinesSink

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "JsonLinesSink",
    "PoisonRow",
    "Row",
    "Sink",
    "SinkDown",
    "SinkError",
    "SinkGone",
    "Written",
    "check_target",
    "is_database",
    "make_sinks",
]

_JSON_LINES = {".jsonl", ".jl"}
_SQLITE = {".sqlite", ".sqlite3", ".db"}
_DATABASES = {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}
_WHAT_WOULD_DO = (
    "give a path that ends in .jsonl (JSON Lines) or .sqlite (SQLite), or a URL such as "
    "sqlite:///results.db or postgresql://user@host/database"
)


def make_sinks(
    target: str | Iterable[str] | None,
    *,
    spider: str,
    job: str,
    table: str = "results",
    worker: int | None = None,
) -> list[Sink]:
    """The sinks that *target* names; they are not opened yet.

    Args:
        target: A path, a database URL, several of them (a list, or between commas), or nothing.
        spider: The spider's name; stands for ``%(spider)s`` in paths and URLs.
        job: Id of the job, unique for each job store: part of the key in a database.
        table: Table for databases; may carry a schema (``crawl.results``).
        worker: Its number in a job of many, each with marks of its own: what the last one wrote into a file is not this
            one's to bring again.

    Raises:
        ValueError: a target that is neither, or named twice. The message holds no credentials.
    """
    texts = (target or "").split(",") if target is None or isinstance(target, str) else list(target)
    sinks = [
        _make_sink(
            _fill_in(text.strip(), spider), spider=spider, job=job, table=table, worker=worker
        )
        for text in texts
        if text.strip()
    ]
    names = [sink.name for sink in sinks]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"results would be written twice to {name}: name it once")
    return sinks


def check_target(target: str) -> None:
    """Can *target* be meant? Looks at its form alone: imports no driver, opens nothing.

    Raises:
        ValueError: it cannot; the message holds no credentials.
    """
    scheme, separator, _ = target.partition("://")
    if separator:
        if scheme.partition("+")[0] not in _DATABASES:
            raise ValueError(
                f"results to {scheme}://...: only sqlite, postgresql, mysql and mariadb are known"
            )
        return
    if Path(target).suffix.lower() not in _JSON_LINES | _SQLITE:
        raise ValueError(f"results to {target!r}: {_WHAT_WOULD_DO}")
    _fill_in(target.replace("%(job)s", "job"), "spider")


def is_database(target: str) -> bool:
    """Does *target*, which `check_target` admits, need SQLAlchemy?"""
    return "://" in target or Path(target).suffix.lower() in _SQLITE


def _make_sink(text: str, *, spider: str, job: str, table: str, worker: int | None) -> Sink:
    check_target(text)
    if "://" in text:
        from .sql import SqlSink  # noqa: PLC0415 - costs 0.2 s, and JSON Lines needs none

        return SqlSink(url=text, spider=spider, job=job, table=table)
    suffix = Path(text).suffix.lower()
    if suffix in _JSON_LINES:
        return JsonLinesSink(path=Path(text), job=job if worker is None else f"{job}:{worker}")
    from .sql import SqlSink, sqlite_url  # noqa: PLC0415

    return SqlSink(url=sqlite_url(Path(text)), spider=spider, job=job, table=table)


def _fill_in(text: str, spider: str) -> str:
    """Put the spider's name in, as one path component, whatever characters it has."""
    filled = text.replace("%(spider)s", re.sub(r"[/\\\0]", "_", spider))
    if (unknown := re.search(r"%\([^)]*\)\w?", filled)) and "://" not in filled:
        raise ValueError(
            f"results to {text!r}: {unknown[0]} is not known, only %(spider)s and %(job)s are"
        )
    return filled
