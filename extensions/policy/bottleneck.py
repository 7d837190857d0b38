"""What holds the crawl back now: one code out of a table, from plain counters.

The rule it keeps: walk from the end of the pipe to its start, because a full later stage explains
every earlier one; the first row that matches wins. Shares are shares of *domains with work*, so
that one big domain cannot hide thirty. A full start gate is no bottleneck: it is the cap doing its
work. A full CONCURRENT_REQUESTS is the user's choice: no warning.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Level(enum.StrEnum):
    """How a code is shown."""

    OK = "ok"
    WARN = "warn"  # held back by something outside
    BAD = "bad"  # lost, or will not mend itself


class Cause(enum.StrEnum):
    """Why a domain with work gets no further request now."""

    NONE = "none"  # it could send
    PACE = "pace"
    CONCURRENCY = "concurrency"
    HOLD = "hold"
    PARK = "park"
    PROBE = "probe"
    DOWN = "down"
    ROBOTS = "robots"
    CRAWL_DELAY = "crawl_delay"
    USER_DELAY = "user_delay"
    USER_CEILING = "user_ceiling"
    USER_PAUSE = "user_pause"
    PROXY = "proxy"  # none is any good for it
    POOL = "pool"  # those that are carry what they may


HELD = (Cause.HOLD, Cause.PARK, Cause.PROBE, Cause.DOWN)


class Code(enum.StrEnum):
    """The stable names: in JSON, logs, metrics and reports."""

    FINISHED = "finished"
    INCOMPLETE = "incomplete"
    STOPPING = "stopping"
    PAUSED = "paused"
    DISK_FULL = "disk_full"
    STORE_UNREACHABLE = "store_unreachable"
    NETWORK_DOWN = "network_down"
    SINK_DOWN = "sink_down"
    WRITER_BEHIND = "writer_behind"
    PARSING_BEHIND = "parsing_behind"
    MACHINE_BUSY = "machine_busy"
    MEMORY_NEAR = "memory_near"
    SLOTS_FULL = "slots_full"
    NO_PROXY = "no_proxy"
    ONLY_WAITING = "only_waiting"
    RETRIES_ONLY = "retries_only"
    FEW_DOMAINS = "few_domains"
    POOL_LIMIT = "pool_limit"
    USER_LIMIT = "user_limit"
    CRAWL_DELAY = "crawl_delay"
    SITES_LIMIT = "sites_limit"
    SEEDS_SLOW = "seeds_slow"
    STARTING = "starting"
    SPEEDING_UP = "speeding_up"
    IDLE = "idle"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The counters of one moment.

    Shares are in 0..1 and of the last ten seconds; moments (`_at`) are wall-clock seconds.
    """

    now_at: float = 0.0
    running_s: float = 0.0
    # the account
    asked: int = 0
    pages: int = 0
    lost: int = 0  # requests
    lost_items: int = 0
    skipped: int = 0
    pending: int = 0
    delayed: int = 0
    next_due_at: float | None = None
    last_due_at: float | None = None
    # how it ended or is ending
    closed: bool = False
    complete: bool = False  # only read when closed: nothing lost and nothing left
    kept: bool = True  # what is left goes on at the next start
    lost_domain: str | None = None  # where most was lost, and how much
    lost_there: int = 0
    stopping: bool = False
    stop_within_s: float = 0.0
    paused_since_at: float | None = None
    paused_by: str = ""
    # what the results and the store say
    disk_full: bool = False
    free_bytes: int = 0
    disk: str = ""
    store: str = "job store"
    store_silent_s: float = 0.0
    network_down: bool = False
    probe_every_s: float = 5.0
    sink: str = "results"
    sink_down_s: float = 0.0
    sink_says: str = ""
    results_waiting: int = 0
    results_bound: int = 0
    results_share: float = (
        0.0  # of the scheduler's answers that were "not while so many results wait"
    )
    results_per_s: float = 0.0
    pages_would_per_s: float = 0.0
    # this machine
    backout_share: float = 0.0
    backout_bytes: int = 0
    cpu_share: float = 0.0
    lag_s: float = 0.0  # 99th percentile of the event loop's lateness
    rss_bytes: int = 0
    rss_limit_bytes: int = 0
    # at the sites
    in_flight: int = 0
    max_in_flight: int = 0
    in_flight_share: float = 0.0
    blocked: Mapping[Cause, int] = field(default_factory=dict)  # domains with work, by cause
    growing: int = 0  # of them: have not met their limit
    domains: int = 0  # all domains ever seen
    slowest: str | None = None
    slowest_per_s: float | None = None
    slowest_left_s: float | None = None
    held: str | None = None  # the held domain that may be asked first
    held_why: str = ""
    held_until_at: float | None = None
    crawl_delay_domain: str | None = None
    crawl_delay_s: float = 0.0
    user_delay_s: float = 0.0
    proxies: int = 0
    healthy_proxies: int = 0  # of them; those that a domain has banned are healthy too
    next_proxy_at: float | None = None
    # the source
    seeds_done: bool = True
    seed_wait_share: float = 0.0  # of the time, waited for the spider's start()
    seeds_per_s: float = 0.0
    pending_low: int = 0
    gate_open: bool = True
    robots_domains: int = 0  # domains whose robots.txt was read
    waits_for_seeds: bool = False  # a spider that does not end when nothing is left
    idle_since_at: float | None = None
    idle_until_at: float | None = None
    source: str = ""

    @property
    def working(self) -> int:
        """Domains with work."""
        return sum(self.blocked.values())

    def of(self, *causes: Cause) -> int:
        """Domains with work that one of *causes* keeps."""
        return sum(self.blocked.get(cause, 0) for cause in causes)

    def most(self, *causes: Cause) -> bool:
        """Is at least half of the domains with work kept by one of *causes*?"""
        return self.working > 0 and 2 * self.of(*causes) >= self.working


