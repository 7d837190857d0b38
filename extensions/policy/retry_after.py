"""Reads `Retry-After`: only what RFC 9110 allows counts, all else is as if it were absent.

A server that says nothing usable must not switch the computed back-off off, so zero, the past and
every malformed form read as None. `int()` and `email.utils` accept more than the RFC does (`+2`,
`1_0`, fullwidth digits, day 32), hence the explicit grammar.

Source: RFC 9110, sections 5.6.7 (dates) and 10.2.3 (Retry-After).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = re.compile(rb"[0-9]+", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_DATES = (
    # IMF-fixdate, the two-digit form of RFC 850, and asctime
    re.compile(
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT"
    ),
    re.compile(
        r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, "
        rf"(?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT"
    ),
    re.compile(
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})"
    ),
)
_MAX_DIGITS = 18  # thirty thousand million years; more digits are a mistake, not a wait
_LEAP_SECOND = 60
_CENTURY_PIVOT_S = (
    50 * 365.25 * 86400.0
)  # RFC 9110: a two-digit year over 50 years ahead is the past


def parse_http_date(value: bytes, *, now_at: float) -> float | None:
    """Seconds since the epoch of an HTTP date in any of its three forms, or None.

    Args:
        value: The field's bytes.
        now_at: Wall-clock seconds, to place a two-digit year in its century.
    """
    try:
        text = value.decode("ascii").strip(" \t")
    except UnicodeDecodeError:
        return None
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            return _epoch(found, now_at=now_at)
    return None


def _epoch(found: re.Match[str], *, now_at: float) -> float | None:
    year, second = int(found["year"]), int(found["second"])
    two_digits = len(found["year"]) == 2  # noqa: PLR2004  the form says so itself
    if two_digits:
        year += dt.datetime.fromtimestamp(now_at, dt.UTC).year // 100 * 100
    try:
        moment = dt.datetime(
            year,
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            min(second, 59) if second <= _LEAP_SECOND else second,
            tzinfo=dt.UTC,
        )
        if two_digits and moment.timestamp() > now_at + _CENTURY_PIVOT_S:
            moment = moment.replace(year=year - 100)
    except ValueError:
        return None
    return moment.timestamp()


def parse_retry_after(
    values: Sequence[bytes], *, now_at: float, server_date: bytes | None = None
) -> float | None:
    """Seconds that a server asks to wait, or None if it said nothing that can be used.

    Args:
        values: All the field's lines as received. Two lines are a list, which the RFC does not
            allow here; where all of them are valid the longest wait holds, else none does.
        now_at: Wall-clock seconds at which the answer arrived.
        server_date: The answer's `Date` field. A date in `Retry-After` is measured from it, so
            that a local clock that is an hour off does not add an hour.

    Returns:
        A finite number over zero, or None (absent, malformed, zero, or in the past).
    """
    waits = [_one(value, now_at=now_at, server_date=server_date) for value in values]
    usable = [wait for wait in waits if wait is not None]
    if not usable or len(usable) < len(waits):
        return None
    longest = max(usable)
    return longest if longest > 0.0 and math.isfinite(longest) else None


def _one(value: bytes, *, now_at: float, server_date: bytes | None) -> float | None:
    value = value.strip(b" \t")
    if _DIGITS.fullmatch(value):
        return float(value) if len(value) <= _MAX_DIGITS else None
    until_at = parse_http_date(value, now_at=now_at)
    if until_at is None:
        return None
    said_at = None if server_date is None else parse_http_date(server_date, now_at=now_at)
    return until_at - (now_at if said_at is None else said_at)
