"""The bottleneck in words: who or what does what, then the number that proves it.

The rule it keeps: the first clause is at most 60 characters (a terminal's title, systemd's status),
the sentence at most 110, whatever a host is called; no jargon, no number of the controller's own.
The second line says what follows, until when, and what can be done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .bottleneck import Code
from .saying import course, machine, sites
from .saying.form import MAX_CLAUSE, MAX_SENTENCE, Sentence, clause
from .wording import fit

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bottleneck import Readings

__all__ = ["MAX_CLAUSE", "MAX_SENTENCE", "NAMES", "Sentence", "clause", "sentence"]


def sentence(code: Code, readings: Readings) -> Sentence:
    """Say *code* with the numbers of *readings*.

    Returns:
        A text of at most 110 characters, of them at most 60 before the colon.
    """
    said = _SAY[code](readings)
    return replace(said, text=fit(said.text, MAX_SENTENCE))


_SAY: dict[Code, Callable[[Readings], Sentence]] = {
    Code.FINISHED: course.finished,
    Code.INCOMPLETE: course.incomplete,
    Code.STOPPING: course.stopping,
    Code.PAUSED: course.paused,
    Code.DISK_FULL: machine.disk_full,
    Code.STORE_UNREACHABLE: machine.store,
    Code.NETWORK_DOWN: machine.network,
    Code.SINK_DOWN: machine.sink_down,
    Code.WRITER_BEHIND: machine.writer,
    Code.PARSING_BEHIND: machine.parsing,
    Code.MACHINE_BUSY: machine.busy,
    Code.MEMORY_NEAR: machine.memory,
    Code.SLOTS_FULL: sites.slots,
    Code.NO_PROXY: sites.proxy,
    Code.ONLY_WAITING: sites.waiting,
    Code.RETRIES_ONLY: sites.retries,
    Code.FEW_DOMAINS: sites.few,
    Code.POOL_LIMIT: sites.pool,
    Code.USER_LIMIT: sites.user,
    Code.CRAWL_DELAY: sites.crawl_delay,
    Code.SITES_LIMIT: sites.limit,
    Code.SEEDS_SLOW: course.seeds,
    Code.STARTING: course.starting,
    Code.SPEEDING_UP: sites.speeding,
    Code.IDLE: course.idle,
    Code.MIXED: sites.mixed,
}

NAMES: dict[Code, str] = {
    Code.FINISHED: "finished",
    Code.INCOMPLETE: "ended incomplete",
    Code.STOPPING: "stopping",
    Code.PAUSED: "paused",
    Code.DISK_FULL: "disk full",
    Code.STORE_UNREACHABLE: "store not reachable",
    Code.NETWORK_DOWN: "network down",
    Code.SINK_DOWN: "results not taken",
    Code.WRITER_BEHIND: "writer behind",
    Code.PARSING_BEHIND: "callbacks behind",
    Code.MACHINE_BUSY: "CPU core full",
    Code.MEMORY_NEAR: "memory near limit",
    Code.SLOTS_FULL: "CONCURRENT_REQUESTS",
    Code.NO_PROXY: "no healthy proxy",
    Code.ONLY_WAITING: "all domains held",
    Code.RETRIES_ONLY: "retries only",
    Code.FEW_DOMAINS: "few domains left",
    Code.POOL_LIMIT: "proxies' limits",
    Code.USER_LIMIT: "your own limits",
    Code.CRAWL_DELAY: "Crawl-delay",
    Code.SITES_LIMIT: "sites' own limits",
    Code.SEEDS_SLOW: "waiting for seeds",
    Code.STARTING: "starting",
    Code.SPEEDING_UP: "speeding up",
    Code.IDLE: "idle",
    Code.MIXED: "nothing dominates",
}