class Rule(NamedTuple):
    """One row of the table."""

    code: Code
    level: Level
    holds: Callable[[Readings], bool]


def _only_waiting(r: Readings) -> bool:
    return (
        r.working > 0 and r.of(*HELD) == r.working and r.in_flight <= r.of(Cause.PROBE, Cause.DOWN)
    )


def _few_domains(r: Readings) -> bool:
    few = 0 < r.working <= max(1, r.domains // 10) and r.domains > 1
    return r.seeds_done and few and 2 * r.in_flight < max(r.max_in_flight, 1)


def _seeds_slow(r: Readings) -> bool:
    return (
        not r.seeds_done
        and r.gate_open
        and r.pending < max(min(r.pending_low, r.max_in_flight), 1)
        and r.seed_wait_share > 0.5
        and not _idle(r)
    )


def _machine_busy(r: Readings) -> bool:
    return r.cpu_share > 0.9 and r.lag_s > 0.1


def _retries_only(r: Readings) -> bool:
    return r.pending == 0 and r.in_flight == 0 and r.delayed > 0 and r.seeds_done


def _idle(r: Readings) -> bool:
    return r.waits_for_seeds and not (r.pending or r.in_flight or r.delayed)


RULES = (
    Rule(Code.FINISHED, Level.OK, lambda r: r.closed and r.complete),
    Rule(Code.INCOMPLETE, Level.BAD, lambda r: r.closed),
    Rule(Code.STOPPING, Level.WARN, lambda r: r.stopping),
    Rule(Code.PAUSED, Level.WARN, lambda r: r.paused_since_at is not None),
    Rule(Code.DISK_FULL, Level.BAD, lambda r: r.disk_full),
    Rule(Code.STORE_UNREACHABLE, Level.BAD, lambda r: r.store_silent_s > 3),
    Rule(Code.NETWORK_DOWN, Level.BAD, lambda r: r.network_down),
    Rule(Code.SINK_DOWN, Level.BAD, lambda r: r.sink_down_s > 5),
    Rule(Code.WRITER_BEHIND, Level.WARN, lambda r: r.results_share > 0.5),
    Rule(Code.PARSING_BEHIND, Level.WARN, lambda r: r.backout_share > 0.5),
    Rule(Code.MACHINE_BUSY, Level.WARN, _machine_busy),
    Rule(
        Code.MEMORY_NEAR,
        Level.WARN,
        lambda r: r.rss_limit_bytes > 0 and r.rss_bytes > 0.9 * r.rss_limit_bytes,
    ),
    Rule(Code.SLOTS_FULL, Level.OK, lambda r: r.in_flight_share >= 0.97 and r.of(Cause.NONE) > 0),
    Rule(Code.NO_PROXY, Level.BAD, lambda r: 0 < r.working == r.of(Cause.PROXY)),
    Rule(Code.ONLY_WAITING, Level.WARN, _only_waiting),
    Rule(Code.RETRIES_ONLY, Level.OK, _retries_only),
    Rule(Code.FEW_DOMAINS, Level.OK, _few_domains),
    Rule(Code.POOL_LIMIT, Level.OK, lambda r: r.most(Cause.POOL)),
    Rule(Code.USER_LIMIT, Level.OK, lambda r: r.most(Cause.USER_DELAY, Cause.USER_CEILING)),
    Rule(Code.CRAWL_DELAY, Level.OK, lambda r: r.most(Cause.CRAWL_DELAY)),
    Rule(Code.SITES_LIMIT, Level.OK, lambda r: r.most(Cause.PACE, Cause.CONCURRENCY)),
    Rule(Code.SEEDS_SLOW, Level.WARN, _seeds_slow),
    Rule(Code.STARTING, Level.OK, lambda r: r.pages == 0 and r.lost == 0 and not _idle(r)),
    Rule(Code.SPEEDING_UP, Level.OK, lambda r: r.working > 0 and 2 * r.growing >= r.working),
    Rule(Code.IDLE, Level.OK, _idle),
    Rule(Code.MIXED, Level.OK, lambda _: True),
)
LEVELS = {rule.code: rule.level for rule in RULES}


def code_of(readings: Readings) -> Code:
    """The one code that *readings* match: the first of `RULES`."""
    return next(rule.code for rule in RULES if rule.holds(readings))
