"""How a crawl begins, waits for its seeds, is stopped and ends, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wording import clock, count, duration, host, lost_of, middle, plural, rate
from .form import Sentence

if TYPE_CHECKING:
    from ..bottleneck import Readings


def _kept(r: Readings) -> str:
    fate = "are kept" if r.kept else "are forgotten (no JOBDIR)" if r.stopping else "wait"
    return f"{count(r.pending + r.delayed)} pending {fate}"


def finished(r: Readings) -> Sentence:
    """It has ended, and nothing is missing."""
    return Sentence(
        f"Complete: {plural(r.pages, 'page')} in {duration(r.running_s)}.",
        f"{count(r.skipped)} skipped as asked by robots.txt or a filter." if r.skipped else "",
    )


def incomplete(r: Readings) -> Sentence:
    """It has ended, and something is."""
    left = r.pending + r.delayed + r.in_flight
    if r.lost or r.lost_items:
        text = f"Incomplete: {lost_of(r.lost, r.lost_items, r.asked)} {_are(r.lost + r.lost_items)} lost"
        if r.lost and r.lost_domain and r.domains > 1:
            some = "all" if r.lost_there >= r.lost else count(r.lost_there)
            text += f", {some} on {host(r.lost_domain)}"
        return Sentence(f"{text}.", "What is lost is kept as dead letters and can be replayed.")
    if left:
        return Sentence(
            f"Stopped early: {count(left)} of {plural(r.asked, 'page')} {_are(left)} left, "
            f"{'kept' if r.kept else 'forgotten (no JOBDIR)'}.",
            "The same command with the same JOBDIR goes on from here." if r.kept else "",
        )
    return Sentence("Incomplete: the source of the seeds failed before its end.")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def stopping(r: Readings) -> Sentence:
    """It is ending."""
    return Sentence(
        f"Stopping: {plural(r.in_flight, 'request')} in flight, "
        f"at most {duration(r.stop_within_s)} more; {_kept(r)}.",
        until_at=r.now_at + r.stop_within_s,
    )


def paused(r: Readings) -> Sentence:
    """Somebody has paused it."""
    by = f" {middle(r.paused_by, 30)}" if r.paused_by else ""
    return Sentence(
        f"Paused since {clock(r.paused_since_at, now_at=r.now_at)}{by}: {_kept(r)}.",
        "No site is asked anything. Resume it on this page, or stop it and start it again later.",
    )


def seeds(r: Readings) -> Sentence:
    """The spider's `start()` is the slowest stage."""
    return Sentence(
        f"Waiting for seeds: the source gives {rate(r.seeds_per_s)}, each is asked at once.",
        "The spider's start() is the slowest stage: a file, a database or a feed that it reads.",
    )


def starting(r: Readings) -> Sentence:
    """No page yet."""
    if r.robots_domains and r.robots_domains < r.domains:
        return Sentence(
            f"Starting: robots.txt read for {count(r.robots_domains)} of "
            f"{plural(r.domains, 'domain')}, no page yet."
        )
    if r.domains:
        return Sentence(f"Starting: {plural(r.domains, 'domain')} known, no page yet.")
    return Sentence("Starting: no request yet.")


def idle(r: Readings) -> Sentence:
    """A queue of seeds is empty."""
    text = "Idle"
    if r.idle_since_at is not None:
        text += f" for {duration(r.now_at - r.idle_since_at)}"
    text += ": no seed" + (f" in {middle(r.source, 36)}" if r.source else "")
    if r.idle_until_at is not None:
        text += f"; closes at {clock(r.idle_until_at, now_at=r.now_at)}"
    return Sentence(f"{text}.", until_at=r.idle_until_at)
