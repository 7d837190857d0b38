"""What a host says of its quota, in whatever header it says it: as two plain numbers for the governor.

The rule it keeps: a header is a hint. What cannot be read is no hint, and a quota that the host names is only ever a reason
to be slower than what was measured.

Source: the IETF draft "RateLimit header fields for HTTP" (structured fields), its earlier three-header form, and the
`X-RateLimit-*` headers that GitHub, Twitter and many frameworks send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import http_sf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http.headers import Headers

EPOCH_FROM = 1_000_000_000
"""A reset from here on is a date in Unix seconds, not a number of seconds: the year 2001, or 31 years from now."""
MILLISECONDS_FROM = 1_000_000_000_000

_FAMILIES = ("RateLimit", "X-RateLimit", "X-Rate-Limit")


@dataclass(frozen=True, slots=True)
class Quota:
    """Requests left, and the seconds until there are more."""

    remaining: int
    reset_s: float


def quota_of(headers: Headers, *, now_at: float) -> Quota | None:
    """The tightest quota that *headers* name; None: none that can be read.

    Args:
        headers: Of a response.
        now_at: Wall-clock seconds, for resets given as a date.
    """
    if not any(b"Rate" in name for name in headers):
        return None  # nearly all answers: two microseconds
    found = [*_structured(headers), *_separate(headers, now_at)]
    return min(found, key=lambda q: q.remaining / max(q.reset_s, 1e-3), default=None)


def _structured(headers: Headers) -> Iterator[Quota]:
    """`RateLimit: "name";r=50;t=30` and the earlier `RateLimit: limit=100, remaining=50, reset=30`."""
    value = b", ".join(headers.getlist("RateLimit"))
    if not value:
        return
    try:
        members: Any = http_sf.parse(value, tltype="list")
        for _, parameters in members:
            yield from _quota(parameters.get("r"), parameters.get("t"))
    except (ValueError, TypeError, AttributeError):
        pass
    try:
        fields: Any = http_sf.parse(value, tltype="dictionary")
        yield from _quota(
            *(fields[key][0] if key in fields else None for key in ("remaining", "reset"))
        )
    except (ValueError, TypeError, KeyError, IndexError):
        pass


def _separate(headers: Headers, now_at: float) -> Iterator[Quota]:
    """`...-Remaining` and `...-Reset`, each a header."""
    for family in _FAMILIES:
        remaining = _number(headers.get(f"{family}-Remaining"))
        reset = _number(headers.get(f"{family}-Reset"))
        if reset is not None and reset >= MILLISECONDS_FROM:
            reset /= 1000
        if reset is not None and reset >= EPOCH_FROM:
            reset -= now_at
        yield from _quota(remaining, reset)


def _quota(remaining: Any, reset_s: Any) -> Iterator[Quota]:
    numbers = all(
        isinstance(n, (int, float)) and not isinstance(n, bool) for n in (remaining, reset_s)
    )
    if numbers and remaining >= 0 and reset_s > 0:
        yield Quota(int(remaining), float(reset_s))


def _number(value: bytes | None) -> float | None:
    """ASCII digits, with a fraction at most; anything else is no number."""
    text = (value or b"").decode("latin-1").strip()
    whole, _, fraction = text.partition(".")
    if not (text.isascii() and whole.isdigit() and len(text) < 20):  # noqa: PLR2004 - longer is no time
        return None
    return float(text) if not fraction or fraction.isdigit() else None
