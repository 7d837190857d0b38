"""Which dead letters are meant: by spider, domain, reason, age, URL.

The rule it keeps: a filter that nobody gave lets everything through, and several must all agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .deadletter_rows import Row

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def age_s(text: str) -> float:
    """Seconds in ``90s``, ``15m``, ``2h``, ``3d``, ``1w``.

    Raises:
        ValueError: something else.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])", text.strip(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is no age: give one such as 90s, 15m, 2h or 3d")
    return float(match[1]) * _UNITS_S[match[2]]


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """What a row must be.

    Attributes:
        ids: One of these.
        spider: Of this spider.
        domain: Of this host (with its port, if it is not the scheme's own) or a host under it.
        reason: With this in its reason, in any case.
        url: With this in its URL.
        kind: Of this kind.
        state: In this state.
        older_than_s, newer_than_s: Failed last more, or less, than so many seconds ago.
    """

    ids: tuple[int, ...] = ()
    spider: str | None = None
    domain: str | None = None
    reason: str | None = None
    url: str | None = None
    kind: str | None = None
    state: str | None = None
    older_than_s: float | None = None
    newer_than_s: float | None = None

    def sql(self, now_at: float) -> tuple[str, list[object]]:
        """A condition and its values; the texts in it are this module's own."""
        terms: list[str] = []
        values: list[object] = []

        def must(term: str, *of: object) -> None:
            terms.append(term)
            values.extend(of)

        if self.ids:
            must(f"id IN ({', '.join('?' * len(self.ids))})", *self.ids)
        for column in ("spider", "kind", "state"):
            if (value := getattr(self, column)) is not None:
                must(f"{column} = ?", value)
        if self.domain is not None:
            domain = self.domain.lower()
            must("(domain = ? OR substr(domain, -length(?)) = ?)", domain, *(2 * ("." + domain,)))
        if self.reason is not None:
            must("instr(lower(reason), lower(?)) > 0", self.reason)
        if self.url is not None:
            must("instr(url, ?) > 0", self.url)
        if self.older_than_s is not None:
            must("last_at < ?", now_at - self.older_than_s)
        if self.newer_than_s is not None:
            must("last_at >= ?", now_at - self.newer_than_s)
        return " AND ".join(terms) or "1", values

    def lets_through(self, row: Row, now_at: float) -> bool:
        """The same, for a store without a query language."""
        domain = None if self.domain is None else self.domain.lower()
        return (
            (not self.ids or row.id in self.ids)
            and all(
                value is None or getattr(row, column) == value
                for column in ("spider", "kind", "state")
                for value in (getattr(self, column),)
            )
            and (domain is None or row.domain == domain or row.domain.endswith("." + domain))
            and (self.reason is None or self.reason.lower() in row.reason.lower())
            and (self.url is None or self.url in row.url)
            and (self.older_than_s is None or row.last_at < now_at - self.older_than_s)
            and (self.newer_than_s is None or row.last_at >= now_at - self.newer_than_s)
        )


EVERYTHING = LetterFilter()
