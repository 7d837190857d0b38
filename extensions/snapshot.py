"""The one snapshot of a crawl that page, terminal, log line, JSON, metrics and report all show.

The rule it keeps: one moment, one set of numbers, one name for each. What is shown in two places is
the same object.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .policy.account import Account
    from .policy.bottleneck import Cause, Level
    from .policy.eta import Times
    from .policy.findings import Finding
    from .policy.sentences import Sentence


@dataclass(slots=True, kw_only=True)
class Gauges:
    """What the crawl's parts say of themselves now: plain counters, read in constant time.

    Moments (`_at`) are wall-clock seconds. A part that is not there leaves its defaults.
    """

    pending_in_memory: int = 0
    pending_on_disk: int = 0
    pending_high: int = 0
    pending_low: int = 0
    gate_open: bool = True
    delayed: int = 0
    next_due_at: float | None = None
    last_due_at: float | None = None
    leased: int = 0  # handed out and not ended: at a site or in the spider
    in_flight: int = 0  # at a site
    max_in_flight: int = 0
    results_waiting: int = 0
    results_bound: int = 0
    oldest_result_s: float = 0.0
    results_written: int = 0
    sink: str = "results"
    sink_down_s: float = 0.0
    sink_says: str = ""  # why it takes nothing
    store: str = "job store"
    store_silent_s: float = 0.0
    network_down: bool = False
    probe_every_s: float = 5.0
    disk_full: bool = False
    free_bytes: int = 0
    disk: str = ""
    stopping: bool = False
    stop_within_s: float = 0.0
    paused_since_at: float | None = None
    paused_by: str = ""
    seeds_done: bool = False
    seeds_read: int = 0
    unread: int | None = 0
    links_found: int = 0
    backout_bytes: int = 0
    waits_for_seeds: bool = False
    idle_until_at: float | None = None
    source: str = ""
    user_delay_s: float = 0.0
    robots_domains: int = 0
    proxies: int = 0
    healthy_proxies: int = 0
    worst_proxies: Sequence[Mapping[str, Any]] = ()  # the first few: the resting, then the failing
    next_proxy_at: float | None = None


@dataclass(slots=True, kw_only=True)
class DomainNow:
    """One domain with work at one moment."""

    cause: Cause
    pending: int
    delayed: int = 0
    in_flight: int = 0
    limit: int = 0
    pace: float | None = None
    wait_s: float = 0.0  # until it may be asked; inf: when a running request ends
    growing: bool = False
    why: str = ""
    crawl_delay_s: float = 0.0


class CrawlView(Protocol):
    """What has to be readable of a crawl. Nothing here changes it, and nothing scans."""

    def gauges(self, now_at: float) -> Gauges:
        """The counters of this moment."""

    def working(self) -> Iterable[str]:
        """Names of the domains with work."""

    def domain(self, name: str, now: float) -> DomainNow | None:
        """One of them; None when it has no more work."""

    def held_back(self) -> str:
        """Why the scheduler's last answer was nothing; empty where it handed something out."""

    def in_flight(self) -> int:
        """Requests at a site now."""

    def backed_out(self) -> bool:
        """Do answers wait for callbacks?"""

    def gate_waits(self) -> bool:
        """Does the crawl wait for the spider's `start()`?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A crawl at one moment. The field names are the JSON names, and stable."""

    seq: int
    at: float
    spider: str
    job: str
    pid: int
    started_at: float
    running_s: float  # over all processes of the job
    here_s: float  # this one
    got_here: int  # pages of this one
    code: str
    level: Level
    sentence: Sentence
    since_at: float
    account: Account
    gauges: Gauges
    times: Times
    pages_per_s: float
    pages_per_s_mean: float
    refused_per_s: float
    refused_share: float | None
    retries_out_per_s: float
    retries_in_per_s: float
    links_per_page: float
    rss_bytes: int
    cpu_share: float
    loop_lag_s: float
    domains: int
    working: int
    states: Mapping[str, int]
    blocked: Mapping[str, int]
    seconds: Mapping[str, float]
    finish_reason: str | None = None
    exit_code: int | None = None
    exit_rule: str = ""
    findings: tuple[Finding, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        """Known, not handed out."""
        return self.gauges.pending_in_memory + self.gauges.pending_on_disk

    @property
    def open_ended(self) -> bool:
        """Are so many links still found that no end can be told?"""
        return self.links_per_page >= 1

    @property
    def times_known(self) -> bool:
        """Is it late enough, and is nothing in the way, to tell when it ends?"""
        early = self.here_s < 60 and self.got_here < 50
        held = self.code in {
            "writer_behind", "paused", "sink_down", "disk_full", "network_down", "no_proxy"
        }  # fmt: skip
        return not (early or held or self.open_ended or self.finish_reason)

    def figures(self) -> dict[str, Any]:
        """The numbers alone, flat: the keys of the log line and of the JSON."""
        g, account = self.gauges, self.account
        left_s = self.times.all_s if self.times_known else None
        return {
            "pages": account.got,
            "pages_per_s": round(self.pages_per_s, 2),
            "pending": self.pending,
            "pending_in_memory": g.pending_in_memory,
            "pending_on_disk": g.pending_on_disk,
            "pending_high": g.pending_high,
            "pending_low": g.pending_low,
            "proxies": g.proxies or None,
            "healthy_proxies": g.healthy_proxies if g.proxies else None,
            "in_flight": g.in_flight,
            "max_in_flight": g.max_in_flight,
            "delayed": g.delayed,
            "next_due_at": g.next_due_at,
            "last_due_at": g.last_due_at,
            "refused_share": None if self.refused_share is None else round(self.refused_share, 4),
            "refused_per_s": round(self.refused_per_s, 2),
            "retries_out_per_s": round(self.retries_out_per_s, 2),
            "retries_in_per_s": round(self.retries_in_per_s, 2),
            "results_waiting": g.results_waiting,
            "results_bound": g.results_bound,
            "results_written": g.results_written,
            "oldest_result_s": round(g.oldest_result_s, 1),
            "dead_letters": account.dead,
            "skipped": account.skipped,
            "rss_mib": round(self.rss_bytes / 2**20, 1),
            "cpu_share": round(self.cpu_share, 3),
            "loop_lag_ms": round(self.loop_lag_s * 1000, 1),
            "links_per_page": round(self.links_per_page, 2),
            "time_left_s": None if left_s is None else round(left_s),
        }

    def as_json(self) -> dict[str, Any]:
        """The whole snapshot as strict JSON values, without the domains."""
        account, said, times = self.account, self.sentence, self.times
        known = self.times_known
        return {
            "seq": self.seq,
            "at": round(self.at, 3),
            "spider": self.spider,
            "job": self.job,
            "pid": self.pid,
            "started_at": round(self.started_at, 3),
            "running_s": round(self.running_s, 1),
            "finish_reason": self.finish_reason,
            "exit_code": self.exit_code,
            "exit_rule": self.exit_rule,
            "bottleneck": {
                "code": self.code,
                "level": str(self.level),
                "sentence": said.text,
                "hint": said.hint,
                "since": round(self.since_at, 1),
                "until_at": said.until_at,
                "domains": list(said.domains[:3]),
                "seconds": {name: round(spent, 1) for name, spent in self.seconds.items()},
            },
            "account": {
                "asked": account.asked,
                "got": account.got,
                "dead_letters": account.dead,
                "skipped": account.skipped,
                "pending": account.pending,
                "delayed": account.delayed,
                "in_flight": account.in_flight,
                "unread": account.unread,
                "difference": account.difference,
                "done_share": round(account.done_share, 4),
            },
            "times": {
                "known": known,
                "most_at": _moment(self.at, times.most_s) if known else None,
                "all_at": _moment(self.at, times.all_s) if known else None,
                "last_domain": times.last,
                "unknown_domains": times.unknown,
                "links_per_page": round(self.links_per_page, 2),
            },
            "domains": {
                "known": self.domains,
                "working": self.working,
                "states": dict(self.states),
                "blocked": dict(self.blocked),
            },
            "findings": [finding._asdict() for finding in self.findings],
            "gate_open": self.gauges.gate_open,
            "seeds_done": self.gauges.seeds_done,
            "paused_since_at": self.gauges.paused_since_at,
            "sink": self.gauges.sink,
            "pool": list(self.gauges.worst_proxies),
            "pages_per_s_mean": round(self.pages_per_s_mean, 2),
            **self.figures(),
            **self.extra,
        }


def _moment(at: float, wait_s: float | None) -> float | None:
    if wait_s is None or not math.isfinite(wait_s):
        return None
    return round(at + wait_s)
