"""What a shared store tells its owner, and what it is told: plain values.

The rule it keeps: what is said of the whole job is as old as the last answer from Redis, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import DomainBacklog, StoredRequest

DUE_AT_ONCE: Final = 500
"""Delayed requests that come due in one exchange."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds between the workers of a job.

    Attributes:
        lease_s: A worker that is silent for so long is taken for dead.
        workers_per_domain: How many may share one.
        max_crashes: A request in flight at so many deaths is reported.
    """

    lease_s: float = 30.0
    workers_per_domain: int = 1
    max_crashes: int = 3


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole job, all workers together, as of the last answer.

    Attributes:
        rows: Requests known and not acknowledged.
        unclaimed: Domains with work that this worker could claim.
        domains: Those that have a worker, or work.
        hungry: Workers that have less than their share of them, and could use more.
        reclaimed: Requests that came back from a dead worker, in the last exchange.
    """

    rows: int = 0
    delayed: int = 0
    held: int = 0
    seen: int = 0
    unclaimed: int = 0
    domains: int = 0
    workers: int = 1
    hungry: int = 0
    reclaimed: int = 0
    next_due_at: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """How full the server is, as of the last time it was asked.

    Attributes:
        most_bytes: `maxmemory`; 0 for no bound.
        policy: What it does at the bound. All but ``noeviction`` and the ``volatile-`` ones throw the job away.
    """

    used_bytes: int = 0
    most_bytes: int = 0
    policy: str = "noeviction"

    @property
    def share(self) -> float:
        """The used part, in 0..1 (and over)."""
        return self.used_bytes / self.most_bytes if self.most_bytes else 0.0

    @property
    def evicts(self) -> bool:
        """Would it drop the job's keys when it is full?"""
        return self.most_bytes > 0 and self.policy.startswith("allkeys")


@dataclass(frozen=True, slots=True)
class Inherited:
    """A domain that is this worker's now, and what was known of it.

    Attributes:
        text: What its last holder's governor found, as it gave it to `Wishes.learned`; an empty JSON object for nothing.
        age_s: Seconds since that was said, by Redis's clock.
        died: That holder fell silent: nobody knows when it asked last.
    """

    domain: str
    text: str
    age_s: float
    died: bool


@dataclass(slots=True)
class Events:
    """What the store tells its owner, from within `exchange`. All are called on the event loop.

    Attributes:
        arrived: These new rows (ids) are in this worker's hands.
        passed_on: These are in Redis, for whoever has their domain.
        duplicate: These were seen before by somebody, and are not stored.
        backlog: Rows of a domain were fetched: `refill` gives them.
        crashed: These were in flight at too many deaths.
        inherited: A domain is this worker's now, and this was known of it.
        watched: The number of a key of `Wishes.watch` changed, or is over 0 where it is a queue.
    """

    arrived: Callable[[list[int]], None] = lambda _: None
    passed_on: Callable[[list[int]], None] = lambda _: None
    duplicate: Callable[[list[int]], None] = lambda _: None
    backlog: Callable[[DomainBacklog], None] = lambda _: None
    crashed: Callable[[list[StoredRequest]], None] = lambda _: None
    inherited: Callable[[Inherited], None] = lambda _: None
    watched: Callable[[str, int], None] = lambda _key, _number: None


@dataclass(slots=True)
class Wishes:
    """What the owner wants of the next exchange.

    Attributes:
        domains: How many more it could use.
        release: Domains to give up.
        learned: What its governors know of domains, as JSON text.
        memory: Whether to ask how full the server is.
        watch: Keys to look at, with the taker that uses each as a queue of seeds ('' for dead letters).
        due_by: Delayed rows up to this time are due; None: by Redis's own clock.
    """

    domains: int = 0
    release: list[str] = field(default_factory=list)
    learned: dict[str, str] = field(default_factory=dict)
    due_by: float | None = None
    due_limit: int = DUE_AT_ONCE
    memory: bool = True
    watch: dict[str, str] = field(default_factory=dict)
