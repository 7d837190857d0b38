"""Numbers, times and names as a person reads them: one form on page, terminal, log and report.

The rule it keeps: unknown is the word "unknown", never NaN, -1 or an empty place, and no input can
make a text long.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

MAX_HOST = 40  # characters of a host name in running text
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
DASH = "\N{EN DASH}"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONGEST_S = 30 * _DAY


def count(number: float) -> str:
    """A whole number with thousands separators; in millions or more from a thousand million on."""
    if not math.isfinite(number):
        return "unknown"
    if abs(number) >= 1e12:
        return f"{number:.1e}"
    if abs(number) >= 1e9:
        return f"{number / 1e6:,.0f} million"
    return f"{round(number):,}"


def plural(number: float, one: str, many: str | None = None) -> str:
    """The number with its noun: ``1 page``, ``2 pages``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def lost_of(pages: int, items: int, asked: int) -> str:
    """What was lost: ``3 of 20 pages``, ``3 of 20 pages and 1 item``, ``1 item``."""
    parts = [f"{count(pages)} of {plural(asked, 'page')}"] if pages else []
    parts += [plural(items, "item")] if items else []
    return " and ".join(parts)


def rate(per_s: float | None) -> str:
    """A rate in the unit that shows digits: a second, a minute under 0.1/s, an hour under 0.1/min.

    ``19.2 a second``, ``6 a minute``, ``2 an hour``; two decimals under 1 a second.
    """
    if per_s is None or not math.isfinite(per_s):
        return "unknown"
    if per_s >= 100:
        return f"{count(per_s)} a second"
    if per_s >= 1:
        return f"{per_s:.1f}".removesuffix(".0") + " a second"
    if per_s >= 0.1:
        return f"{per_s:.2f} a second"
    if per_s * _MINUTE >= 0.1:
        return f"{per_s * _MINUTE:.1f}".removesuffix(".0") + " a minute"
    if per_s * _HOUR >= 0.1:
        return f"{per_s * _HOUR:.1f}".removesuffix(".0") + " an hour"
    return "0 a second"


def short_rate(per_s: float | None) -> str:
    """A rate for a narrow place: ``19.2/s``, ``6/min``."""
    return (
        rate(per_s)
        .replace(" a second", "/s")
        .replace(" a minute", "/min")
        .replace(" an hour", "/h")
    )


def duration(seconds: float | None) -> str:
    """A span with two units at most: ``12 s``, ``17 min``, ``2 h 51 min``, ``over 30 days``."""
    if seconds is None or math.isnan(seconds):
        return "unknown"
    if seconds > _LONGEST_S:
        return "over 30 days"
    whole = round(max(0.0, seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    minutes = max(1, round(whole / _MINUTE))
    if minutes < 60:
        return f"{minutes} min"
    if whole < _DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h" if not rest else f"{hours} h {rest:02d} min"
    days, hours = divmod(round(whole / _HOUR), 24)
    return f"{days} d" if not hours else f"{days} d {hours} h"


def clock(at: float | None, *, now_at: float, seconds: bool = False) -> str:
    """A moment on this machine's wall clock: ``14:07``, with its day if that is not today."""
    if at is None or not math.isfinite(at) or not 0 <= at < 2**40:
        return "unknown"
    try:
        moment = datetime.fromtimestamp(at, tz=UTC).astimezone()
        today = datetime.fromtimestamp(now_at, tz=UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return "unknown"
    text = moment.strftime("%H:%M:%S" if seconds else "%H:%M")
    if moment.date() == today.date():
        return text
    near = abs((moment.date() - today.date()).days) < 7
    return moment.strftime("%a " if near else "%d %b %Y ") + text


def when(at: float | None, *, now_at: float) -> str:
    """A moment to come: ``in 12 s`` within a minute, else ``at 14:07``."""
    if at is None or not math.isfinite(at):
        return "unknown"
    if at - now_at <= _MINUTE:
        return f"in {duration(at - now_at)}"
    return f"at {clock(at, now_at=now_at)}"


def share(part: float) -> str:
    """A share in percent: a decimal under 10%, never 0.0% or 100% for what is neither."""
    if not math.isfinite(part):
        return "unknown"
    percent = part * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if percent < 9.95:
        return f"{percent:.1f}".removesuffix(".0") + "%"
    if 99 < percent < 100:
        return f"{math.floor(percent * 10) / 10:.1f}".removesuffix(".0") + "%"
    return f"{percent:.0f}%"


def mebibytes(size_bytes: float | None) -> str:
    """Memory and disk: ``209 MiB``, ``3.2 MiB``, ``14.0 GiB``."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return "unknown"
    size = size_bytes / 2**20
    if size >= 10_000:
        return f"{size / 1024:,.1f} GiB" if size < 1e9 else f"{size:.1e} MiB"
    return f"{size:.1f} MiB" if 0 < size < 10 else f"{size:,.0f} MiB"


def milliseconds(seconds: float | None) -> str:
    """Lag and latency: ``6 ms``, ``1.2 s`` from ten seconds on."""
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    return f"{seconds:,.1f} s" if seconds >= 10 else f"{seconds * 1000:,.0f} ms"


def middle(text: str, width: int) -> str:
    """*text* in *width* characters: printable, and cut in the middle, where names differ least."""
    clean = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: 4 * width]
    )
    if len(text) > 4 * width:
        clean += "".join(c if c.isprintable() else " " for c in text[-width:])
    if len(clean) <= width:
        return clean
    head = (width - 1) * 3 // 5
    tail = width - 1 - head
    return clean[:head] + ELLIPSIS + clean[len(clean) - tail :]


def host(name: str | None, width: int = MAX_HOST) -> str:
    """A host name for running text."""
    return middle(name, width) if name else "unknown host"


def fit(sentence: str, width: int) -> str:
    """The last resort that keeps a promise of length: cut at the end, with an ellipsis."""
    return sentence if len(sentence) <= width else sentence[: width - 1] + ELLIPSIS
