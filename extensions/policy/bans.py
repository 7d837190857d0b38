"""Is this answer a page, or a wall in the shape of one?

The rule it keeps: a ban page is a refusal, whatever its status. It slows the crawl down like a 429 and never reaches a
callback; nothing here tries to get past it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD_CHARS = 20_000
"""How much of a page is looked at: walls are short and say what they are at the top."""

KNOWN_TITLES = (
    r"^Just a moment\.\.\.$",
    r"^Attention Required! \| Cloudflare$",
    r"^Access to this page has been denied",
    r"^Pardon Our Interruption",
    r"^Are you a robot\?",
)
"""Titles of widespread challenge pages; exact enough that no honest page has them."""

_TITLE = re.compile(r"<title[^>]*>\s*(.*?)\s*</title>", re.IGNORECASE | re.DOTALL)


class BanRules:
    """What counts as a ban.

    Args:
        statuses: HTTP statuses that are bans by themselves, such as 403 on a site that answers so when it blocks.
        titles: Regular expressions for the page's title.
        patterns: Regular expressions for the first `HEAD_CHARS` characters of the body.

    Raises:
        re.error: a broken expression.
    """

    __slots__ = ("_patterns", "_statuses", "_titles")

    def __init__(
        self,
        *,
        statuses: Iterable[int] = (),
        titles: Iterable[str] = (),
        patterns: Iterable[str] = (),
    ) -> None:
        self._statuses = frozenset(statuses)
        self._titles = _joined(titles)
        self._patterns = _joined(patterns)

    @property
    def reads_pages(self) -> bool:
        """Must the text of every page be looked at?"""
        return self._titles is not None or self._patterns is not None

    def verdict(self, status: int, head: str) -> str | None:
        """Which rule calls this answer a ban; None: none does.

        Args:
            status: HTTP status.
            head: The first characters of the body, empty where it is no text.
        """
        if status in self._statuses:
            return f"status {status}"
        if self._titles is not None:
            title = _TITLE.search(head)
            if title is not None and self._titles.search(title[1]):
                return f"title {title[1][:80]!r}"
        if self._patterns is not None and (found := self._patterns.search(head)):
            return f"body {found[0][:80]!r}"
        return None


def _joined(expressions: Iterable[str]) -> re.Pattern[str] | None:
    texts = list(expressions)
    for text in texts:
        re.compile(text)  # alone, so that an error names it
    return re.compile("|".join(f"(?:{text})" for text in texts)) if texts else None
