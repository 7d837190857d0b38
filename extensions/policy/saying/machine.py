"""What this machine, its stores and its callbacks hold back, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wording import count, duration, mebibytes, middle, milliseconds, plural, rate, share
from .form import Sentence

if TYPE_CHECKING:
    from ..bottleneck import Readings


def disk_full(r: Readings) -> Sentence:
    """No room for the job's store."""
    return Sentence(
        f"Disk full: {mebibytes(r.free_bytes)} left in {middle(r.disk, 30)}, fetching waits.",
        "It goes on by itself when there is room for the job's store again. Nothing is lost.",
    )


def store(r: Readings) -> Sentence:
    """The job's store does not answer."""
    return Sentence(
        f"{middle(r.store, 20)} not reachable for {duration(r.store_silent_s)}: "
        f"{plural(r.results_waiting, 'result')} wait, retrying.",
        "What is not written yet waits in memory; nothing new is asked until it answers.",
    )


def network(r: Readings) -> Sentence:
    """Every domain fails."""
    return Sentence(
        f"This machine's network is down: no domain answers; "
        f"one probe every {duration(r.probe_every_s)}, no attempt is spent.",
        "The crawl goes on by itself when a probe is answered.",
    )


def sink_down(r: Readings) -> Sentence:
    """Results are not taken."""
    return Sentence(
        f"{middle(r.sink, 24)} takes nothing for {duration(r.sink_down_s)}: "
        f"{count(r.results_waiting)} of {plural(r.results_bound, 'result')} wait.",
        (f"{middle(r.sink_says, 160).rstrip('.')}. " if r.sink_says else "")
        + "Results are kept in the job's store and written when it takes them again.",
    )


def writer(r: Readings) -> Sentence:
    """Results are taken too slowly."""
    return Sentence(
        f"Writer behind: {middle(r.sink, 24)} takes {rate(r.results_per_s)}, "
        f"pages would bring {rate(r.pages_would_per_s)}.",
        f"{count(r.results_waiting)} of {plural(r.results_bound, 'result')} wait, so fetching "
        "waits. Nothing is lost; it goes on by itself.",
    )


def parsing(r: Readings) -> Sentence:
    """Answers wait for callbacks."""
    return Sentence(
        f"Callbacks behind: {mebibytes(r.backout_bytes)} of answers wait for the spider; "
        "downloads wait.",
        "Look at what the callback does with a page: heavy parsing, or waiting for something else.",
    )


def busy(r: Readings) -> Sentence:
    """One core is full."""
    return Sentence(
        f"One CPU core is full ({share(r.cpu_share)}, loop lag {milliseconds(r.lag_s)}): "
        "this is all that one process gives.",
        "A second process with the same JOBDIR is refused; split the seeds, or use a queue.",
    )


def memory(r: Readings) -> Sentence:
    """Memory is near its limit."""
    return Sentence(
        f"Memory near its limit: {mebibytes(r.rss_bytes)} of {mebibytes(r.rss_limit_bytes)}; "
        "the crawl closes at the limit.",
        "MEMUSAGE_LIMIT_MB sets it. With JOBDIR the next start goes on where this one ended.",
    )
