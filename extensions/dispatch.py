"""Which request goes next, and why none does.

The rule it keeps: a place in the downloader is given only to a request that may go to its host now. What is not handed out
costs nothing: the next try is at a known time (one timer) or at the end of a running request.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

from . import compat, names
from .codec import Unreadable
from .leases import ErrbackRecorder

if TYPE_CHECKING:
    from scrapy import Request

    from .control import Control
    from .domains import Domain
    from .leases import Lease
    from .policy.frontier import Entry

GIVE_WAY_S = 0.02
"""How long a domain's pages give way to its waiting robots.txt and media, for which other pages wait."""
SUSPECT = 2
"""Crashes after which a request is tried alone: one crash takes all that is in flight with it, so one proves nothing."""
CAREFUL = 1000
"""Requests that go one commit each after a crash (60 microseconds more for each)."""
RECORD_WAIT_S = 0.005
"""How long a request whose row is not yet committed waits then."""
SUSPECT_WAIT_S = 0.2
"""How long a suspect waits for the others at a time."""

GIVEN_UP_SLICE = 200
"""Requests of a given-up domain buried in one call: burying a million at once would hold the event loop."""


class Idle(enum.Enum):
    """Why `next_request` handed nothing out."""

    PAUSED = "paused"
    STOPPING = "stopping"
    STORE = "store"  # the disk is full: what is handed out now could not be recorded
    RESULTS = "results"  # the writer is behind
    OUTAGE = "outage"  # this machine's own network is down
    NO_REQUEST = "no_request"  # nothing is pending in memory
    ALL_BLOCKED = "all_blocked"  # every domain with work waits


