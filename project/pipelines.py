"""Items are validated before they are stored: what is wrong is named and not stored."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from .items import Page

MIN_STATUS, MAX_STATUS = 100, 599
_LEAVES = (str, int, bool, type(None))


class InvalidItem(ValueError):
    """An item that must not be stored. The text names the field, its value, and what would do."""


class ValidatePipeline:
    """Lets valid pages pass and refuses the others; items of other kinds are not its business."""

    def process_item(self, item: Any) -> Any:
        """Return *item* unchanged.

        Raises:
            InvalidItem: A field of a page is not what it should be.
        """
        if isinstance(item, Page) and (fault := fault_of(item)):
            raise InvalidItem(f"page {str(item.url)[:200]!r}: {fault}")
        return item


def fault_of(page: Page) -> str | None:
    """What is wrong with *page*, or None."""
    if not isinstance(page.url, str) or urlsplit(page.url).scheme not in {"http", "https"}:
        return f"url is {page.url!r:.80}, not an http or https URL"
    if type(page.status) is not int or not MIN_STATUS <= page.status <= MAX_STATUS:
        return f"status is {page.status!r:.80}, not an HTTP status"
    if page.title is not None and not isinstance(page.title, str):
        return f"title is {type(page.title).__name__}, not text"
    if type(page.depth) is not int or page.depth < 0:
        return f"depth is {page.depth!r:.80}, not a whole number, 0 or more"
    if not _is_utc(page.fetched_at):
        return f"fetched_at is {page.fetched_at!r:.80}, not an ISO 8601 time in UTC"
    if not isinstance(page.fields, dict):
        return f"fields is {type(page.fields).__name__}, not a dict"
    return _unstorable(page.fields, "fields")


def _is_utc(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _unstorable(value: object, path: str) -> str | None:
    """Where *value* holds something that JSON cannot, or None."""
    if isinstance(value, _LEAVES):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value!r}, which JSON cannot hold"
    if isinstance(value, list):
        found = (_unstorable(v, f"{path}[{i}]") for i, v in enumerate(value))
        return next(filter(None, found), None)
    if isinstance(value, dict):
        if odd := next((key for key in value if not isinstance(key, str)), None):
            return f"{path} has the key {odd!r:.80}, which is not text"
        found = (_unstorable(v, f"{path}.{k}") for k, v in value.items())
        return next(filter(None, found), None)
    return f"{path} is {type(value).__name__}, which JSON cannot hold"
