"""What a process that opens a job does first: it takes over what a dead one left.

The rule it keeps: all that was handed out is pending again, with its attempts as they were; only a request that was in
flight at too many deaths, and alone at two of them in a row, is kept back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from .base import DomainBacklog, Recovered, StoreError
from .sqlitefile import roll_back
from .sqliterows import REQUEST, Tally, requests

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

OPEN_FACT: Final = "store_is_open"  # there while a process has it open, and after one that died
SPIDER_FACT: Final = "spider"
_LONE_FACT: Final = "lone_deaths"
"""JSON: the id of a request that was in flight at the last crash, and at how many in a row it was so alone."""

_BACKLOGS: Final = """
    SELECT domain, count(*),
        (SELECT priority FROM request WHERE state = 0 AND domain = a.domain
         ORDER BY priority DESC, rank LIMIT 1),
        (SELECT rank FROM request WHERE state = 0 AND domain = a.domain
         ORDER BY priority DESC, rank LIMIT 1)
    FROM request AS a WHERE state = 0 GROUP BY domain"""
# One crash takes all that is in flight with it, so it proves nothing of one among many, and one
# from outside may well meet a request that is tried alone: only a request that was alone at two
# crashes in a row can come to the last one that it is allowed.
_COUNT_CRASH: Final = """
    UPDATE request SET crashes = CASE
        WHEN :proven THEN crashes + 1 ELSE max(crashes, min(crashes + 1, :max - 1)) END
    WHERE state IN (1, 2) AND state = 2"""
_LEASED: Final = "SELECT id FROM request WHERE state IN (1, 2) AND state = 2 LIMIT 2"
_LONE_DEATHS: Final = 2
_GIVE_BACK: Final = """
    UPDATE request SET state = 0 WHERE state IN (1, 2) AND state = 2 AND crashes < :max"""


def check_spider(con: sqlite3.Connection, *, spider: str, folder: Path) -> None:
    """Refuse the job of another spider: its requests name callbacks that this one does not have.

    Raises:
        StoreError: naming both, and the remedy.
    """
    row = con.execute("SELECT value FROM fact WHERE name = ?", (SPIDER_FACT,)).fetchone()
    if row is None or not spider:
        return
    if (owner := json.loads(row[0])) != spider:
        raise StoreError(
            f"{folder}: holds the job of spider {owner}, not of {spider}. Give each spider a JOBDIR of its own, "
            f"or remove that job with: scrapy job clean {folder}"
        )


def recover(
    con: sqlite3.Connection, *, spider: str, max_crashes: int, clock_at: float
) -> tuple[Tally, Recovered]:
    """Make the rows of a job fit for a new process, in one transaction.

    Args:
        con: Of the store's file.
        spider: Whose job it is from now on, if it is nobody's yet.
        max_crashes: A request in flight at so many crashes is not given back.
        clock_at: Wall-clock seconds of this process.

    Returns:
        The counters, and what waits.
    """
    tally = Tally.read(con)
    died = con.execute("SELECT 1 FROM fact WHERE name = ?", (OPEN_FACT,)).fetchone() is not None
    con.execute("BEGIN IMMEDIATE")
    try:
        con.execute("INSERT OR REPLACE INTO fact VALUES (?, 'true')", (OPEN_FACT,))
        if spider:
            con.execute(
                "INSERT OR IGNORE INTO fact VALUES (?, ?)", (SPIDER_FACT, json.dumps(spider))
            )
        con.execute("UPDATE request SET state = 0 WHERE state IN (1, 2) AND state = 1")
        proven = _note_lone_death(con) >= _LONE_DEATHS or max_crashes < _LONE_DEATHS
        con.execute(_COUNT_CRASH, {"max": max_crashes, "proven": proven})
        con.execute(_GIVE_BACK, {"max": max_crashes})
        con.execute("DELETE FROM request WHERE state = 4")
        _mend_delays(con, clock_at)
        found = _what_waits(con, last_id=tally.last_id, died=died)
        tally.pending = sum(b.count for b in found.backlogs)
        tally.window, tally.leased, tally.held = 0, len(found.crashed), 0
        tally.delayed = found.delayed
        tally.write(con, clock_at)
        con.execute("COMMIT")
    except BaseException:
        roll_back(con)
        raise
    return tally, found


def _note_lone_death(con: sqlite3.Connection) -> int:
    """At how many crashes in a row, with this one, the same request was in flight alone; 0: it was none or among others."""
    leased = [id_ for (id_,) in con.execute(_LEASED)]
    if not leased:
        return 0  # closed well, or it died before it had handed anything out
    row = con.execute("SELECT value FROM fact WHERE name = ?", (_LONE_FACT,)).fetchone()
    known = json.loads(row[0]) if row is not None else [0, 0]
    times = 0
    if len(leased) == 1:
        times = known[1] + 1 if known[0] == leased[0] else 1
    con.execute(
        "INSERT OR REPLACE INTO fact VALUES (?, ?)", (_LONE_FACT, json.dumps([leased[0], times]))
    )
    return times


def _what_waits(con: sqlite3.Connection, *, last_id: int, died: bool) -> Recovered:
    crashed = requests(con.execute(f"SELECT {REQUEST} FROM request WHERE state IN (1, 2)"))  # noqa: S608
    delayed, next_due_at = con.execute(
        "SELECT count(*), min(due_at) FROM request WHERE state = 3"
    ).fetchone()
    return Recovered(
        backlogs=[DomainBacklog(*row) for row in con.execute(_BACKLOGS)],
        delayed=delayed,
        next_due_at=next_due_at,
        last_id=last_id,
        crashed=crashed,
        resumed=False,
        died=died,
    )


def _mend_delays(con: sqlite3.Connection, now_at: float) -> None:
    """Shift delays by as much as the clock was set back since the last commit.

    A clock set forward makes them due early, which delays nothing.
    """
    (clock_at,) = con.execute("SELECT clock_at FROM tally").fetchone()
    back_s = clock_at - now_at
    if back_s > 0:
        con.execute("UPDATE request SET due_at = due_at - ? WHERE state = 3", (back_s,))
