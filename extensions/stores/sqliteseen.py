"""Which fingerprints a job has seen: a large sorted table, and the latest on their way to it.

The rule it keeps: a fingerprint is durable with the commit that brought it, and cheap. Fingerprints
are random, so one put straight into a large B-tree dirties a page of its own (4 KiB written twice).
They are appended to a small table and merged in sorted slices at a checkpoint, where neighbours
share their pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .sqlitefile import roll_back

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

MERGE_AT: Final = 32_768  # about 4 MB of memory
_SLICES: Final = 16
_IN_SLICE: Final = "FROM seen_recent WHERE id <= ? AND fingerprint BETWEEN ? AND ?"
_DELETE_SLICE: Final = f"DELETE {_IN_SLICE}"
_MERGE_SLICE: Final = (
    f"INSERT OR IGNORE INTO seen SELECT fingerprint {_IN_SLICE} ORDER BY fingerprint"
)


class SeenTable:
    """Fingerprints of one open job. The owner sees to mutual exclusion, but for `merge`."""

    def __init__(self) -> None:
        self._recent: set[bytes] = set()
        self._merging: set[bytes] = set()
        self._table_is_empty = False  # most jobs never merge: they need not ask it

    def load(self, con: sqlite3.Connection) -> None:
        """Read what an earlier process had not merged yet."""
        self._recent = {
            fingerprint for (fingerprint,) in con.execute("SELECT fingerprint FROM seen_recent")
        }

        self._table_is_empty = con.execute("SELECT 1 FROM seen LIMIT 1").fetchone() is None

    def __contains__(self, fingerprint: bytes) -> bool:
        """Is it among the latest? If not, ask `in_table`."""
        return fingerprint in self._recent or fingerprint in self._merging

    def in_table(self, con: sqlite3.Connection, fingerprint: bytes) -> bool:
        """Is it among the merged ones?"""
        if self._table_is_empty:
            return False
        return (
            con.execute("SELECT 1 FROM seen WHERE fingerprint = ?", (fingerprint,)).fetchone()
            is not None
        )

    def append(self, con: sqlite3.Connection, fingerprints: Sequence[bytes]) -> list[bytes]:
        """Write the new ones in the open transaction; `appended` takes them after its commit."""
        new = [f for f in dict.fromkeys(fingerprints) if f not in self]
        con.executemany("INSERT INTO seen_recent (fingerprint) VALUES (?)", [(f,) for f in new])
        return new

    def appended(self, new: Sequence[bytes]) -> None:
        """The commit went through."""
        self._recent.update(new)

    @property
    def merge_due(self) -> bool:
        """Are there enough of them to be worth a merge?"""
        return len(self._recent) >= MERGE_AT

    def merge(self, con: sqlite3.Connection) -> int:
        """Move the latest into the table, in a thread, on a connection of its own.

        Each slice is one short transaction: a fingerprint is in one of the two places, after a crash too.

        Returns:
            How many were in the table already.
        """
        (last,) = con.execute("SELECT coalesce(max(id), 0) FROM seen_recent").fetchone()
        known = 0
        for i in range(_SLICES):
            low, high = (
                bytes([i * 256 // _SLICES]),
                bytes([(i + 1) * 256 // _SLICES - 1]) + b"\xff" * 64,
            )
            slice_ = (last, low, high)
            con.execute("BEGIN IMMEDIATE")
            try:
                added = con.execute(_MERGE_SLICE, slice_).rowcount
                there = con.execute(_DELETE_SLICE, slice_).rowcount
                con.execute("COMMIT")
            except BaseException:
                roll_back(con)
                raise
            known += there - added
        return known

    def merge_begins(self) -> None:
        """From now on new ones are kept apart from those that are being merged."""
        self._table_is_empty = False
        self._merging |= self._recent
        self._recent = set()

    def merge_ended(self, *, merged: bool) -> None:
        """The merge is over: what it took is in the table, or, if it failed, has yet to go."""
        if not merged:
            self._recent |= self._merging
        self._merging = set()
