"""The rows of the table of domains, as a page that polls gets them: those that changed since it last asked.

The rule it keeps: an answer is worked out once for all that ask for the same in the same second, and what a client has
is known by what it asked before: nothing is kept for it but the names of its last few answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .statusdata import domain_json, first_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .sampler import Sampler

KEPT_QUERIES = 16
KEPT_ANSWERS = 8


class Query:
    """One way to look at the table, and what was last answered.

    Args:
        sort: What it is sorted by.
        descending: The largest first.
        state: Only domains in this state; empty: all.
        find: Only those whose name holds this; empty: all.
        limit: How many rows.
    """

    def __init__(self, *, sort: str, descending: bool, state: str, find: str, limit: int) -> None:
        self._values: dict[str, Any] = {
            "sort": sort, "descending": descending, "state": state, "find": find, "limit": limit
        }  # fmt: skip
        self.seq = -1
        self.matched = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, int] = {}
        self._names: dict[int, frozenset[str]] = {}  # by the sample they were answered for

    def look(self, sampler: Sampler, seq: int) -> None:
        """Bring the answer up to sample *seq*."""
        if seq == self.seq:
            return
        self.seq = seq
        rows, self.matched = first_rows(sampler.book, **self._values)
        fresh = {row.name: domain_json(row) for row in rows}
        before, changed = self._rows, self._changed
        self._changed = {
            name: changed[name] if before.get(name) == row else seq for name, row in fresh.items()
        }
        self._rows = fresh
        self._names[seq] = frozenset(fresh)
        while len(self._names) > KEPT_ANSWERS:
            del self._names[next(iter(self._names))]

    def answer(self, since: int) -> dict[str, Any]:
        """What somebody needs who has the answer for sample *since*; all of it if that is not known here."""
        had = self._names.get(since)
        if had is None:
            return {"whole": True, "rows": list(self._rows.values())}
        rows = [
            row
            for name, row in self._rows.items()
            if self._changed[name] > since or name not in had
        ]
        return {"whole": False, "order": list(self._rows), "rows": rows}


class DomainRows:
    """Answers polls for the table of domains.

    Args:
        sampler: Where the rows are.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._queries: dict[tuple[object, ...], Query] = {}

    def poll(self, states: Mapping[str, int], seq: int, since: int, **asked: Any) -> dict[str, Any]:
        """The answer for sample *seq* to one who has that for *since* (-1: none); *asked*: see `Query`."""
        key = tuple(asked.values())
        query = self._queries.pop(key, None) or Query(**asked)
        self._queries[key] = query  # the newest last
        while len(self._queries) > KEPT_QUERIES:
            del self._queries[next(iter(self._queries))]
        query.look(self._sampler, seq)
        return {
            "seq": seq,
            "total": self._sampler.book.domains,
            "matched": query.matched,
            "states": dict(states),
            **query.answer(since),
        }
