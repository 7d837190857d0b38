"""How far a crawl is, in one line: for the log, for systemd, for a terminal's title.

The rule it keeps: the sentence first, for people; then `key=value`, for programs, with units in the
key and no thousands separators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from .policy.sentences import clause
from .policy.wording import clock, count, duration, share, short_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .snapshot import Snapshot


def times_in_words(s: Snapshot, *, about: str = "~") -> str:
    """The two times: ``98% by ~16:12, all by ~17:59``."""
    if s.open_ended:
        return f"links still found ({s.links_per_page:.1f} a page)"
    if not s.times_known:
        return "time left unknown"

    def moment(wait_s: float) -> str:
        return (
            f"in {duration(wait_s)}"
            if wait_s < 60
            else f"by {about}{clock(s.at + wait_s, now_at=s.at)}"
        )

    parts = []
    if s.times.most_s is not None:
        parts.append(f"98% {moment(s.times.most_s)}")
    parts.append("end unknown" if s.times.all_s is None else f"all {moment(s.times.all_s)}")
    if s.times.unknown:
        parts.append(f"{count(s.times.unknown)} domain{'s' * (s.times.unknown > 1)} unknown")
    return ", ".join(parts)


def line(s: Snapshot) -> str:
    """The line of a log: the sentence first, then ``key=value``."""
    a = s.account
    unread = "~" if a.unread else ""
    head = (
        f"{a.got} of {unread}{a.known} pages ({share(a.done_share)}), {short_rate(s.pages_per_s)}"
    )
    keys = (
        "pages", "pages_per_s", "pending", "pending_in_memory", "pending_on_disk", "pending_high",
        "proxies", "healthy_proxies", "in_flight", "delayed", "refused_share", "retries_out_per_s", "retries_in_per_s",
        "results_waiting", "dead_letters", "rss_mib", "loop_lag_ms", "time_left_s",
    )  # fmt: skip
    figures = s.figures()
    pairs = [f"{key}={figures[key]}" for key in keys if figures[key] is not None]
    pairs += [f"bottleneck={s.code}", f"bottleneck_s={max(0, round(s.at - s.since_at))}"]
    return f"{head}, {times_in_words(s)}. {s.sentence.text} | {' '.join(pairs)}"


def status_line(s: Snapshot) -> str:
    """One short line for systemd: ``75%, 19.2/s, all by ~17:59. Sites set the pace: ...``."""
    done = f"{share(s.account.done_share)}, {short_rate(s.pages_per_s)}"
    return f"{done}, {times_in_words(s)}. {s.sentence.text}"


def title(s: Snapshot) -> str:
    """A few words for a terminal's title."""
    return f"{share(s.account.done_share)} {s.spider}: {clause(s.sentence.text)}"


def wants_display(
    stream: TextIO, environment: Mapping[str, str], *, wanted: bool, log_file: str | None
) -> bool:
    """Is there somebody at a terminal who would see a live display on *stream*?"""
    if not wanted or environment.get("CI") or environment.get("TERM", "") in {"", "dumb"}:
        return False
    return log_file is None and stream.isatty()
