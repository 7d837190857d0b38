"""Rows that a worker has fetched and not yet used, by domain; and what is known of the lines they came from.

The rule it keeps: a worker takes no more into its hands than it will use soon. The rest stays where others can get at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .base import StoredRequest

FIRST_ROWS = 8
MOST_ROWS = 256
"""Rows of one domain in one exchange, at first and at most."""
SHARED_ROWS = 16
"""At most, where several workers share a domain: what one has fetched ahead, the others cannot get."""


class Shelf:
    """Fetched rows. One for each store.

    Args:
        room: Rows that may lie here, all domains together.
        most: Rows of one domain that may.
    """

    def __init__(self, *, room: int, most: int = MOST_ROWS) -> None:
        self.most = most
        self._room = room
        self._rows: dict[str, dict[int, StoredRequest]] = {}
        self._domain_of: dict[int, str] = {}
        self._lines: dict[str, int] = {}  # rows left in Redis, of domains with any
        self._asked: dict[str, int] = {}  # rows of the last fetch

    def __len__(self) -> int:
        return len(self._domain_of)

    def __contains__(self, id_: int) -> bool:
        return id_ in self._domain_of

    @property
    def free(self) -> int:
        """Rows for which there is room."""
        return max(0, self._room - len(self._domain_of))

    def usual(self, domains: int) -> int:
        """Rows to fetch of a domain that is new."""
        return max(1, min(FIRST_ROWS, self._room // max(1, domains)))

    def put(self, rows: Iterable[StoredRequest]) -> dict[str, list[StoredRequest]]:
        """Rows came. Returns them by domain."""
        new: dict[str, list[StoredRequest]] = {}
        for row in rows:
            if row.id in self._domain_of:
                continue
            self._rows.setdefault(row.domain, {})[row.id] = row
            self._domain_of[row.id] = row.domain
            new.setdefault(row.domain, []).append(row)
        return new

    def note_line(self, domain: str, left: int) -> None:
        """So many rows of *domain* are left in Redis."""
        if left:
            self._lines[domain] = left
        else:
            self._lines.pop(domain, None)

    def left(self, domain: str) -> int:
        """Rows of *domain* left in Redis, as of the last answer."""
        return self._lines.get(domain, 0)

    def take(self, domain: str, limit: int) -> list[StoredRequest]:
        """The *limit* first rows of *domain*."""
        rows = self._rows.get(domain)
        if not rows:
            return []
        first = sorted(rows.values(), key=lambda r: (-r.priority, r.rank))[:limit]
        for row in first:
            del rows[row.id]
            del self._domain_of[row.id]
        if not rows:
            del self._rows[domain]
        return first

    def peek(self, domain: str) -> list[StoredRequest]:
        """The rows of *domain*, in order."""
        return sorted(self._rows.get(domain, {}).values(), key=lambda r: (-r.priority, r.rank))

    def drop(self, id_: int) -> StoredRequest | None:
        """Take one row away."""
        domain = self._domain_of.pop(id_, None)
        if domain is None:
            return None
        rows = self._rows[domain]
        row = rows.pop(id_)
        if not rows:
            del self._rows[domain]
        return row

    def clear(self, domain: str) -> list[StoredRequest]:
        """Take away all of *domain*, and forget its line."""
        self._lines.pop(domain, None)
        self._asked.pop(domain, None)
        return self.take(domain, len(self._rows.get(domain, ())))

    def domains(self) -> list[str]:
        """Domains with rows here."""
        return list(self._rows)

    def wants(self, domains: int) -> Iterator[tuple[str, int]]:
        """Lines to fetch from, and how many rows of each; *domains* are this worker's, all together."""
        share = max(1, self._room // max(1, domains))
        free = self.free
        for domain, left in self._lines.items():
            here = len(self._rows.get(domain, ()))
            size = min(self.most, share, self._asked.get(domain, FIRST_ROWS // 4) * 4)
            if free <= 0:
                return
            if here * 2 <= size:
                self._asked[domain] = size
                wanted = min(left, size, free)
                free -= wanted
                yield domain, wanted