class Dispatch:
    """Chooses and hands out. One for each crawl.

    Attributes:
        idle: Why the last call handed nothing out; None where it did.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self.idle: Idle | None = None
        self._buried = 0
        self._suspect: Lease | None = None
        self._careful = 0

    def be_careful(self) -> None:
        """The process before this one died: for a while, put on record what goes before it goes.

        A page that kills the process within a flush interval would else never be found out.
        """
        self._careful = CAREFUL

    def next(self, now: float) -> Lease | None:
        """Hand out the next request that may go now; None where none may."""
        control = self._control
        control.land(now)
        self.idle = self._held_back(now)
        if self.idle is not None:
            return None
        if control.outage.out_since is not None:
            control.witness.ask(now)  # and one page goes with it
        if self._suspect is not None and self._suspect.id in control.ledger.leases:
            self.idle = Idle.ALL_BLOCKED
            if not self._suspect.flying:
                control.flush_soon()  # a crash from outside must not find it there for longer than it took
            return None
        self._wake(now)
        self._buried = 0
        while (name := control.turns.next_ready()) is not None:
            domain = control.domains.get(name, now)
            if domain.paused or domain.leaving:
                control.turns.sleep(name, math.inf)
                continue
            if domain.given_up is not None:
                if self._bury_next(domain):
                    continue
                break
            if domain.strays:
                control.turns.sleep(name, now + GIVE_WAY_S)
                continue
            if control.proxies is None:
                due = domain.governor.next_send_due(now, domain.in_flight)
            else:
                due = control.proxies.next_send_due(domain, now)
            if due > now:
                control.turns.sleep(name, due)
                continue
            entry = control.frontier.pop(name)
            if entry is None:
                continue  # its window is empty; the refill makes it ready again
            if entry.crashes >= SUSPECT and not self._may_try(entry):
                continue
            if self._careful and not self._is_on_record(entry):
                continue
            lease = self._lease(entry, domain, now)
            if self._careful and lease is not None:
                self._careful -= 1
                control.ledger.commit_lease(entry)
            self._suspect = lease if entry.crashes >= SUSPECT else None
            control.stand_in_line(name)
            if lease is not None:
                return lease
        self.idle = Idle.ALL_BLOCKED if control.frontier.pending else Idle.NO_REQUEST
        return None

    def next_due(self) -> float:
        """When to try again though nothing happens (monotonic seconds); infinity: no need."""
        control = self._control
        if self.idle in {Idle.PAUSED, Idle.STORE, Idle.RESULTS}:
            return control.now() + 1.0  # nobody tells when these end; once a second is soon enough
        if self.idle is Idle.OUTAGE:
            return control.outage.next_probe_due
        due = min(control.turns.next_wake_due(), control.delays.next_due)
        return due if control.outage.out_since is None else min(due, control.outage.next_probe_due)

    # -- what has come due ---------------------------------------------------------------------------------------

    def _wake(self, now: float) -> None:
        control = self._control
        for entry in control.delays.take_due(now):
            control.book.came_due(entry.domain)
            control.admit(entry, 0.0)
        if control.delays.wants_disk(now):
            control.flush_soon()  # only the flush brings rows in
        for name in control.turns.woken(now):
            control.stand_in_line(name)

    def _held_back(self, now: float) -> Idle | None:
        control = self._control
        if control.stopping:
            return Idle.STOPPING
        if control.paused_since_at is not None:
            return Idle.PAUSED
        if control.store_waits:
            return Idle.STORE
        if control.results_too_deep():
            return Idle.RESULTS
        if control.outage.out(now) and control.outage.next_probe_due > now:
            return Idle.OUTAGE
        return None

    # -- handing out ---------------------------------------------------------------------------------------------------

    def _may_try(self, entry: Entry) -> bool:
        """May a request that was in flight at several crashes go now? Alone, and after all the others.

        Whoever is in flight beside it would be suspected too; and one that does kill the process kills little.
        """
        control = self._control
        if not control.ledger.leases and not control.frontier.pending:
            return True
        control.admit(entry, SUSPECT_WAIT_S)
        control.stand_in_line(entry.domain)
        return False

    def _is_on_record(self, entry: Entry) -> bool:
        """Is the row of *entry* committed? If not, it comes again after the next flush."""
        control = self._control
        if not control.ledger.is_fresh(entry):
            return True
        control.admit(entry, RECORD_WAIT_S)
        control.stand_in_line(entry.domain)
        control.flush_soon()
        return False

    def _bury_next(self, domain: Domain) -> bool:
        """One request of a given-up domain becomes a dead letter. Returns whether another may follow in this call."""
        control = self._control
        entry = control.frontier.pop(domain.name)
        if entry is not None:
            reason = domain.given_up or ""
            control.graves.bury_entry(
                entry, reason, "its domain was given up", trouble=domain.trouble
            )
            control.stand_in_line(domain.name)
        self._buried += 1
        if self._buried < GIVEN_UP_SLICE:
            return True
        control.wake_soon()
        return False

    def _lease(self, entry: Entry, domain: Domain, now: float) -> Lease | None:
        control = self._control
        request: Request
        if isinstance(entry.request, bytes):
            try:
                request = control.ledger.codec.decode(entry.request)
            except Unreadable as error:
                control.graves.bury_unreadable(entry, error)
                return None
        else:
            request = entry.request
        if request in control.ledger.by_request:
            request = request.copy()
        entry.request = request
        lease = control.ledger.lease(entry, request, domain, now)
        request.errback = ErrbackRecorder(lease, request.errback)
        self._choose_slot(request, domain)
        if not request.meta.get("retry_times"):
            domain.budget.fresh()
        if request.meta.get("retry_times") or request.meta.get(names.REFUSALS):
            control.book.retries_in += 1
        if control.proxies is None:
            lease.ticket = domain.governor.sent(now)
        else:
            control.proxies.board(lease, request, domain, now)
        if control.politeness.has_delays:
            control.politeness.draw_gap(domain.name, domain.governor)
        domain.in_flight += 1
        control.stats.inc_value("scheduler/dequeued")
        return lease

    def _choose_slot(self, request: Request, domain: Domain) -> None:
        control = self._control
        if request.meta.get("download_slot") is None:
            request.meta["download_slot"] = request.meta[names.SLOT] = domain.name
        if not domain.slot_set:
            domain.slot_set = True
            compat.set_slot(
                control.engine.downloader,
                domain.name,
                concurrency=control.slot_size(domain.name),
            )
