"""The end of the item pipeline: an item becomes strict JSON, staged with the request it came from.

The rule it keeps: what is staged is valid for every sink and every reader, or the item is refused
here by name, before a byte of it is written anywhere. There is no "almost JSON": no NaN, no half
surrogate pair, no bytes taken for text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import json
import math
import uuid
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter, is_item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

# Line separators outside of ASCII are legal inside JSON strings, and many readers split lines at
# them.
_SPLITTERS = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"})


class UnencodableItem(ValueError):
    """An item that strict JSON cannot hold; the message names the field and the value's kind."""


class ResultsPipeline:
    """Last in the chain: what it gets is what the sinks and the feeds get."""

    def __init__(self, *, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler=crawler)

    def process_item(self, item: Any) -> Any:
        """Stage the item.

        Raises:
            UnencodableItem: it cannot be stored; it takes the path of any other item error.
        """
        payload = encode_item(item)
        ledger = getattr(self._crawler.engine, "scheduler", None)
        if ledger is not None and hasattr(ledger, "stage_item"):
            ledger.stage_item(payload)
        return item


def encode_item(item: Any) -> str:
    """The item as strict JSON in one line.

    Dates and times are ISO 8601; decimals, UUIDs and paths' kin are strings, so that no digit is
    lost; sets are lists; items inside items are objects.

    Raises:
        UnencodableItem: bytes, NaN, Infinity, half a surrogate pair, an object of another kind, a
            cycle.
    """
    try:
        text = _ENCODER.encode(_fields_of(item))
        if text.isascii():
            return text
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise UnencodableItem(_explain(item, error)) from None
    return text.translate(_SPLITTERS)


def _fields_of(item: Any) -> dict[str, Any]:
    """What ``dict(ItemAdapter(item))`` would hold; the two usual kinds are read without it."""
    if type(item) is dict:
        return item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        names = _field_names(type(item))
        return {name: getattr(item, name) for name in names if hasattr(item, name)}
    return dict(ItemAdapter(item))


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _plain(value: Any) -> Any:
    """What JSON has no word for, in words that it has."""
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return _finite(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if is_item(value):
        return dict(ItemAdapter(value))
    raise TypeError(type(value).__name__)


def _finite(value: decimal.Decimal | uuid.UUID) -> str:
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise ValueError("not a finite number")
    return str(value)


def _explain(item: Any, error: Exception) -> str:
    """Which field it is; found only now, since it costs more than the encoding."""
    for path, problem in _problems("", item, depth=0):
        return f"{path.lstrip('.') or 'the item'} {problem}"
    return f"the item cannot be JSON: {error}"


def _problems(path: str, value: Any, *, depth: int) -> Iterator[tuple[str, str]]:
    if depth > 100:  # noqa: PLR2004 - no page is so deep, a cycle is
        yield path[:200], "contains itself, or is nested too deep"
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            yield path, "holds half a surrogate pair"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield path, f"is {value}, which JSON has not"
    elif is_item(value):
        for key, inner in ItemAdapter(value).items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                yield path, f"has a key of type {type(key).__name__}"
            yield from _problems(f"{path}.{key}", inner, depth=depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, inner in enumerate(value):
            yield from _problems(f"{path}[{index}]", inner, depth=depth + 1)
    elif value is not None and not isinstance(value, (bool, int)):
        try:
            _plain(value)
        except (TypeError, ValueError):
            yield path, f"is of type {type(value).__name__}, which JSON has not"


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
