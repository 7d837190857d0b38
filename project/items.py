"""What the spiders yield. One kind of item: a page, with the fields that somebody asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from extensions.htmlscan import title

if TYPE_CHECKING:
    from scrapy.http import Response


@dataclass(slots=True, kw_only=True)
class Page:
    """One answer that was read.

    Attributes:
        url: Where the answer came from, after redirects.
        status: Its HTTP status.
        title: Text of its title element; None without one, or if the answer is not HTML.
        fetched_at: When it was read: ISO 8601, UTC, in whole milliseconds.
        depth: How many links it is away from a seed; 0 for the seed itself.
        fields: What the field rules found, by name.
    """

    url: str
    status: int
    title: str | None
    fetched_at: str
    depth: int = 0
    fields: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, response: Response, fields: dict[str, Any] | None = None) -> Page:
        """The page that *response* is, with *fields* taken from it."""
        return cls(
            url=response.url,
            status=response.status,
            title=title(response) if isinstance(response, HtmlResponse) else None,
            fetched_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            depth=response.meta.get("depth", 0),
            fields=fields or {},
        )
